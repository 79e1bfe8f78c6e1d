"""Runs on questions of diagnostics, suites and ratings: scored once, and what is refused; the command."""

from dataclasses import dataclass

import numpy as np
import pytest

from eval.estimate import estimate_scoring
from eval.run import add_pretrained, check_benchmark, score_run, score_study
from eval.scorers.load import load_scorer
from eval.scores.files import read_answer_file
from pairscale.command.compose import compose
from pairscale.errors import InputError, RunError
from tests.support.commands import run_command
from tests.support.diagnostics import write_files
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import MASKED, MODELS, byte_level, with_random_weights
from tests.support.small_runs import study_overrides
from tests.support.suites import write_suites

RATED = "sentence,rating\nThe cat sleeps .,1\nThe cat sleep .,-1\nA dog quokka .,0.5\n"


@dataclass(frozen=True)
class Case:
    """A benchmark: its files of answers, what a run and a dry run print, and the words and texts of an estimate."""

    files: tuple[str, ...]
    printed: tuple[str, ...]
    contents: str = ""
    words: int = 0
    texts: int = 0


SUITES = ("SG score", "Agreement", "number_mini", "Long-Distance Dependencies")
CASES = {
    "cprag": Case(("topk", "cloze"), ("accuracy@5", "The model cannot express")),
    "role": Case(("topk", "cloze"), ("accuracy@5", "The model cannot express")),
    # Two contexts an item, four if its words have different articles: of 4, 5, 4, 4, 5, 5, 7 and 8 words.
    "neg": Case(("topk", "cloze"), ("accuracy@5", "The model cannot express"), "8 contexts of 3 items", 42, 8),
    # 5 words in each of four sentences of three items, and the 6 and 7 of two.
    "syntaxgym": Case(("regions", "success"), SUITES, "5 items of 2 suites", 12 * 5 + 6 + 7, 14),
    "ratings": Case(("sentences",), ("Pearson", "3 sentences"), "3 sentences", 12, 3),
}
each_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def configure(tmp_path):
    """Write the files of all benchmarks; a function from a benchmark and overrides to the configuration of a run."""
    write_files(tmp_path / "lm_diagnostics")
    write_suites(tmp_path / "syntaxgym")
    (tmp_path / "rated.csv").write_text(RATED)
    paths = [*study_overrides(tmp_path), "trainer.progress=false", "corpus=toy"]

    def configure(name, *overrides):
        rated = [f"benchmark.path={tmp_path}/rated.csv"] if name == "ratings" else []
        return compose("eval", [*paths, f"benchmark={name}", *rated, *overrides])

    return configure


def answers(run, name):
    (folder,) = (folder for folder in run.scores("").iterdir() if folder.name.startswith(name))
    return {file: read_answer_file(folder, file) for file in CASES[name].files}


@pytest.mark.parametrize("model", [LSTM, TXL], ids=["lstm", "txl"])
@each_case
def test_a_trained_run_is_scored(configure, name, model, capsys):
    config = configure(name, "method=[]")
    run = simulated_run(config, random_model(model))
    score_run(run, config)
    printed = capsys.readouterr().out
    assert all(text in printed for text in CASES[name].printed)
    for _, metadata in answers(run, name).values():
        assert (metadata["benchmark"]["name"], metadata["sample_words"]) == (name, 1000)


@pytest.mark.parametrize("name", ["neg", "syntaxgym", "ratings"])
def test_existing_scores_are_not_computed_again(configure, name, capsys):
    case, config = CASES[name], configure(name)
    run = simulated_run(config, random_model(LSTM))
    assert estimate_scoring(config, 1.5).tokens == case.words * 1.5 + case.texts
    score_study(configure(name, "dry_run=true"))
    assert f"{name}: would score {case.contents}" in capsys.readouterr().out
    folder = run.scores(name)

    def modification_times():
        return {path.stem: path.stat().st_mtime_ns for path in folder.iterdir()}

    score_run(run, config)
    first = modification_times()
    assert first.keys() == set(case.files)
    score_run(run, configure(name, "method=[lp]"))
    assert modification_times() == first
    assert estimate_scoring(config, 1.5).tokens == 0
    assert "(scored already)" in capsys.readouterr().out
    simulated_run(config, random_model(LSTM, seed=1))
    score_run(run, config)
    assert not first.items() & modification_times().items()
    last = folder / f"{case.files[-1]}.parquet"
    last.write_bytes(b"")
    with pytest.raises(RunError, match=rf"{last.name}: this file is damaged"):
        score_run(run, config)


def test_answers_to_questions(configure):
    run = simulated_run(configure("cprag"), random_model(LSTM))
    score_run(run, configure("cprag", "benchmark.shuffles=7", "benchmark.top_words=7"))
    cloze, metadata = answers(run, "cprag")["cloze"]
    assert metadata["policy"] == {"context": "none", "context_tokens": 32, "precision": "fp32"}
    assert not cloze["expressible"].all()
    assert cloze["prob"].isna().equals(~cloze["expressible"])
    assert cloze["rank"].isna().equals(~cloze["expressible"])
    assert cloze.groupby("condition").size().to_dict() == {
        "original": 6, "truncated": 2, "shuffled": 14, "shuffled_truncated": 14,
    }  # fmt: skip
    topk = answers(run, "cprag")["topk"][0]
    assert set(topk["condition"]) == {"original", "truncated"}, "not of conditions that are drawn at random"
    assert set(topk["place"]) == {1, 2, 3, 4, 5, 6, 7}
    score_run(run, configure("cprag", "benchmark.shuffles=7"))  # a setting on which scores depend
    topk, metadata = answers(run, "cprag")["topk"]
    assert (topk["place"].max(), metadata["parameters"]["top_words"]) == (5, 5)


def test_regions_of_suites(configure):
    config = configure("syntaxgym")
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    regions, metadata = answers(run, "syntaxgym")["regions"]
    assert metadata["policy"]["score_eos"] is True
    (scores,) = load_scorer(run).score(["The cat sleep quietly ."], config.policy)
    rows = regions[(regions["item"] == 1) & (regions["condition"] == "sing_bad")]
    assert rows["surprisal"].sum() == pytest.approx(-scores.logprobs.sum() / np.log(2))
    assert rows["tokens"].tolist() == [1, 1, 1, 3]  # <eos> too
    assert rows["content"].tolist() == ["The", "cat", "sleep", "quietly ."]
    score_run(run, configure("syntaxgym", "benchmark.suites=[cleft_mini]", "policy.unk=skip"))
    (folder,) = run.scores("").glob("syntaxgym+suites-*+unk-skip")
    regions = read_answer_file(folder, "regions")[0]
    assert set(regions["suite"]) == {"cleft_mini"}
    assert not regions.loc[regions["unk"] == regions["tokens"], "surprisal"].any()


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_pretrained_models_are_scored(configure, tmp_path, kind):
    network, tokenizer = (MODELS["gpt2"], byte_level) if kind == "causal" else MASKED["roberta"]
    tokenizer = tokenizer()
    with_random_weights(network, tokenizer).save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    model = [f"model=hf_{kind}", f"model.path={tmp_path}/{kind}"]
    run, scorer = add_pretrained(configure("neg", *model))
    score_run(run, configure("neg", *model), scorer)
    cloze, metadata = answers(run, "neg")["cloze"]
    assert cloze["expressible"].all()
    assert (cloze["n_tokens"] > 1).any()
    assert cloze["prob"].between(0, 1).all()
    assert (cloze["rank"] >= 1).all()
    assert metadata["model"]["name"] == f"{tmp_path}/{kind}"
    assert np.isfinite(answers(run, "neg")["topk"][0]["prob"]).all()
    suites = configure("syntaxgym", *model)
    if kind == "masked":
        with pytest.raises(InputError, match=r"is a masked model"):
            score_run(run, suites, scorer)
    else:
        score_run(run, suites, scorer)
        regions = answers(run, "syntaxgym")["regions"][0]
        assert np.isfinite(regions["surprisal"]).all()
        assert (regions["tokens"] > 0).equals(regions["content"] != "")


@pytest.mark.parametrize(
    "text",
    [
        "sentence,rating\na b,3\nc d,3\ne f,3\ng h,3\n",
        "sentence,rating,label\na b,3,1\nc d,3,1\ne f,3,1\n",
        "sentence,label\na b,1\nc d,1\ne f,1\n",
        "sentence,rating\na b,3\nc d,4\n",
    ],
)
def test_ratings_that_nothing_can_agree_with_are_refused_before_a_model_is_loaded(configure, tmp_path, text):
    (tmp_path / "rated.csv").write_text(text)
    names = text.partition("\n")[0].split(",")
    columns = ",".join(f"{name}:{name if name in names else 'null'}" for name in ("sentence", "rating", "label"))
    with pytest.raises(InputError, match=r"benchmark=ratings: .* at least three"):
        check_benchmark(configure("ratings", f"benchmark.columns={{{columns}}}"))


@pytest.mark.slow
def test_the_command_scores_a_diagnostic(configure, tmp_path):
    simulated_run(configure("role"), random_model(LSTM))
    done = run_command("eval", "study=s", "benchmark=role", f"paths.runs={tmp_path}/runs", f"paths.data={tmp_path}")
    assert done.returncode == 0
    assert [line.partition(": ")[2][:13] for line in done.stderr.splitlines()] == ["blanks around"]  # in the file
    assert "generic object" in done.stdout
