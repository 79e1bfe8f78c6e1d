"""Choices from the table to the accuracy, for a causal and a masked model, against sums of the scorer."""

import json

import numpy as np
import pandas as pd
import pytest

from analysis import accuracies, pairs
from analysis.study.long_table import tie_and_chance
from analysis.study.run_folders import read_studies
from eval import judge, load_scorer
from eval.estimate import estimate_scoring
from eval.run import add_pretrained, check_benchmark, score_run
from eval.scores.files import read_scores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.small_pretrained import bert, byte_level, gpt2, with_random_weights, word_pieces

ROWS = [
    {"context": "The cats", "options": ["sleep .", "sleeps .", "sleep ."], "label": 0, "set": "a"},  # one tie
    {"context": "The cat", "options": ["sleeps .", "sleep ."], "label": "B", "set": "a"},
    {
        "context": "Who saw",
        "options": ["the dog ?", "the cat ?", "a dog near the cat ?", "Who ?"],
        "label": 2,
        "set": "b",
    },
    {"context": "A dog", "options": ["saw the cat .", "sleeps near the naïve cat ."], "label": 1, "set": "b"},
]
METHODS = {"lp": "pll", "mean_lp": "mean_pll", "char_lp": "char_pll", "pmi_lp": "pmi_pll"}


def saved(folder, network, tokenizer):
    with_random_weights(network, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Return the folder of runs, and the scorer of each kind of model."""
    folder = tmp_path_factory.mktemp("choices")
    (folder / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    models = {
        "hf_causal": saved(folder / "gpt", gpt2, byte_level()), "hf_masked": saved(folder / "bert", bert, word_pieces())
    }  # fmt: skip
    for kind, path in models.items():
        methods = [*METHODS, *METHODS.values()]
        config = compose("eval", [
            "study=s", f"paths.runs={folder}/runs", f"model={kind}", f"model.path={path}", "benchmark=choices",
            "benchmark.name=own", f"benchmark.path={folder}/own.jsonl", "benchmark.columns.paradigm=set",
            f"method=[{','.join(methods)}]", "trainer.progress=false",
        ])  # fmt: skip
        check_benchmark(config)
        run, scorer = add_pretrained(config)
        score_run(run, config, scorer)
    return folder / "runs", {kind: load_scorer(path) for kind, path in models.items()}


def expected_scores(scorer, row, method):
    """Return the score of each option of a row, from sums over tokens of whole texts."""
    scores = []
    for option in row["options"]:
        text = f"{row['context']} {option}"
        (whole,) = scorer.score([text])
        values = whole.logprobs[whole.spans[:, 1] > len(row["context"])]
        (alone,) = scorer.score([option])
        scores.append({
            "lp": values.sum(), "mean_lp": values.mean(), "char_lp": values.sum() / len(option),
            "pmi_lp": values.sum() - alone.logprobs.sum(),
        }[method])  # fmt: skip
    return scores


@pytest.mark.parametrize("kind", ["hf_causal", "hf_masked"])
def test_each_method_compares_the_right_option_with_the_best_other(scored, kind):
    runs, scorers = scored
    golds = [0, 1, 2, 1]
    for name, masked in METHODS.items():
        method = masked if kind == "hf_masked" else name
        (path,) = runs.glob(f"s/*/scores/own/{method}.parquet")
        rows = read_scores(path)[0]
        assert len(rows) == len(ROWS)
        for row, item, gold in zip(rows.to_dict("records"), ROWS, golds, strict=True):
            scores = expected_scores(scorers[kind], item, name)
            others = {place: score for place, score in enumerate(scores) if place != gold}
            best = max(others.values())
            assert row["good"] == pytest.approx(scores[gold], abs=1e-4)
            assert row["bad"] == pytest.approx(best, abs=1e-4)
            assert row["rival"] in [place for place, score in others.items() if score > best - 1e-4]
            assert row["rivals"] == sum(score > best - 1e-6 for score in others.values())
            assert row["bad_words"] == len(item["options"][row["rival"]].split())


def test_the_long_table_counts_ties_as_the_benchmark_says(scored):
    runs, _ = scored
    table = accuracies("s", benchmark="own", method="lp", folder=runs)
    assert set(table["method"]) == {"lp", "pll"}
    judged = pairs("s", benchmark="own", method="lp", folder=runs)
    first = judged[judged["pair_id"].eq("0") & judged["paradigm"].eq("a")]
    assert (first["good_score"] <= first["bad_score"]).all()  # one of the other options is the same
    for method, of in judged.groupby("method"):
        worth = np.where(
            of["good_score"] == of["bad_score"], 1 / (1 + of["rivals"]), of["good_score"] > of["bad_score"]
        )
        expected = pd.Series(worth, of["paradigm"].to_numpy()).groupby(level=0).mean()
        found = table[table["method"] == method].set_index("paradigm")["accuracy"]
        assert found.to_dict() == pytest.approx(expected.to_dict())
    assert tie_and_chance(read_studies(["s"], runs), "own") == (
        "half",
        pytest.approx(((1 / 3 + 1 / 2) + (1 / 4 + 1 / 2)) / 4),
    )
    wrong, drawn = (
        accuracies("s", benchmark="own", method="lp", ties=ties, folder=runs) for ties in ("wrong", "random:3")
    )
    assert (wrong["correct"] <= table["correct"]).all()
    assert drawn["correct"].isin([0, 1, 2]).all()
    assert judged["gold"].tolist() == [0, 1, 2, 1] * 2
    assert [list(of) for of in judged["options"][:4]] == [row["options"] for row in ROWS]
    assert judged["contexts"].str[0].tolist() == [f"{row['context']} " for row in ROWS] * 2


@pytest.mark.parametrize(("model", "expected"), [
    ("bert_tiny", 1 * 3 + 1 * 4),  # each word of an option is masked once, in a text of context and option
    ("gpt2_tiny", 1 + 4),  # begin symbol, and the words of a tree in which both texts share the context
])  # fmt: skip
def test_estimates_include_the_contexts(model, expected, tmp_path):
    rows = [{"context": "The cats", "options": ["sleep", "run"], "label": 0}]
    if model == "bert_tiny":
        rows = [{"context": ["The cats", "The old cats"][n], "options": ["sleep", "sleep"], "label": 0} for n in (0, 1)]
    (tmp_path / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    config = compose("eval", ["corpus=toy", f"model={model}", "benchmark=choices", f"benchmark.path={tmp_path}"])
    assert estimate_scoring(config, 1.0).tokens == expected


def test_pairs_with_a_context_are_judged_from_python(scored):
    scorer = scored[1]["hf_causal"]
    table = pd.DataFrame({"good": ["sleep ."], "bad": ["sleeps ."], "context": ["The cats "]})
    (row,) = judge(scorer, table, ["lp"]).to_dict("records")
    assert [row["good_score"], row["bad_score"]] == pytest.approx(
        expected_scores(scorer, {"context": "The cats", "options": ["sleep .", "sleeps ."]}, "lp"), abs=1e-4
    )


def test_methods_that_do_not_fit_raise_one_line(scored):
    scorer = scored[1]["hf_causal"]
    table = pd.DataFrame({"good": ["sleep ."], "bad": ["sleeps ."], "context": ["The cats "]})
    with pytest.raises(ConfigError, match=r"^method=in_template_lp: .*templates"):
        judge(scorer, table, ["in_template_lp"])
    with pytest.raises(ConfigError, match=r"^method=pmi_lp: .*neutral"):
        judge(scorer, table.drop(columns="context"), ["pmi_lp"])


def test_the_neutral_context_can_be_chosen(scored):
    scorer = scored[1]["hf_causal"]
    table = pd.DataFrame({"good": ["sleep ."], "bad": ["sleeps ."], "context": ["The cats "]})
    (row,) = judge(scorer, table, ["pmi_lp"], overrides=["method.pmi_lp.neutral='Who saw'"]).to_dict("records")
    given, neutral = (
        expected_scores(scorer, {"context": context, "options": ["sleep ."]}, "lp")
        for context in ("The cats", "Who saw")
    )
    assert row["good_score"] == pytest.approx(given[0] - neutral[0], abs=1e-4)
