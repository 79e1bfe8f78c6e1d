"""Figures: their contents, the places of their labels, and their files."""

import colorsys
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.figures.curves import (
    Level,
    accuracy_axis,
    accuracy_domain,
    learning_curves,
    overview_chart,
    perplexity_chart,
    slope_chart,
)
from analysis.exhibits.figures.labels import spread_apart
from analysis.exhibits.figures.methods import prefix_chart
from analysis.exhibits.figures.style import HUES, finished, side_by_side, style, write_figure
from analysis.exhibits.tables.slopes import with_published
from analysis.exhibits.tables.text import title
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from tests.support.simulated_study import SimulatedStudy

TWELVE = {f"phenomenon_{i:02d}": (1, 0.5 + 0.002 * i, 0.001 * i) for i in range(12)}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    SimulatedStudy(phenomena=TWELVE, pairs=20).write(runs)
    return judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")


@pytest.fixture(scope="module")
def curves(judged):
    fitted = fit_curves(judged, CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=10, seed=1))
    fitted.slopes = with_published(fitted.slopes, judged.runs, "blimp")
    return fitted


def test_twelve_names_look_different():
    look = style([f"n{i}" for i in range(12)])
    assert len(set(look["colour"] + look["dash"].map(str))) == 12
    assert len(set(look["colour"] + look["shape"])) == 12
    lightness = [colorsys.rgb_to_hls(*(int(hue[i : i + 2], 16) / 255 for i in (1, 3, 5)))[1] for hue in HUES]
    assert all(0.2 < value < 0.75 for value in lightness)  # seen on white and on black


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.2))
def test_names_at_the_ends_of_lines_do_not_overlap(ends, gap):
    placed = spread_apart(ends, gap)
    order = np.argsort(ends, kind="stable")
    assert all(placed[b] - placed[a] >= gap - 1e-9 for a, b in pairwise(order))
    assert np.mean(placed) == pytest.approx(np.mean(ends), abs=1e-6)  # least squares moves no block as a whole


def test_names_with_enough_room_stay_in_their_place():
    assert spread_apart([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])


def layers_of(specification, mark):
    return [layer for layer in specification["layer"] if layer["mark"]["type"] == mark]


def rows_of(specification, layer):
    return specification["datasets"][layer.get("data", specification.get("data"))["name"]]


def test_learning_curves_show_fitted_lines_means_runs_and_overall_accuracy(curves):
    specification = finished(learning_curves(curves, "lstm_tiny", people=0.9))
    overall, lines = layers_of(specification, "line")
    assert {row["name"] for row in rows_of(specification, overall)} == {"Overall"}
    ends = pd.DataFrame(rows_of(specification, lines)).groupby("name")["accuracy"].agg(["first", "last"])
    slopes = curves.slopes.query("group == 'lstm_tiny' and level == 'phenomenon'").set_index("name")["slope"]
    slopes.index = slopes.index.map(title)
    drawn = (ends["last"] - ends["first"]) / 3  # from 125k to 1M words are three doublings
    assert drawn.to_dict() == pytest.approx(slopes.to_dict())
    runs, means = layers_of(specification, "point")
    assert len(rows_of(specification, runs)) == 13 * 8
    assert len(rows_of(specification, means)) == 12 * 4
    assert len(layers_of(specification, "area")) == 1
    axis = lines["encoding"]["x"]
    assert (axis["scale"]["type"], axis["scale"]["base"]) == ("log", 2)
    assert axis["axis"]["values"] == [125_000, 250_000, 500_000, 1_000_000]
    rules = rows_of(specification, layers_of(specification, "rule")[0])
    assert {row["accuracy"] for row in rules} == {0.5, 0.9}
    assert specification["params"] == [{"name": "highlight", "value": ""}]


def test_the_overview_has_all_curves_and_names_every_line(curves):
    levels = [Level("people", 0.886), Level("GPT-2 (paper)", 0.83)]
    specification = finished(overview_chart(curves, levels))
    (lines,), (bands,) = layers_of(specification, "line"), layers_of(specification, "area")
    assert {row["name"] for row in rows_of(specification, lines)} == {"lstm_tiny", "txl_tiny"}
    domain = lines["encoding"]["y"]["scale"]["domain"]
    band = pd.DataFrame(rows_of(specification, bands))
    assert domain[0] <= band["low"].min() <= band["high"].max() <= domain[1]  # not clipped
    assert 0.5 in lines["encoding"]["y"]["axis"]["values"]
    named = {row["name"] for layer in layers_of(specification, "text") for row in rows_of(specification, layer)}
    assert named == {"lstm_tiny", "txl_tiny", "people", "GPT-2 (paper)"}
    rules = rows_of(specification, layers_of(specification, "rule")[0])
    assert {row["accuracy"] for row in rules} == {0.5, 0.83, 0.886}


def test_curves_without_lines_join_their_means(curves):
    unfitted = replace(curves, lines=curves.lines.iloc[:0])
    specification = finished(overview_chart(unfitted))
    (lines,) = layers_of(specification, "line")
    means = curves.accuracies.query("level == 'overall' and pairs == 'all'")["accuracy"]
    assert [row["accuracy"] for row in rows_of(specification, lines)] == list(means)


@pytest.mark.parametrize("accuracies", [(0.0, 1.0), (0.61, 0.99), (0.93, 0.97), (0.2, 0.31)])
@pytest.mark.parametrize("small", [False, True])
def test_every_axis_of_accuracies_has_a_tick_at_chance(curves, accuracies, small):
    points = curves.points.assign(accuracy=np.resize(accuracies, len(curves.points)))
    domain = accuracy_domain(replace(curves, points=points, lines=curves.lines.iloc[:0]))
    axis = accuracy_axis(domain, small)["axis"]
    assert 0.5 in axis["values"]
    assert axis["tickCount"] >= len(axis["values"])
    assert domain[0] <= min(accuracies) <= max(accuracies) <= domain[1]


def test_panels_share_the_axis_of_accuracies(curves):
    domains = {
        tuple(layers_of(finished(learning_curves(curves, group)), "line")[1]["encoding"]["y"]["scale"]["domain"])
        for group in ("lstm_tiny", "txl_tiny")
    }
    assert domains == {accuracy_domain(curves)}


def test_slope_chart_has_published_slopes_hollow(judged, curves):
    slopes = curves.slopes.assign(published_slope=0.04)
    hollow = layers_of(finished(slope_chart(slopes)), "point")[-1]
    assert hollow["mark"]["filled"] is False
    assert hollow["encoding"]["x"]["field"] == "published_slope"
    assert len(layers_of(finished(slope_chart(curves.slopes)), "point")) == 1  # nothing published, nothing shown


def test_figures_are_written(judged, curves, tmp_path):
    panels = [learning_curves(curves, group) for group in ("lstm_tiny", "txl_tiny")]
    for name, chart in {
        "curves": side_by_side(panels),
        "slopes": slope_chart(curves.slopes),
        "perplexity": perplexity_chart(judged.runs),
    }.items():
        write_figure(tmp_path, name, chart)
        svg = ET.parse(tmp_path / f"{name}.svg").getroot()
        width = struct.unpack(">I", (tmp_path / f"{name}.png").read_bytes()[16:20])[0]
        assert width == pytest.approx(2 * float(svg.get("width")), abs=2)
    text = "".join(ET.parse(tmp_path / "curves.svg").getroot().itertext())
    for shown in ("lstm_tiny", "txl_tiny", "125k", "1M", "Phenomenon 11", "Words of training text"):
        assert shown in text
    assert not list(tmp_path.glob(".*"))


def test_a_group_without_one_prefix_scores_leaves_the_colours_of_the_others():
    rows = [("lstm", "two_prefix"), ("txl", "two_prefix"), ("txl", "one_prefix")]
    columns = ["group", "method", "name", "accuracy", "full"]
    accuracies = pd.DataFrame([(*row, name, 0.6, 0.7) for row in rows for name in ("Overall", "A")], columns=columns)
    panels = [prefix_chart(accuracies, method, width=200).to_dict() for method in ("one_prefix", "two_prefix")]
    scales = [layer["encoding"]["color"]["scale"] for panel in panels for layer in panel["layer"]]
    assert all(scale == {"domain": ["lstm", "txl"], "range": list(HUES[:2])} for scale in scales)
    drawn = [{row["group"] for layer in panel["layer"] for row in rows_of(panel, layer)} for panel in panels]
    assert drawn == [{"txl"}, {"lstm", "txl"}]
