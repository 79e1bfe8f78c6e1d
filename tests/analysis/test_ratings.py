"""Graded acceptability: correlations of simulated scores against scipy, their slopes, and ratings that are refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr

from analysis.items import ratings
from analysis.items import results as items
from analysis.items.parts import read_answers
from analysis.study.long_table import runs
from eval.scores.files import read_answer_file, write_answers
from pairscale.errors import RunError
from tests.support.simulated_study import SimulatedStudy, about
from train.runs.folder import RunFolder

LABEL = "ratings_mine"
UNIGRAMS = {"of": "sample", "digest": "5a" * 32, "unseen": 0.5}
METADATA = about(LABEL, "ba" * 32, parameters={"unigrams": UNIGRAMS})


def rows(agreement, seed, pairs=60):
    """Return a score file of pairs whose SLOR has the correlation `agreement` with ratings, but for chance."""
    judged = np.random.default_rng(99).normal(size=2 * pairs) + np.tile([1.0, -1.0], pairs)
    rng = np.random.default_rng(seed)
    n = np.random.default_rng(98).integers(5, 20, 2 * pairs)
    unigram = -7.0 * n + np.random.default_rng(97).normal(0, 5, 2 * pairs)
    slor = agreement * judged / judged.std() + np.sqrt(1 - agreement**2) * rng.normal(size=2 * pairs)
    columns = {"rating": judged, "label": np.tile([True, False], pairs), "tokens": n, "unigram_lp": unigram}
    table = pd.DataFrame(columns).assign(lp=slor * n + unigram, words=n, chars=n * 4, unk=0, unseen=0)
    names = [f"Sentence {k} ." for k in range(2 * pairs)]
    return table.assign(sentence=names, pair=np.repeat(range(pairs), 2).astype(str))


@pytest.fixture
def study(tmp_path):
    """Return the runs of one model at two sizes with three seeds, and their folder; more text agrees more."""
    simulated = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M"), seeds=(1, 2, 3))
    for seed, run in enumerate(simulated.write(tmp_path)):
        write_answers(run.scores(LABEL), {"sentences": rows(0.2 if "125k" in run.path.name else 0.7, seed)}, METADATA)
    return runs("simulated", folder=tmp_path), tmp_path


def part(table, folder, **options):
    found = read_answers(table, LABEL, folder)
    return items.part_of(found, ratings.describe(found), 0.95, **options)


def rewrite(study, change, metadata=METADATA):
    """Rewrite the score file of each run."""
    table, folder = study
    for run in table["run"]:
        scores = RunFolder(folder / "simulated" / run).scores(LABEL)
        write_answers(scores, {"sentences": change(read_answer_file(scores, "sentences")[0])}, metadata)


def test_correlations_are_those_of_scipy_and_their_slopes_those_of_numpy(study):
    table, folder = study
    found = read_answers(table, LABEL, folder)
    described = ratings.describe(found)
    measured = described.measured.set_index(["run", "name", "level"])["accuracy"]
    for run, scores in zip(table["run"], found.tables, strict=True):
        slor = (scores["lp"] - scores["unigram_lp"]) / scores["tokens"]
        assert measured[run, "slor", "Pearson"] == pytest.approx(pearsonr(slor, scores["rating"]).statistic)
    of = described.measured.query("level == 'Pearson' and name == 'slor'")
    slope = np.polyfit(np.log2(of["sample_words"].astype(float)), of["accuracy"], 1)[0]
    (fitted,) = items.slopes_of(described, 0.95).query("name == 'slor'").itertuples()
    assert fitted.slope == pytest.approx(slope)
    assert fitted.low > 0
    shown = part(table, folder, everything=True)
    assert [one.name for one in shown.exhibits] == ["measures", "sizes", "measures-by-size"]
    assert list(shown.exhibits[0].table["name"].unique()) == ["lp", "mean_lp", "pen_lp", "norm_lp", "slor", "morcela"]
    ((curve, text),) = shown.findings
    assert curve == "lstm_tiny"
    assert {"slor", "rises"} <= set(text.split())
    one_size = part(table[table["size"] == "1M"], folder)
    assert [one.name for one in one_size.exhibits] == ["measures"]
    assert "new items" in one_size.findings[0][1]


def test_a_run_without_unigrams_says_why_and_only_sentences_that_every_run_scored_count(study):
    table, folder = study
    scores = RunFolder(folder / "simulated" / table["run"][0]).scores(LABEL)
    changed = read_answer_file(scores, "sentences")[0]
    changed.loc[:9, "lp"] = np.nan
    write_answers(scores, {"sentences": changed}, METADATA)
    measured = ratings.measures(read_answers(table, LABEL, folder))
    assert set(measured.loc[measured["level"] == "Pearson", "items"]) == {110}
    missing = METADATA | {"parameters": {"unigrams": {"missing": "it has no text"}}}
    rewrite(study, lambda rows: rows.assign(unigram_lp=np.nan, unseen=None), missing)
    shown = part(*study)
    assert any("it has no text" in note for note in shown.notes)
    assert "mean_lp" in shown.findings[0][1]


def test_constant_ratings_need_labels(study):
    rewrite(study, lambda rows: rows.assign(rating=3.0))
    shown = part(*study)
    assert "AUC of slor" in shown.findings[0][1]
    assert "Pearson" not in set(shown.exhibits[0].table["level"])
    rewrite(study, lambda rows: rows.assign(label=None, pair=None))
    with pytest.raises(RunError, match=r"3\.0"):
        part(*study)
