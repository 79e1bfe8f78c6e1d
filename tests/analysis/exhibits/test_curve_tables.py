"""The tables beside the slopes, from a study of six sizes scored by two methods."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from analysis.config import CurvesConfig
from analysis.curves.coverage import coverage_for
from analysis.curves.intervals import Interval
from analysis.exhibits.tables.curves import context_changes, curve_tables, write_curve_tables
from analysis.exhibits.tables.text import p_text
from analysis.sections.curves import context_exhibits, coverage_exhibit, curve_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.published import read_published
from tests.support.simulated_study import SimulatedStudy

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
SIX = ("125k", "250k", "500k", "1M", "2M", "4M")


@pytest.mark.slow
def test_the_command_writes_its_tables(tmp_path):
    simulated = SimulatedStudy(sizes=SIX, pairs=30)
    simulated.write(tmp_path)
    judged = judgements(collect(tmp_path, simulated.name), "blimp", "lp", "wrong")
    again = dataclasses.replace(judged, label="blimp+context-eos-32", outcome=judged.outcome * 0)
    labels = {"blimp": judged, again.label: again}
    for label, of in labels.items():
        tables = curve_tables(of, read_published("blimp"), CONFIG)
        if label != "blimp":
            tables["context"] = context_changes(labels, CONFIG.confidence)[label]
        write_curve_tables(tmp_path, of.label, of, tables)
    tables = {path.name: pd.read_csv(path) for path in tmp_path.glob("*.csv")}
    names = [f"{label}-{table}.csv" for label in labels for table in (
        "words-to-people", "shapes", "averaged-shapes", "slope-differences", "mixed-model"
    )]  # fmt: skip
    assert set(tables) == {*names, "blimp+context-eos-32-context.csv"}
    words = tables["blimp-words-to-people.csv"]
    assert set(words["group"]) == {"lstm_tiny", "txl_tiny"}
    assert set(words.loc[words["level"] == "phenomenon", "name"]) == set(simulated.phenomena)
    assert (words["scores"] == "lp").all()
    assert tables["blimp-shapes.csv"].groupby(["group", "level", "name"])["preferred"].sum().eq(1).all()
    change = tables["blimp+context-eos-32-context.csv"]
    assert (change["difference"] == -change["first"]).all()
    write_curve_tables(tmp_path, "blimp-mean_lp", judged, {"shapes": tables["blimp-shapes.csv"]})
    assert (tmp_path / "blimp-mean_lp-shapes.csv").exists()


@pytest.mark.slow
def test_tables_become_sections_of_the_report(tmp_path):
    simulated = SimulatedStudy(sizes=SIX, pairs=30)
    simulated.write(tmp_path)
    judged = judgements(collect(tmp_path, simulated.name), "blimp", "lp", "wrong")
    tables = curve_tables(judged, read_published("blimp"), CONFIG)
    people, differences, shapes, averaged, logits = curve_exhibits(tables, 0.95)
    assert [one.name for one in (people, differences, shapes, averaged, logits)] == [
        "people", "comparisons", "shapes", "averaged-shapes", "logits",
    ]  # fmt: skip
    first = tables["averaged-shapes"].query("level == 'overall' and quantity == 'slope'").iloc[0]
    shown = averaged.table.query("phenomenon == 'overall'").iloc[0]
    assert (shown["slope at the smallest size"], shown["slope at the smallest size, low"]) == (
        first["value"],
        first["low"],
    )
    assert re.fullmatch(
        r"overall a doubling of the text adds \+\.\d+ at the smallest size \(95% interval \[[+−]\.\d+, \+\.\d+\]\) and "
        r"[+−]\.\d+ at the largest size \(95% interval \[[+−]\.\d+, [+−]\.\d+\]\), averaged over shapes\.",
        averaged.takeaways[0][1],
    )
    assert people.overall
    assert set(people.table["phenomenon"].iloc[people.overall]) == {"overall"}
    assert "if the fitted curve continued; nothing here shows that it does." in people.about
    whole_benchmark = "Corrected for all comparisons of phenomena, or of the whole, on this benchmark"
    assert differences.definitions["p (Holm)"].startswith(whole_benchmark)
    differences.write(tmp_path / "report")
    assert "Anaphor agreement" in (tmp_path / "report" / "comparisons.svg").read_text()
    whole = tables["slope-differences"].query("level == 'overall'").iloc[0]
    shown = differences.table.set_index("phenomenon").loc["overall"]
    assert (shown["difference"], shown["p (Holm)"]) == (whole["difference"], whole["p_holm"])
    assert set(shapes.table["preferred"]) <= set(shapes.table.columns)
    one_size = {name: rows.iloc[:0] for name, rows in tables.items()}
    assert curve_exhibits(one_size, 0.95) == []


def test_the_effect_of_context_is_a_section():
    rows = pd.DataFrame(
        {"group": "g", "level": ["overall", "paradigm", "overall", "overall"], "name": ["overall", "p", "overall",
         "overall"], "size": ["all", "all", "125k", "1M"], "runs": [4, 4, 2, 2], "first": 0.5, "second": 0.6,
         "difference": [0.1, 0.1, 0.05, 0.15], "low": 0.0, "high": 0.2, "p_holm": 0.0004}
    )  # fmt: skip
    shown, by_size = context_exhibits(rows, "blimp+context-eos-32", 0.95)
    assert len(shown.table) == 1
    assert "<.001" in shown.rows()[0]
    assert by_size.table[["size", "runs", "difference"]].to_numpy().tolist() == [["125k", 2, 0.05], ["1M", 2, 0.15]]
    assert len(context_exhibits(rows.iloc[:3], "blimp+context-eos-32", 0.95)) == 1
    assert p_text(0.034) == ".034"


def test_coverage_is_shown_only_for_simulated_designs():
    sizes = np.repeat([1000, 2000, 4000, 8000], 2)
    runs = pd.DataFrame({"group": "g", "size": sizes, "sample_words": sizes, "seed": [1, 2] * 4, "nested": False})
    slopes = pd.DataFrame({"group": ["g"], "method": [Interval.T_BENT], "low": 0.1})
    shown = coverage_exhibit([(runs, slopes)], 0.95).table
    assert set(coverage_for(runs, slopes)["runs"]) == {"2,2,2,2"}
    assert {"slope", "difference of slopes", "lack of fit"} <= set(shown["quantity"])
    assert not any("nested" in name for name in shown["design"])
    assert coverage_exhibit([(runs.iloc[:-1], slopes)], 0.95) is None  # nothing like it was simulated
    assert coverage_exhibit([(runs.assign(nested=True), slopes)], 0.95) is None
    assert coverage_exhibit([(runs, slopes.assign(low=np.nan))], 0.95) is None  # its limits are left out
    assert coverage_exhibit([(runs.assign(overlap=0.7), slopes)], 0.95) is None


def test_coverage_is_that_of_the_intervals_shown():
    """Coverage was simulated for the crossed bootstrap at 95%, not for interval=t or another confidence."""
    sizes = np.repeat([1000, 2000, 4000, 8000], 5)
    runs = pd.DataFrame({"group": "g", "size": sizes, "sample_words": sizes, "seed": [*range(5)] * 4, "nested": False})
    slopes = pd.DataFrame({"group": ["g"], "method": [Interval.BOOTSTRAP], "low": 0.1})
    assert Interval.BOOTSTRAP in set(coverage_exhibit([(runs, slopes)], 0.95).table["interval"])
    assert coverage_exhibit([(runs, slopes)], 0.8) is None
    assert coverage_exhibit([(runs, slopes.assign(method=Interval.T_SIZES))], 0.95) is None
    two = runs[runs["seed"] < 2]
    both = [(runs, slopes), (two, slopes.assign(method=Interval.T_POOLED))]
    assert {Interval.BOOTSTRAP, Interval.T_BENT} <= set(coverage_exhibit(both, 0.95).table["interval"])


def test_only_policies_that_differ_in_context_are_compared(tmp_path):
    simulated = SimulatedStudy(models=("lstm_tiny",), pairs=20)
    simulated.write(tmp_path)
    judged = judgements(collect(tmp_path, simulated.name), "blimp", "lp", "wrong")
    labels = ["blimp", "blimp+unk-skip", "blimp+context-eos-32+unk-skip", "blimp+context-eos-9+pairs-10"]
    assert list(context_changes(dict.fromkeys(labels, judged), 0.95)) == ["blimp+context-eos-32+unk-skip"]
