"""Charts show what is in the tables, and files have the size that was asked for."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from analysis.config import FigureConfig
from analysis.figures.charts import LABEL_GAP, Axis, curve_chart, dot_chart, line_chart, spread_apart
from analysis.figures.files import figure, write_figure
from analysis.figures.style import Frame, accuracy_domain, finished, looks_of
from pairscale.errors import ConfigError

PANEL = Frame(300, 200)
LEVELS = pd.DataFrame({"name": ["humans"], "accuracy": [0.95]})


def units(curves=("LSTM", "GPT-2"), accuracy=lambda size, seed: 0.5 + 0.05 * size + 0.01 * seed):
    rows = [
        (
            f"{curve}-{size}-{seed}",
            curve,
            f"{2**size}k",
            seed,
            1000 * 2**size,
            "words",
            "overall",
            "overall",
            accuracy(size, seed),
        )
        for curve in curves
        for size in range(4)
        for seed in (1, 2)
    ]
    return pd.DataFrame(
        rows, columns=["run", "curve", "size", "seed", "sample_words", "unit", "level", "name", "accuracy"]
    )


def lines(curves=("LSTM", "GPT-2"), width=0.02):
    rows = [(curve, "overall", "overall", 1000.0 * 2**size, 0.5 + 0.05 * size) for curve in curves for size in range(4)]
    table = pd.DataFrame(rows, columns=["curve", "level", "name", "sample_words", "accuracy"])
    return table.assign(low=table["accuracy"] - width, high=table["accuracy"] + width)


def chart(table=None, fits=None, levels=LEVELS, **options):
    table, fits = units() if table is None else table, lines() if fits is None else fits
    return finished(curve_chart(table, fits, looks_of(list(table["curve"].unique())), levels, frame=PANEL, **options))


def rows_of(specification, mark):
    """Return the data of the layers with a mark."""
    layers = [layer for layer in specification["layer"] if layer["mark"]["type"] == mark]
    return [specification["datasets"][layer["data"]["name"]] for layer in layers]


def test_a_chart_of_curves_shows_runs_means_and_fits():
    specification = chart()
    runs, means = rows_of(specification, "point")
    assert len(runs) == 16
    assert [row["accuracy"] for row in means] == pytest.approx([0.515, 0.565, 0.615, 0.665] * 2)
    (band,) = rows_of(specification, "area")
    assert [row["high"] - row["low"] for row in band] == pytest.approx([0.04] * len(band))
    assert {row["name"] for row in rows_of(specification, "rule")[0]} == {"humans", "chance"}


def test_names_stand_once_beside_the_panel():
    names = [row["name"] for layer in rows_of(chart(labelled=True), "text") for row in layer]
    assert sorted(names) == ["GPT-2", "LSTM", "humans"]


def test_curves_without_fits_or_bands_are_drawn():
    assert rows_of(chart(fits=lines().iloc[:0]), "area") == []
    assert rows_of(chart(fits=lines(width=np.nan)), "area") == []


@pytest.mark.parametrize("accuracies", [(0.3, 0.99), (0.52, 0.55), (0.0, 1.0)])
def test_the_axis_holds_all_accuracies_and_a_tick_at_chance(accuracies):
    low, high = accuracies
    specification = chart(units(accuracy=lambda size, seed: low if size < 2 else high), levels=LEVELS.iloc[:0])
    y = next(layer["encoding"]["y"] for layer in specification["layer"] if layer["mark"]["type"] == "point")
    assert y["scale"]["domain"][0] <= low
    assert y["scale"]["domain"][1] >= high
    assert 0.5 in y["axis"]["values"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_names_beside_a_panel_never_overlap_and_keep_their_order(positions):
    gap = LABEL_GAP / 420
    places = spread_apart(np.asarray(positions), gap, (0.0, 1.0))
    order = np.argsort(positions, kind="stable")
    assert (np.diff(places[order]) >= gap - 1e-9).all()


def test_names_with_enough_room_stay_in_their_place():
    assert spread_apart(np.asarray([0.9, 0.1]), 0.05, (0, 1)).tolist() == [0.9, 0.1]


def test_domains_are_whole_tenths_around_chance():
    assert accuracy_domain(pd.Series([0.55, 0.62])) == (0.4, 0.7)
    assert accuracy_domain(pd.Series([0.2, 1.0])) == (0.2, 1.0)


def test_dots_have_intervals_only_where_they_are_known():
    table = pd.DataFrame(
        {"name": ["a", "b"], "curve": "LSTM", "slope": [0.1, 0.2], "low": [0.05, np.nan], "high": [0.15, np.nan]}
    )
    specification = finished(dot_chart(table, "slope", Axis("Slope"), looks_of(["LSTM"]), frame=PANEL))
    assert [row["name"] for row in rows_of(specification, "rule")[1]] == ["a"]
    assert len(rows_of(specification, "point")[0]) == 2
    unknown = finished(dot_chart(table.assign(low=np.nan), "slope", Axis("Slope"), looks_of(["LSTM"]), frame=PANEL))
    assert len(rows_of(unknown, "rule")) == 1  # the reference alone


def test_lines_join_means():
    specification = finished(
        line_chart(
            units().rename(columns={"accuracy": "loss"}), "loss", Axis("Loss"), looks_of(["LSTM", "GPT-2"]), frame=PANEL
        )
    )
    assert len(rows_of(specification, "line")[0]) == 8


@pytest.mark.parametrize(
    "size", [{"width": "3.3in"}, {"width": "174mm", "font_size": "9pt"}, {"width": "6in", "height": "2in"}]
)
def test_figures_are_as_wide_as_asked_for(tmp_path, size):
    config = FigureConfig(**size)
    draw = partial(curve_chart, units(), lines(), looks_of(["LSTM", "GPT-2"]), LEVELS)
    write_figure(tmp_path, "f", [draw] * 3, config, 3, looks_of(["LSTM", "GPT-2"]))
    width = re.search(r'width="([\d.]+)"', (tmp_path / "f.svg").read_text())[1]
    assert float(width) == pytest.approx(config.pixels("width"), abs=0.01)
    with Image.open(tmp_path / "f.png") as png:
        assert png.width == pytest.approx(config.pixels("width") / 96 * 300, abs=2)
        assert len(png.convert("RGB").getcolors(2**24)) > 20  # no empty sheet
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", (tmp_path / "f.pdf").read_bytes())
    assert float(box[1]) == pytest.approx(config.pixels("width") * 0.75, abs=0.5)


def test_small_panels_have_one_title_for_each_axis():
    draw = partial(curve_chart, units(), lines(), looks_of(["LSTM", "GPT-2"]), LEVELS)
    svg = figure([draw] * 6, FigureConfig(), 3)
    assert svg.count(">Words of training text<") == 1
    assert svg.count(">Accuracy<") == 1
    assert svg.count(">chance<") == 2  # one per row


@pytest.mark.parametrize(
    ("name", "value"), [("width", "7"), ("width", "50in"), ("height", "1mm"), ("font_size", "big")]
)
def test_a_length_without_a_unit_or_out_of_bounds_is_an_error(name, value):
    with pytest.raises(ConfigError, match=f"analysis.figure.{name}"):
        FigureConfig(**{name: value})
