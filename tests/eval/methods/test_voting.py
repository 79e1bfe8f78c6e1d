"""Votes counted by hand; methods with templates in score files, tables and the analysis."""

import copy
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis import fit_curves, pairs
from eval.benchmarks.load import loaded_benchmark
from eval.methods.builtin.votes import Votes, draws, vote
from eval.run import score_run
from eval.scores.accuracy import accuracies, best_template, by_repeat, repeats_text
from eval.scores.files import read_metadata, read_scores, score_path, write_scores
from eval.scores.table import accuracy_table, methods_table
from pairscale.command.compose import compose
from pairscale.command.schemas import yaml_of
from pairscale.errors import ConfigError, RunError
from tests.support.prompted_models import byte_level, gpt2
from tests.support.random_models import LSTM, random_model, simulated_run
from tests.support.simulated_study import SimulatedStudy
from tests.support.small_pretrained import causal_scorer
from tests.support.small_runs import study_overrides
from train.runs.folder import DONE, RunFolder

FIVE = list("abcde")


def scores(outcomes):
    """Return rows of a score file; for each template and pair "+" is right, "-" wrong, "=" a tie, "?" no score."""
    rows = []
    for template, signs in outcomes.items():
        for pair, sign in enumerate(signs):
            good, bad = {"+": (1.0, 0.0), "-": (0.0, 1.0), "=": (1.0, 1.0), "?": (np.nan, np.nan)}[sign]
            rows.append({"pair_id": str(pair), "paradigm": "p", "template": template, "good": good, "bad": bad})
    frame = pd.DataFrame(rows).assign(trial=None, order=None, crit_unk=0, phenomenon="x")
    for what in ("lp", "tokens", "words", "chars", "unk"):
        frame[f"good_{what}"] = frame[f"bad_{what}"] = 0
    return frame


def test_votes_are_as_counted_by_hand():
    answers = scores({"a": "+-=?", "b": "++==", "c": "-+=+"})
    (rows, voters) = vote({"yes_no": answers}, Votes({"yes_no": 3}, 2))
    assert voters == [{"yes_no": ["a", "b", "c"]}] * 2
    assert rows["trial"].tolist() == [1] * 4 + [2] * 4
    assert rows["good"].tolist() == [2, 2, 0, 1] * 2
    assert rows["bad"].tolist() == [1, 1, 0, 1] * 2  # no score counts as a wrong answer
    overall = accuracies(rows.assign(phenomenon="x")).set_index("level").loc["overall"]
    assert (overall["pairs"], overall["ties"], overall["accuracy"]) == (4, 4, 0.5)
    assert accuracies(rows.assign(phenomenon="x"), "half")["accuracy"].tolist() == [0.75] * 3


def test_two_methods_vote_together():
    answers, inserted = scores({"a": "++-", "b": "+--", "c": "+--"}), scores({"x": "--+", "y": "--+"})
    shuffled = inserted.sample(frac=1, random_state=1)  # rows are matched by name, not by position
    votes = Votes({"yes_no": 3, "in_template_lp": 2}, 1)
    rows, _ = vote({"yes_no": answers, "in_template_lp": shuffled}, votes)
    assert rows["good"].tolist() == [3, 1, 2]
    assert rows["bad"].tolist() == [2, 4, 3]
    with pytest.raises(RunError, match=r"scores of in_template_lp: template x has other pairs than the rest"):
        vote({"yes_no": answers, "in_template_lp": inserted.iloc[1:]}, votes)


@pytest.mark.parametrize(
    ("method", "balance"),
    [("vote_p", (5, 0)), ("vote_mix_p3", (3, 2)), ("vote_mix_l3", (2, 3)), ("vote_l", (0, 5))],
)
def test_voters_are_drawn_without_replacement_in_the_proportions_of_the_paper(method, balance):
    config = compose("eval", [f"method=[{method}]"]).method[method]
    assert (config.trials, config.seed) == (10, 1)
    names = {"yes_no": FIVE, "in_template_lp": FIVE}
    samples = draws(names, config)
    assert len(samples) == 10
    for voters in samples:
        assert tuple(len(set(voters.get(name, []))) for name in ("yes_no", "in_template_lp")) == balance
    assert draws(names, Votes(config.voters, 20))[:10] == samples
    if 5 not in balance:
        assert draws(names, Votes(config.voters, seed=2)) != samples
        counts = Counter(name for voters in draws(names, Votes(config.voters, 2000, 3)) for name in voters["yes_no"])
        assert all(abs(counts[name] / 2000 - balance[0] / 5) < 0.04 for name in FIVE)


def test_more_voters_than_templates_raise_an_error():
    with pytest.raises(ConfigError, match=r"voters: 5 of yes_no, must be 1 to 3: it has the templates a, b, c"):
        draws({"yes_no": list("abc")}, Votes({"yes_no": 5}))


def test_tables_show_the_mean_the_deviation_and_the_best_template():
    answers = scores({"a": "++-", "b": "+--", "c": "+=-"})
    assert repeats_text(answers) == "3 templates"
    overall = by_repeat(answers).loc[("overall", "overall")]
    assert overall.to_dict() == pytest.approx({"a": 2 / 3, "b": 1 / 3, "c": 1 / 3})
    assert accuracies(answers).iloc[-1]["accuracy"] == pytest.approx(4 / 9)
    assert accuracies(answers).iloc[-1]["pairs"] == 3  # not nine
    assert best_template(answers, by_repeat(answers)) == "a"
    items = pd.DataFrame({"pair_id": list("012"), "paradigm": "p", "phenomenon": "x"})
    table = accuracy_table("t", "none", answers.drop(columns="phenomenon"), items, "wrong")
    cells = {column.header: [*map(str, column.cells)] for column in table.columns}
    assert (cells["accuracy"][-1], cells["±"][-1], cells["best"][-1], cells["ties"][-1]) == (
        "44.4",
        "19.2",
        "66.7",
        "1",
    )
    assert "mean over 3 templates; ±: their standard deviation; best: a" in str(table.caption)
    choices = answers.drop(columns="phenomenon").assign(order=["A", "A", "B"] * 3)
    votes, _ = vote({"yes_no": answers}, Votes({"yes_no": 3}, 2))
    table = methods_table("t", {"ab_prompt": choices, "vote_p": votes}, items, "wrong")
    rows = list(zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True))
    # A, A, A of template a; A, B, A of b; A, none, A of c
    assert rows[0] == ("ab_prompt", "44.4", "19.2", "66.7", "3 templates, best: a", "1", "87.5")
    assert rows[1] == ("vote_p", "33.3", "0.0", "", "2 trials", "2", "")


@pytest.fixture
def configure(tmp_path):
    (tmp_path / "blimp").mkdir()
    for number, paradigm in enumerate(("near", "far")):
        rows = [
            {"sentence_good": f"The cat {index} sleeps .", "sentence_bad": f"The cat {index} sleep .",
             "field": "syntax", "linguistics_term": f"x{number}", "UID": paradigm, "pairID": str(index)}
            for index in range(3)
        ]  # fmt: skip
        (tmp_path / "blimp" / f"{paradigm}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    paths = [*study_overrides(tmp_path), "corpus=toy"]

    def configure(*overrides):
        loaded_benchmark.cache_clear()
        return compose("eval", ["benchmark=blimp", "trainer.progress=false", *paths, *overrides])

    return configure


@pytest.fixture
def hub_model(tmp_path):
    """Overrides that name a Hugging Face model, and its scorer."""
    tokenizer = byte_level()
    scorer = causal_scorer(gpt2(len(tokenizer)), tokenizer, 3_000)
    return ["model=hf_causal", f"model.path={tmp_path}"], scorer


def modification_times(run):
    return {path.stem: path.stat().st_mtime_ns for path in run.scores("blimp").glob("*.parquet")}


@pytest.mark.slow
def test_methods_are_scored_again_only_if_their_templates_change(configure, hub_model, capsys):
    named, scorer = hub_model
    methods = "method=[vote_mix_p3,lp,in_template_lp,yes_no,ab_prompt,vote_p]"
    config = configure(*named, methods)
    run = RunFolder.of(config)
    run.path.mkdir(parents=True)
    run.config.write_text(yaml_of(config))
    run.update_manifest(status=DONE)
    score_run(run, config, scorer)
    printed = " ".join(capsys.readouterr().out.split())
    assert "mean over 10 trials" in printed
    assert "share of A" in printed
    for method in ("in_template_lp", "yes_no", "ab_prompt"):
        rows, metadata = read_scores(score_path(run.scores("blimp"), method))
        assert len(rows) == 5 * 6
        assert set(rows.groupby("template").size()) == {6}
        assert (rows["good_words"] == 5).all()
        assert len(metadata["templates"]["templates"]) == 5
    assert metadata["parameters"] == {"seed": 1, "chat": False, "templates": metadata["parameters"]["templates"]}
    assert metadata["prompts"]["answers"] == {" A": [["ĠA"]], " B": [["ĠB"]]}
    votes, metadata = read_scores(score_path(run.scores("blimp"), "vote_mix_p3"))
    assert len(votes) == 10 * 6
    assert (votes["good"] + votes["bad"] <= 5).all()
    assert [{name: len(names) for name, names in voters.items()} for voters in metadata["drawn"]] == [
        {"in_template_lp": 2, "yes_no": 3}
    ] * 10
    first = modification_times(run)
    score_run(run, config, scorer)
    assert modification_times(run) == first
    other = copy.deepcopy(config)
    other.method["yes_no"].templates = [f"{text} {{sentence}} ?" for text in ("Is", "Was", "Oh", "So", "Why")]
    score_run(run, other, scorer)
    changed = {name for name, at in modification_times(run).items() if at != first[name]}
    assert changed == {"yes_no", "vote_mix_p3", "vote_p", "items", "tokens"}
    first = modification_times(run)
    other.method = {name: other.method[name] for name in ("in_template_lp", "lp")}
    other.method["in_template_lp"].scored = "target"
    score_run(run, other, scorer)
    assert {name for name, at in modification_times(run).items() if at != first[name]} == {
        "in_template_lp",
        "items",
        "tokens",
    }
    # The scores that the votes count have changed.
    other.method = {name: value for name, value in config.method.items() if name != "vote_p"} | other.method
    score_run(run, other, scorer)
    assert read_metadata(score_path(run.scores("blimp"), "vote_mix_p3"))["voters"] != metadata["voters"]


def test_votes_need_the_methods_that_vote(configure):
    config = configure("method=[vote_l]")
    run = simulated_run(config, random_model(LSTM))
    with pytest.raises(ConfigError, match=r"method=vote_l: counts .* request method=\[in_template_lp,vote_l\]"):
        score_run(run, config)
    score_run(run, configure("method=[vote_l,in_template_lp]"))
    assert len(read_scores(score_path(run.scores("blimp"), "vote_l"))[0]) == 60
    config.method["vote_l"].voters = {"lp": 1}
    with pytest.raises(ConfigError, match=r"method\.vote_l\.voters=lp: must be one of ab_prompt, "):
        score_run(run, config)


def rewrite_with_templates(folder, templates, method="yes_no"):
    """Write scores of `method` from those of lp: template number k has the judgement of every k-th pair reversed."""
    rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp"))
    parts = []
    for number in range(1, templates + 1):
        reversed_pairs = np.arange(len(rows)) % 7 == number
        good, bad = rows["good"].where(~reversed_pairs, rows["bad"]), rows["bad"].where(~reversed_pairs, rows["good"])
        parts.append(rows.assign(good=good, bad=bad, template=str(number)))
    write_scores(score_path(folder.scores("blimp"), method), pd.concat(parts), metadata | {"method": method})


def test_the_analysis_takes_the_mean_over_templates(tmp_path):
    for folder in SimulatedStudy(pairs=10).write(tmp_path):
        rewrite_with_templates(folder, 5)
        rewrite_with_templates(folder, 1, "ab_prompt")
    table = analysis.accuracies("simulated", folder=tmp_path)
    of = {method: rows.set_index(["run", "paradigm"])["correct"] for method, rows in table.groupby("method")}
    right = pairs("simulated", method="lp", folder=tmp_path)
    changed = np.isin(right.groupby("run").cumcount() % 7, range(1, 6))
    right["correct"] = np.where(changed, 0.2 * ~right["correct"] + 0.8 * right["correct"], right["correct"])
    expected = right.groupby(["run", "paradigm"])["correct"].sum()
    assert of["yes_no"].to_dict() == pytest.approx(expected.loc[of["yes_no"].index].to_dict())
    assert set(table["pairs"]) == {10}


@pytest.mark.slow
def test_templates_that_agree_give_the_curves_and_intervals_of_one(tmp_path):
    """Repeating the same judgements must not make intervals narrower."""
    for folder in SimulatedStudy(pairs=10, unk_share=0.2, models=("lstm_tiny",), sizes=("125k", "250k", "500k")).write(
        tmp_path
    ):
        rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp"))
        five = pd.concat([rows.assign(template=str(number)) for number in range(5)])
        write_scores(score_path(folder.scores("blimp"), "yes_no"), five, metadata | {"method": "yes_no"})
    tables = [analysis.accuracies("simulated", method=method, folder=tmp_path) for method in ("lp", "yes_no")]
    one, five = (fit_curves(table).drop(columns="method") for table in tables)
    pd.testing.assert_frame_equal(one, five)


def test_runs_with_different_templates_raise_an_error(tmp_path):
    for number, folder in enumerate(SimulatedStudy(pairs=10).write(tmp_path)):
        rewrite_with_templates(folder, 2)
        path = score_path(folder.scores("blimp"), "yes_no")
        rows, metadata = read_scores(path)
        write_scores(path, rows, metadata | {"parameters": {"templates": f"digest{number % 2}"}})
    with pytest.raises(RunError, match=r"templates.*digest0.*digest1"):
        analysis.accuracies("simulated", method="yes_no", folder=tmp_path)
