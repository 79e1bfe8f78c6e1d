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
from analysis.figures.charts import LABEL_GAP, LABEL_HEIGHT, Axis, curve_chart, line_chart, spread_apart
from analysis.figures.files import figure, write_figure
from analysis.figures.style import DASHES, HUES, looks_of
from pairscale.errors import ConfigError

LEVELS = pd.DataFrame({"name": ["humans"], "accuracy": [0.95]})
CURVES = ["LSTM", "GPT-2"]
LOOKS = looks_of(CURVES)


def units(accuracy=lambda size, seed: 0.5 + 0.05 * size + 0.01 * seed):
    return pd.DataFrame([
        {"run": f"{curve}-{size}-{seed}", "curve": curve, "size": f"{2**size}k", "seed": seed, "unit": "words",
         "sample_words": 1000 * 2**size, "level": "overall", "name": "overall", "accuracy": accuracy(size, seed)}
        for curve in CURVES for size in range(4) for seed in (1, 2)
    ])  # fmt: skip


def lines(width=0.02):
    table = units(lambda size, seed: 0.5 + 0.05 * size).drop_duplicates(["curve", "size"])
    return table.assign(low=table["accuracy"] - width, high=table["accuracy"] + width)


DRAW = partial(curve_chart, units(), lines(), LOOKS, LEVELS)


def rows_of(chart, mark):
    """Return the data of the layers with a mark."""
    return [layer["data"]["values"] for layer in chart["layer"] if layer["mark"]["type"] == mark]


def test_a_chart_of_curves_shows_runs_means_and_fits():
    chart = DRAW()
    runs, means = rows_of(chart, "point")
    assert len(runs) == 16
    assert [row["accuracy"] for row in means] == pytest.approx([0.515, 0.565, 0.615, 0.665] * 2)
    (band,) = rows_of(chart, "area")
    assert [row["high"] - row["low"] for row in band] == pytest.approx([0.04] * len(band))
    assert {row["name"] for row in rows_of(chart, "rule")[0]} == {"humans", "chance"}
    (names,) = rows_of(DRAW(labelled=True), "text")
    assert [row["name"] for row in names] == ["LSTM", "GPT-2", "humans"]  # once for each, beside the panel
    svg = figure([DRAW()] * 6, FigureConfig(), 3)
    assert svg.count(">Accuracy<") == 1
    assert svg.count(">chance<") == 2  # one per row
    joined = line_chart(units(), "accuracy", Axis("Loss"), LOOKS)
    assert [row["accuracy"] for row in rows_of(joined, "line")[0]] == [row["accuracy"] for row in means]


@pytest.mark.parametrize("fits", [lines().iloc[:0], lines(width=np.nan)])
def test_curves_without_fits_or_bands_are_drawn(fits):
    chart = curve_chart(units(), fits, LOOKS, LEVELS)
    assert rows_of(chart, "area") == []
    assert len(rows_of(chart, "point")) == 2


@pytest.mark.parametrize(("low", "high", "domain"), [(0.3, 0.99, (0.3, 1)), (0.52, 0.55, (0.4, 0.6)), (0, 1, (0, 1))])
def test_the_axis_has_whole_tenths_around_all_accuracies_and_a_tick_at_chance(low, high, domain):
    table = units(lambda size, seed: low if size < 2 else high)
    chart = curve_chart(table, lines().iloc[:0], LOOKS, LEVELS.iloc[:0])
    y = next(layer["encoding"]["y"] for layer in chart["layer"] if layer["mark"]["type"] == "point")
    assert y["scale"]["domain"] == pytest.approx(domain)
    assert 0.5 in y["axis"]["values"]


def test_many_names_differ_in_their_looks():
    looks = looks_of([str(number) for number in range(len(HUES) * len(DASHES))])
    assert len(set(looks["colour"] + looks["dash"].map(str))) == len(looks)
    assert len(set(looks["colour"] + looks["shape"])) == len(looks)
    assert list(looks_of(["one", "two"], {"two": "black"})["colour"]) == [HUES[0], "black"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_names_beside_a_panel_never_overlap_and_keep_their_order(positions):
    gap = LABEL_GAP / LABEL_HEIGHT
    places = spread_apart(np.asarray(positions), gap, (0.0, 1.0))
    order = np.argsort(positions, kind="stable")
    assert (np.diff(places[order]) >= gap - 1e-9).all()
    assert spread_apart(np.asarray([0.9, 0.1]), 0.05, (0, 1)).tolist() == [0.9, 0.1]  # with enough room


@pytest.mark.parametrize(
    "size", [{"width": "3.3in"}, {"width": "174mm", "font_size": "9pt"}, {"width": "6in", "height": "2in"}]
)
def test_figures_are_as_wide_as_asked_for(tmp_path, size):
    config = FigureConfig(**size)
    write_figure(tmp_path, "f", [DRAW()] * 3, config, 3)
    width = re.search(r'width="([\d.]+)"', (tmp_path / "f.svg").read_text())[1]
    assert float(width) == pytest.approx(config.pixels("width"), abs=0.01)
    with Image.open(tmp_path / "f.png") as png:
        assert png.width == pytest.approx(config.pixels("width") / 96 * 300, abs=2)
        assert len(png.convert("RGB").getcolors(2**24)) > 20  # no empty sheet
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", (tmp_path / "f.pdf").read_bytes())
    assert float(box[1]) == pytest.approx(config.pixels("width") * 0.75, abs=0.5)


@pytest.mark.parametrize(
    ("name", "value"), [("width", "7"), ("width", "50in"), ("height", "1mm"), ("font_size", "big")]
)
def test_a_length_without_a_unit_or_out_of_bounds_is_an_error(name, value):
    with pytest.raises(ConfigError, match=f"analysis.figure.{name}"):
        FigureConfig(**{name: value})
