"""Acquisition, and words and children, in the report of a simulated study."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.config import CurvesConfig
from analysis.curves.acquisition.acquisition import acquire
from analysis.curves.fit import fit_curves
from analysis.exhibits.figures.style import finished
from analysis.exhibits.sentences.acquisition import acquired_text, limits_text, shape_sentence
from analysis.measures.children import PEARSON, SIZE, SPEARMAN, SURPRISAL
from analysis.sections.acquisition.children import children_sections
from analysis.sections.acquisition.exhibits import acquisition as exhibits_of
from analysis.sections.section import Section
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.child_files import write_study
from tests.support.simulated_section import report_of
from tests.support.simulated_study import SimulatedStudy

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
PHENOMENA = {
    "anaphor_agreement": (1, 0.60, 0.06), "binding": (1, 0.5, 0.04), "ellipsis": (1, 0.75, 0.03),
    "island_effects": (1, 0.5, 0.0), "npi_licensing": (1, 0.52, 0.02), "quantifiers": (1, 0.7, -0.05),
}  # fmt: skip


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    study = SimulatedStudy(phenomena=PHENOMENA, seeds=(1, 2, 3), pairs=100)
    study.write(runs)
    judged = judgements(collect(runs, study.name), "blimp", "lp", "wrong")
    return Section(judged, fit_curves(judged, CONFIG), pd.DataFrame(), acquisition=acquire(judged, CONFIG))


@pytest.fixture(scope="module")
def exhibits(section):
    return {of.name: of for of in exhibits_of(section, report_of(section))}


def test_exhibits_have_tables_figures_and_sentences(exhibits, tmp_path):
    names = ["acquisition-order", "acquisition-shapes", "acquisition-ranks", "acquisition-correlations"]
    assert list(exhibits) == names
    for exhibit in exhibits.values():
        assert exhibit.rows()
        assert exhibit.takeaways
        for draw in exhibit.charts.values():
            assert finished(draw())["$schema"]
        exhibit.write(tmp_path)
    assert len(exhibits["acquisition-shapes"].charts) == len(PHENOMENA)


def test_sentences_name_what_is_sure(exhibits):
    sizes = dict(exhibits["acquisition-order"].takeaways)["lstm_tiny"]
    assert sizes.startswith("6 phenomena, threshold .600; surely acquired before 125k words: ellipsis")
    assert "surely not acquired by 1M words: " in sizes
    shapes = dict(exhibits["acquisition-shapes"].takeaways)["lstm_tiny"]
    assert "accuracy falls in 1 phenomenon" in shapes
    assert shapes.endswith("(by Holm over 6 phenomena).")
    agree = exhibits["acquisition-correlations"].takeaways[0]
    assert agree[0] == "lstm_tiny and txl_tiny"
    assert "Spearman +" in agree[1]


def test_orders_of_benchmarks_that_share_names_are_compared(section):
    other = replace(section, judged=replace(section.judged, label="climp"))
    table = {of.name: of for of in exhibits_of(section, report_of(section, other))}["acquisition-correlations"].table
    beside = table[table["other"] == "lstm_tiny, CLiMP"]
    assert set(beside["in common"]) == {6}
    assert (beside["Spearman"].dropna() > 0.99).all()


def test_texts_of_censored_amounts():
    ends = {"from_words": 125_000, "to_words": 1_000_000, "low": 0.0, "high": np.inf}
    row = pd.Series({"words": np.nan, "status": "before the smallest size", **ends})
    assert acquired_text(row) == "below 125k"
    assert limits_text(row) == "below 125k to beyond 1M"
    assert acquired_text(pd.Series({**row, "words": 361_234.0})) == "360k"


def test_a_turn_is_named():
    rows = pd.DataFrame({"name": ["a_b", "c"], "shape": ["U", "rises"], "p_trend": 0.01, "p_turn": 0.01, "note": ""})
    text = shape_sentence(rows, "phenomenon")
    assert text == "accuracy rises in 1 phenomenon; falls, then rises (a U) in a b (by Holm over 2 phenomena)."


def settings(folder, **values):
    paths = [f"paths.{name}={folder / name}" for name in ("runs", "reports", "store")]
    chosen = [f"analysis.{name}={value}" for name, value in values.items()]
    return compose("analysis", ["study=simulated", *paths, *chosen])


@pytest.fixture(scope="module")
def children(tmp_path_factory):
    folder = tmp_path_factory.mktemp("children")
    write_study(folder).to_csv(folder / "ages.csv", index=False)
    return folder


def test_words_that_children_know_later_need_more_text(children, tmp_path):
    study = collect(children / "runs", "simulated")
    [section] = children_sections(study, settings(children, children=children / "ages.csv"))
    assert section.extent.startswith("60 words of ages.csv, with the age at which children know them (age, months)")
    [finding] = section.findings
    assert finding.text.startswith("The model needs more text for words that children know later: Spearman +.9")
    assert section.warnings[0].startswith("Without controls for frequency, as the training text is not there")
    table = section.exhibits[0].table
    rows = table[(table["of"] == SIZE)].set_index("measure")
    for measure in (SPEARMAN, PEARSON):
        row = rows.loc[measure]
        assert row["low"] < row["low_words"] < row["correlation"] < row["high_words"] < row["high"]
        assert row["correlation"] > 0.9
    at_sizes = table[(table["of"] == SURPRISAL) & (table["measure"] == SPEARMAN)]
    assert at_sizes["size"].tolist() == ["125k", "250k", "500k", "1M", "2M"]
    for exhibit in section.exhibits:
        exhibit.rows()
        exhibit.write(tmp_path)
        for draw in exhibit.charts.values():
            assert finished(draw())["$schema"]


def test_children_is_refused_without_words_or_run_folders(children, tmp_path):
    study = collect(children / "runs", "simulated")
    assert children_sections(study, settings(children)) == []
    pd.DataFrame({"word": ["zebra"], "age": [30]}).to_csv(tmp_path / "few.csv", index=False)
    with pytest.raises(InputError, match=r"0 words of the list have 5 occurrences in the text of .* \(needs 20\)"):
        children_sections(study, settings(children, children=tmp_path / "few.csv"))
    with pytest.raises(ConfigError, match="needs run folders"):
        children_sections(study, replace(settings(children, children=children / "ages.csv"), source="wandb"))
    with pytest.raises(ConfigError, match=r"analysis\.children_text=a: only with analysis\.children=FILE"):
        settings(children, children_text="a")
    with pytest.raises(ConfigError, match=r"analysis\.acquisition_margin=0\.0: must lie above 0 and not above 0\.5"):
        settings(children, acquisition_margin=0.0)
