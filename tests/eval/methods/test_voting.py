"""Votes counted by hand; methods with templates in score files, tables and the analysis."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import analysis
from eval.methods.builtin.votes import Votes, draws, vote
from eval.run import check_benchmark, score_run
from eval.scores.accuracy import accuracies, best_template, by_repeat, repeats_text
from eval.scores.files import read_scores, score_path, write_scores
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
    with pytest.raises(RunError, match=r"scores of in_template_lp: template x was scored on other pairs"):
        vote({"yes_no": answers, "in_template_lp": inserted.iloc[1:]}, votes)


@pytest.mark.parametrize(
    ("method", "balance"), [("vote_p", (5, 0)), ("vote_mix_p3", (3, 2)), ("vote_mix_l3", (2, 3)), ("vote_l", (0, 5))]
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
    with pytest.raises(ConfigError, match=r"voters\.yes_no=5: .* only 3 templates \(a, b, c\)"):
        draws({"yes_no": list("abc")}, Votes({"yes_no": 5}))


def test_tables_show_the_mean_the_deviation_and_the_best_template():
    answers = scores({"a": "++-", "b": "+--", "c": "+=-"})
    assert repeats_text(answers) == "3 templates"
    assert by_repeat(answers).loc[("overall", "overall")].to_dict() == pytest.approx(
        {"a": 2 / 3, "b": 1 / 3, "c": 1 / 3}
    )
    assert best_template(answers, by_repeat(answers)) == "a"
    overall = accuracies(answers).iloc[-1]
    assert (overall["accuracy"], overall["pairs"]) == (pytest.approx(4 / 9), 3)  # not nine
    items = pd.DataFrame({"pair_id": list("012"), "paradigm": "p", "phenomenon": "x"})
    answers = answers.drop(columns="phenomenon")
    table = accuracy_table("t", "none", answers, items, "wrong")
    cells = {column.header: str([*column.cells][-1]) for column in table.columns}
    assert [cells[name] for name in ("accuracy", "best", "ties")] == ["44.4 ± 19.2", "66.7", "1"]
    votes, _ = vote({"yes_no": answers}, Votes({"yes_no": 3}, 2))
    chosen = answers.assign(order=["A", "A", "B"] * 3)  # A, A, A of template a; A, B, A of b; A, none, A of c
    table = methods_table("t", {"ab_prompt": chosen, "vote_p": votes}, items, "wrong")
    rows = list(zip(*(map(str, column.cells) for column in table.columns), strict=True))
    assert rows[0] == ("ab_prompt", "44.4", "19.2", "66.7", "3 templates, best: a", "1", "87.5")
    assert rows[1] == ("vote_p", "33.3", "0.0", "", "2 trials", "2", "")


@pytest.fixture
def configure(tmp_path):
    """A function from overrides to the configuration of a run on six pairs."""
    pairs = ["benchmark=toy", "benchmark.per_paradigm=3", "benchmark.paradigms=[anaphor_gender_agreement,transitive]"]
    fixed = [*study_overrides(tmp_path), "corpus=toy", "trainer.progress=false", *pairs]
    return lambda *overrides: compose("eval", [*fixed, *overrides])


def path_of(run, method):
    (folder,) = run.scores("").iterdir()
    return score_path(folder, method)


@pytest.mark.slow
def test_changed_templates_are_scored_again_with_the_votes_that_count_them(configure, tmp_path, capsys):
    named = ["model=hf_causal", f"model.path={tmp_path}", "method=[vote_mix_p3,lp,in_template_lp,yes_no,vote_p]"]
    config, tokenizer = configure(*named), byte_level()
    scorer = causal_scorer(gpt2(len(tokenizer)), tokenizer, 3_000)
    run = RunFolder.of(config)
    run.path.mkdir(parents=True)
    run.config.write_text(yaml_of(config))
    run.update_manifest(status=DONE)

    def scored_anew(config):
        def times():
            return {path.stem: path.stat().st_mtime_ns for path in run.path.rglob("scores/*/*.parquet")}

        before = times()
        score_run(run, config, scorer)
        return {name for name, at in times().items() if at != before.get(name)}

    assert len(scored_anew(config)) == 7  # five methods, items and tokens
    assert "standard deviation over templates or trials" in " ".join(capsys.readouterr().out.split())
    rows, metadata = read_scores(path_of(run, "yes_no"))
    assert set(rows.groupby("template").size()) == {6}
    assert len(metadata["templates"]["templates"]) == len(set(rows["template"])) == 5
    votes, metadata = read_scores(path_of(run, "vote_mix_p3"))
    assert len(votes) == 10 * 6
    assert (votes["good"] + votes["bad"] <= 5).all()
    drawn = [{name: len(names) for name, names in voters.items()} for voters in metadata["drawn"]]
    assert drawn == [{"in_template_lp": 2, "yes_no": 3}] * 10
    assert scored_anew(config) == set()
    config.method["yes_no"].templates = [f"{text} {{sentence}} ?" for text in ("Is", "Was", "Oh", "So", "Why")]
    assert scored_anew(config) == {"yes_no", "vote_mix_p3", "vote_p", "items", "tokens"}
    config.method["in_template_lp"].scored = "target"
    assert scored_anew(config) == {"in_template_lp", "vote_mix_p3", "items", "tokens"}


def test_votes_need_the_methods_that_vote(configure):
    config = configure("method=[vote_l]")
    run = simulated_run(config, random_model(LSTM))
    with pytest.raises(ConfigError, match=r"method=vote_l: this method counts .* method=\[in_template_lp,vote_l\]"):
        check_benchmark(config)
    score_run(run, configure("method=[vote_l,in_template_lp]"))
    assert len(read_scores(path_of(run, "vote_l"))[0]) == 60
    config.method["vote_l"].voters = {"lp": 1}
    with pytest.raises(ConfigError, match=r"method\.vote_l\.voters=lp: .*must be one of ab_prompt, "):
        score_run(run, config)


def test_runs_with_different_templates_raise_an_error(tmp_path):
    for number, folder in enumerate(SimulatedStudy(pairs=10).write(tmp_path)):
        rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp"))
        metadata |= {"method": "yes_no", "parameters": {"templates": f"digest{number % 2}"}}
        write_scores(score_path(folder.scores("blimp"), "yes_no"), rows.assign(template="1"), metadata)
    with pytest.raises(RunError, match=r"templates.*digest0.*digest1"):
        analysis.accuracies("simulated", method="yes_no", folder=tmp_path)
