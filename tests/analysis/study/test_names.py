"""Curves whose names a report gives to something else: people, columns, published models."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.curves.fit import fit_curves
from analysis.exhibits.tables.slopes import with_published
from analysis.report.curves import _levels
from analysis.sections.benchmark import study_exhibits
from analysis.sections.section import Section
from analysis.study.names import set_apart
from analysis.study.sources.source import sources
from eval.published import read_published
from pairscale.command.compose import compose
from tests.support.simulated_section import CONFIG

PARADIGMS = ("passive_1", "passive_2", "wh_island", "npi_present_1")


def study_of(path, models):
    """Return the study of a table with accuracies of these models on some of BLiMP, at two sizes, two runs each."""
    rng = np.random.default_rng(3)
    rows = [(model, size, seed, paradigm, rng.uniform(0.6, 0.9), 1000) for model in models for size in ("1M", "4M")
            for seed in (1, 2) for paradigm in PARADIGMS]  # fmt: skip
    table = pd.DataFrame(rows, columns=["model", "size", "seed", "paradigm", "accuracy", "n"])
    table.to_csv(path, index=False)
    (study,) = sources()["table"].collect(
        compose("analysis", ["source=table", f"path={path}", "results.benchmark=blimp"])
    )
    return study, table


def section_of(study):
    judged = sources()["table"].judge(study, "blimp", "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    curves.slopes = with_published(curves.slopes, judged.runs, "blimp")
    return Section(judged, curves, read_published("blimp"))


@pytest.mark.parametrize("name", ["people", "paradigm", "phenomenon", "GPT-2 (paper)", "LSTM (paper)", "LSTM"])
def test_a_curve_of_a_taken_name_stands_beside_what_has_it(tmp_path, name):
    study, rows = study_of(tmp_path / "a.csv", [name, "mine"])
    section = section_of(set_apart(study))
    called = name if name == "LSTM" else f"{name} (study)"
    assert set(section.judged.runs["group"]) == {called, "mine"}
    exhibits = {one.name: one for one in study_exhibits(section.judged, section.curves, section.published)}
    table = exhibits["table4"].table.set_index("paradigm")
    largest = rows[(rows["model"] == name) & (rows["size"] == "4M")]
    assert table[called].to_dict() == pytest.approx(largest.groupby("paradigm")["accuracy"].mean().to_dict())
    theirs = section.published.query("model == 'people' and level == 'paradigm'").set_index("name")["accuracy"]
    assert table["people"].to_dict() == pytest.approx(theirs[[*PARADIGMS]].to_dict())
    levels = _levels(section).table
    assert {f"{called} at 4M words", "LSTM (published)", "people (published)"} <= set(levels)


def test_a_renamed_curve_is_noted_and_no_other_is_renamed(tmp_path):
    study, _ = study_of(tmp_path / "a.csv", ["people", "people (study)", "People"])
    apart = set_apart(study)
    assert set(apart.runs["group"]) == {"people (study) (study)", "people (study)", "People"}
    assert apart.runs["base"].tolist() == apart.runs["group"].tolist()
    (note,) = set(apart.notes) - set(study.notes)
    assert note.startswith('The study\'s "people" is called "people (study) (study)" here')
    beside = study.runs[study.runs["group"] == "people"][["group", "manifest"]]
    without = replace(study, runs=study.runs[study.runs["group"] == "People"], unplaced=beside)
    assert set(set_apart(without).unplaced["group"]) == {"people (study)"}
    assert set_apart(replace(without, unplaced=beside.iloc[:0])).notes == study.notes
