"""Scoring from Python: the examples of the documentation, and the same scores as the command."""

import doctest
import re

import pandas as pd
import pytest

from eval import judge, load_scorer
from eval.config import PLAIN
from eval.run import add_pretrained, score_run
from eval.scores.files import read_items, read_scores, score_path
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support import ROOT
from tests.support.small_pretrained import bert, byte_level, gpt2, with_random_weights, word_pieces

METHODS = ["lp", "one_prefix", "two_prefix", "in_template_lp", "yes_no", "vote_mix_p3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "gpt"
    tokenizer = byte_level()
    network = with_random_weights(gpt2, tokenizer)
    network.config.n_positions = network.config.max_position_embeddings = 480
    network.transformer.wpe.weight.data = network.transformer.wpe.weight.data.repeat(6, 1)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_the_examples_of_the_documentation_run(folder):
    page = ROOT / "docs" / "guides" / "python.md"
    results = doctest.testfile(str(page), module_relative=False, globs={"folder": str(folder)}, encoding="utf-8")
    assert results.attempted >= 7
    assert results.failed == 0


def test_the_example_of_the_front_page_runs(folder, tmp_path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    (pattern,) = re.findall(r'glob\("([^"]*)"\)', example)
    run = tmp_path / "runs" / "demo" / pattern.replace("*", "x")
    run.parent.mkdir(parents=True)
    run.symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    assert "outcome" in capsys.readouterr().out
    shown = pd.read_csv(ROOT / "analysis/results/demo/minimal-pair.csv")
    assert {sentence for side in ("good", "bad") for sentence in shown[f"{side}_sentence"]} == {
        sentence for pair in re.findall(r'\("([^"]+\.)", "([^"]+\.)"\)', example) for sentence in pair
    }


def test_the_default_policy_of_the_library_is_that_of_the_command():
    assert compose("eval", []).policy == PLAIN


@pytest.mark.slow
def test_judge_gives_the_scores_of_the_command(folder, tmp_path):
    command = compose("eval", [
        "study=s", f"paths.runs={tmp_path}", "model=hf_causal", f"model.path={folder}", "benchmark=toy",
        "benchmark.per_paradigm=2", f"method=[{','.join(METHODS)}]",
    ])  # fmt: skip
    run, scorer = add_pretrained(command)
    score_run(run, command, scorer)
    (score_folder,) = run.scores("").iterdir()
    items, _ = read_items(score_folder)
    rows = judge(load_scorer(folder), items, METHODS)
    for method in METHODS:
        written = read_scores(score_path(score_folder, method))[0]
        written = written.rename(columns={"good": "good_score", "bad": "bad_score"})
        own_rows = rows[rows["method"] == method].reset_index(drop=True)
        columns = ["paradigm", "pair_id", "template", "trial", "good_score", "bad_score", "good_unk"]
        scores, expected = (table[columns].astype(object).fillna("") for table in (own_rows, written))
        pd.testing.assert_frame_equal(scores, expected, check_dtype=False, atol=1e-5)


def test_methods_of_both_kinds_judge_each_model_by_those_that_fit_it_with_the_users_columns(folder, tmp_path):
    tokenizer = word_pieces()
    with_random_weights(bert, tokenizer).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    sentences = {"good": ["The cat sleeps", "Dogs bark"], "bad": ["The cat sleep", "Dogs barks"]}
    pairs = pd.DataFrame({**sentences, "kind": ["near", "far"], "template": ["a", "b"]}, index=[7, 7])
    for model, method, masked in ((folder, "lp", False), (tmp_path / "bert", "pll", True)):
        scorer = load_scorer(model)
        assert scorer.masked == masked
        rows = judge(scorer, pairs, ["lp", "pll"])
        assert rows["method"].tolist() == [method] * 2
        assert rows[["good", "bad", "kind", "item_template"]].to_numpy().tolist() == pairs.to_numpy().tolist()
        good, bad = (scorer.score(pairs[side].tolist()) for side in ("good", "bad"))
        assert rows["good_score"].tolist() == pytest.approx([score.logprobs.sum() for score in good], abs=1e-5)
        assert rows["bad_score"].tolist() == pytest.approx([score.logprobs.sum() for score in bad], abs=1e-5)
        assert (rows["outcome"] == (rows["good_score"] > rows["bad_score"])).all()


def test_pairs_and_methods_that_cannot_be_judged_raise_errors(folder):
    scorer = load_scorer(folder)
    with pytest.raises(InputError, match=r"columns good, but needs good and bad"):
        judge(scorer, pd.DataFrame({"good": ["The"]}))
    with pytest.raises(ConfigError, match=r"method=vote_p counts the votes of yes_no.*Add yes_no"):
        judge(scorer, [("The cat", "The cats")], ["vote_p"])
    with pytest.raises(InputError, match=r"pair_id 1 occurs twice in pairs"):
        judge(scorer, pd.DataFrame({"good": ["The", "A"], "bad": ["the", "a"], "pair_id": [1, 1]}))
    with pytest.raises(ConfigError, match=r"method=pll"):
        judge(scorer, [("The cat", "The cats")], ["pll"])


def test_methods_have_the_names_of_papers_too(folder):
    pairs = [("The cat sleeps", "The cats sleeps")]
    rows = judge(load_scorer(folder), pairs, ["LP", "MeanLP", "pen-lp"])
    expected = judge(load_scorer(folder), pairs, ["lp", "mean_lp", "pen_lp"])
    pd.testing.assert_frame_equal(rows, expected)
    pd.testing.assert_frame_equal(judge(load_scorer(folder), pairs, "LP"), expected[expected["method"] == "lp"])


@pytest.mark.parametrize(
    ("methods", "overrides", "message"),
    [
        (["lpp"], [], r"'lpp'\. Did you mean 'lp'\?"),
        (["SLOR", "MeanPL"], [], r"'MeanPL'\. Did you mean 'mean_pll'\?"),
        (["pen_lp"], ["method.pen_lp.alpa=1"], r"'method\.pen_lp\.alpa'\. Did you mean 'method\.pen_lp\.alpha'\?"),
        (["pll!", "Xq"], [], r"called 'Xq'"),
        ([], [], r"^methods is empty.*at least one"),
        ("", [], r"^methods is empty.*at least one"),
    ],
)
def test_unknown_methods_and_values_raise_one_line(folder, methods, overrides, message):
    with pytest.raises(ConfigError, match=message) as error:
        judge(load_scorer(folder), [("The cat sleeps", "The cats sleeps")], methods, overrides=overrides)
    assert "\n" not in str(error.value)
