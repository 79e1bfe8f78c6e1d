"""Figures: their contents, the places of their labels, and their files."""

import colorsys
import math
import re
import struct
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import vl_convert
from hypothesis import given

from analysis.config import CurvesConfig, FigureConfig
from analysis.curves.fit import CHANCE, fit_curves
from analysis.exhibits.figures.accuracies import condition_chart
from analysis.exhibits.figures.acquisition import order_chart
from analysis.exhibits.figures.curves import (
    Level,
    accuracy_domain,
    curves_together,
    learning_curves,
    overview_chart,
    perplexity_chart,
    slope_chart,
    within_limits,
)
from analysis.exhibits.figures.files import write_figure
from analysis.exhibits.figures.labels import spread_apart
from analysis.exhibits.figures.methods import length_chart, prefix_chart
from analysis.exhibits.figures.style import HUES, Frame, accuracy_axis, accuracy_limits, finished, style
from analysis.exhibits.tables.slopes import with_published
from analysis.exhibits.tables.text import title
from analysis.sections.together import marks_text
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from pairscale.errors import ConfigError
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


def test_each_curve_has_one_name_at_its_last_point_within_the_accuracies(curves):
    shapes = {"lstm_tiny": [0.6, 0.75, 0.9, 1.1], "txl_tiny": [0.6, 0.7, 0.8, 0.9]}  # the first leaves 1 at 2^19.5
    words = [2.0**exponent for exponent in (17, 18, 19, 20)]
    rows = [
        {"group": group, "level": "overall", "name": "overall", "pairs": "all", "phenomenon": "",
         "words": at, "accuracy": accuracy, "low": np.nan, "high": np.nan}
        for group, accuracies in shapes.items()
        for at, accuracy in zip(words, accuracies, strict=True)
    ]  # fmt: skip
    specification = finished(overview_chart(replace(curves, lines=pd.DataFrame(rows))))
    (names,) = layers_of(specification, "text")
    ends = sorted((row["name"], math.log2(row["words"]), row["accuracy"]) for row in rows_of(specification, names))
    assert ends == [("lstm_tiny", pytest.approx(19.5), 1.0), ("txl_tiny", 20.0, 0.9)]


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


def test_panels_of_phenomena_share_an_axis_that_holds_people(curves):
    people = {"phenomenon_01": 0.97, "phenomenon_02": 0.85}
    for name in TWELVE:
        specification = finished(curves_together(curves, name, people=people))
        domain = layers_of(specification, "line")[0]["encoding"]["y"]["scale"]["domain"]
        assert domain == list(accuracy_domain(curves, [0.97]))
        rules = rows_of(specification, layers_of(specification, "rule")[0])
        assert {row["accuracy"] for row in rules} == {CHANCE, *([people[name]] if name in people else [])}


def test_lines_without_intervals_have_no_bands(curves):
    trajectory = replace(curves, lines=curves.lines.assign(low=np.nan, high=np.nan))
    assert layers_of(finished(overview_chart(trajectory)), "area") == []


def test_many_lines_differ_in_dashes_and_have_the_band_of_the_one_pointed_at():
    rows = [(f"method {i}", at, 9, 0.6, 0.5, 0.7) for i in range(8) for at in (-1, 0, 1)]
    columns = ["method", "difference", "judgements", "accuracy", "low", "high"]
    page, file = (
        finished(length_chart(pd.DataFrame(rows, columns=columns), frame=frame)) for frame in (Frame(), Frame(300))
    )
    encoding = layers_of(page, "line")[0]["encoding"]
    looks = list(zip(encoding["color"]["scale"]["range"], encoding["strokeDash"]["scale"]["range"], strict=True))
    assert len({str(look) for look in looks}) == 8
    assert page["params"][0]["name"] == layers_of(page, "area")[0]["encoding"]["opacity"]["condition"]["param"]
    assert layers_of(file, "area") == []


def test_level_axes_of_accuracies_name_chance():
    rows = pd.DataFrame({"model": ["a", "b"], "condition": "plain", "accuracy": [0.7, 0.9]})
    axis = layers_of(finished(condition_chart(rows, domain=(0.4, 1.0))), "point")[0]["encoding"]["x"]["axis"]
    assert CHANCE in axis["values"]
    assert "chance" in axis["labelExpr"]


def test_a_chart_without_limits_has_no_scale_of_them(curves):
    """The browser's console warned of infinite extents of the fields low and high."""
    for slopes, field in ((curves.slopes, "low"), (curves.slopes.assign(low=np.nan, high=np.nan), None)):
        rules = layers_of(finished(slope_chart(slopes)), "rule")
        assert [layer["encoding"].get("x", {}).get("field") for layer in rules] == ["at", field]


def test_slope_chart_has_published_slopes_hollow(judged, curves):
    slopes = curves.slopes.assign(published_slope=0.04)
    hollow = layers_of(finished(slope_chart(slopes)), "point")[-1]
    assert hollow["mark"]["filled"] is False
    assert hollow["encoding"]["x"]["field"] == "published_slope"
    assert len(layers_of(finished(slope_chart(curves.slopes)), "point")) == 1  # nothing published, nothing shown


PRINTED = {"column": FigureConfig(width="3.3in"), "page": FigureConfig(width="174mm", height="5cm", font_size="9pt")}


@pytest.mark.slow
@pytest.mark.parametrize("size", PRINTED)
def test_figures_are_as_wide_as_asked_for_and_have_their_fonts(judged, curves, tmp_path, size):
    config, groups = PRINTED[size], ["lstm_tiny", "txl_tiny"]
    levels = [Level("people", 0.886), Level("GPT-2 (paper)", 0.83)]
    figures = {
        "overview": ([partial(overview_chart, curves, levels)], ()),
        "curves": ([partial(learning_curves, curves, group, people=0.886) for group in groups], ()),
        "together": ([partial(curves_together, curves, name) for name in [*TWELVE][:3]], groups),
        "slopes": ([partial(slope_chart, curves.slopes)], ()),
        "perplexity": ([partial(perplexity_chart, judged.runs)], ()),
    }
    inches = {"column": 3.3, "page": 174 / 25.4}[size]
    texts = {}
    for name, (panels, legend) in figures.items():
        write_figure(tmp_path, name, panels, config, 4 if legend else 2, legend)
        svg = ET.parse(tmp_path / f"{name}.svg").getroot()
        assert float(svg.get("width")) == pytest.approx(96 * inches, abs=0.01)
        width = struct.unpack(">I", (tmp_path / f"{name}.png").read_bytes()[16:20])[0]
        assert width == pytest.approx(300 * inches, abs=2)
        shrunk = 96 * inches / float(svg.get("viewBox").split()[2]) / (config.pixels("font_size") / 11)
        assert 0.93 < shrunk < 1.05  # the font size is the one asked for, but for rounding
        pdf = subprocess.run(["pdfinfo", tmp_path / f"{name}.pdf"], capture_output=True, text=True, check=True).stdout
        assert float(re.search(r"Page size: +([\d.]+)", pdf)[1]) == pytest.approx(72 * inches, abs=0.01)
        fonts = subprocess.run(["pdffonts", tmp_path / f"{name}.pdf"], capture_output=True, text=True, check=True)
        rows = fonts.stdout.splitlines()[2:]
        assert rows
        assert all(row.split()[-5] == "yes" for row in rows), fonts.stdout  # embedded
        boxes = subprocess.run(["pdftotext", "-bbox", tmp_path / f"{name}.pdf", "-"], capture_output=True, text=True)
        ends = [float(x) for x in re.findall(r'xM(?:in|ax)="([-\d.]+)"', boxes.stdout)]
        assert -0.5 <= min(ends) <= max(ends) <= 72 * inches + 0.5  # no name is cut
        texts[name] = " ".join(ET.parse(tmp_path / f"{name}.svg").getroot().itertext())
    for name in ("overview", "curves", "together"):
        assert "chance" in texts[name]
    for name in ("lstm_tiny", "txl_tiny", "125k", "1M", "Phenomenon 11", "people, overall", "Words of training text"):
        assert name in texts["curves"]
    assert all(group in texts["together"] for group in groups)  # the legend
    assert not list(tmp_path.glob(".*"))


def test_png_shows_the_same_as_svg_whose_bands_are_unseen_until_pointed_at(curves, tmp_path):
    panels = [partial(learning_curves, curves, "lstm_tiny")]
    write_figure(tmp_path, "curves", panels, FigureConfig(width="2in"), 1)
    svg = (tmp_path / "curves.svg").read_text()
    assert svg.count(' opacity="0"') >= 12
    assert (tmp_path / "curves.png").read_bytes() == vl_convert.svg_to_png(svg, scale=72 / 96, ppi=300)


@pytest.mark.slow
def test_small_panels_share_their_axes_and_fit_a_column(curves, tmp_path):
    panels = [partial(curves_together, curves, name) for name in TWELVE]
    write_figure(tmp_path, "together", panels, FigureConfig(width="3.3in"), 4, ["lstm_tiny", "txl_tiny"])
    svg = ET.parse(tmp_path / "together.svg").getroot()
    assert float(svg.get("height")) <= 9 * 96
    texts = [text for text in svg.itertext() if text.strip()]
    assert [texts.count(once) for once in ("Words of training text", "Accuracy")] == [1, 1]
    assert (texts.count("chance"), texts.count("125k")) == (6, 2)  # two panels in a row
    assert len([text for text in texts if text.startswith("Phenomenon")]) == 12


def test_two_sizes_have_no_band(curves):
    sizes = curves.accuracies["words"].drop_duplicates().nsmallest(2)
    two, three = curves.accuracies["group"] == "lstm_tiny", curves.accuracies["group"] == "txl_tiny"
    kept = curves.accuracies[three | two & curves.accuracies["words"].isin(sizes)]
    shown = replace(curves, accuracies=kept)
    bands = layers_of(specification := finished(overview_chart(shown)), "area")[0]
    assert {row["name"] for row in rows_of(specification, bands)} == {"txl_tiny"}
    assert "two sizes have no band" in marks_text(shown, 0.95, "overall")
    assert "no band" not in marks_text(curves, 0.95, "overall")


def test_a_fitted_line_ends_where_it_leaves_the_accuracies():
    words = [2.0**i for i in (10, 11, 12, 13)]
    rows = pd.DataFrame({"name": "a", "words": words, "accuracy": [0.75, 0.9, 1.05, 1.2], "low": 0.5, "high": 0.6})
    line = within_limits(pd.concat([rows, rows.assign(name="b", accuracy=[0.1, 0.3, 0.2, 0.0])]))
    assert list(line.loc[line["name"] == "a", "accuracy"]) == pytest.approx([0.75, 0.9, 1.0])
    assert line.loc[line["name"] == "a", "words"].iloc[-1] == pytest.approx(2 ** (11 + 2 / 3))
    assert list(line.loc[line["name"] == "b", "accuracy"]) == [0.1, 0.3, 0.2, 0.0]
    falling = within_limits(rows.assign(accuracy=[0.2, 0.1, -0.1, -0.2]))
    assert list(falling["accuracy"]) == pytest.approx([0.2, 0.1, 0.0])
    assert falling["words"].iloc[-1] == pytest.approx(2**11.5)
    perfect = within_limits(rows.assign(accuracy=1 + 2.0**-52))  # a fit to accuracies of 1, rounded up
    assert list(perfect["accuracy"]) == [1.0] * 4


@pytest.mark.parametrize(("width", "most"), [(60, 2), (170, 4), (600, 6)])
def test_narrow_panels_have_fewer_ticks(width, most):
    assert Frame(width).ticks(6) == most


@pytest.mark.parametrize(("ends", "ticks"), [((1000, 8000), [1000, 2000, 4000, 8000]), ((0, 2), [1, 2]), ((3, 3), [3])])
def test_ticks_of_orders_double_from_the_smallest_size_on(ends, ticks):
    row = {"name": "x", "group": "a", "words": ends[1], "low": np.nan, "high": np.nan, "status": "estimated", "rank": 1}
    drawn = order_chart(pd.DataFrame([row | {"from_words": ends[0], "to_words": ends[1]}]), "words").to_dict()
    values = re.findall(r"'values': (\[[^]]*\])", str(drawn))
    assert str([float(tick) for tick in ticks]) in values


def test_a_legend_has_the_dashes_and_the_strength_of_the_lines(curves, tmp_path):
    names = [f"curve {number}" for number in range(8)]
    write_figure(tmp_path, "legend", [partial(curves_together, curves, "phenomenon_01")], FigureConfig(), 4, names)
    lines = [
        (path.get("stroke"), path.get("stroke-dasharray"), path.get("stroke-opacity"), path.get("opacity"))
        for path in ET.parse(tmp_path / "legend.svg").iter("{http://www.w3.org/2000/svg}line")
        if path.get("stroke") in HUES
    ]
    look = style(names)
    dashes = [None if dash == [1, 0] else ",".join(map(str, dash)) for dash in look["dash"]]
    drawn = [(colour, None if dash == "1,0" else dash) for colour, dash, *opacity in lines if opacity == [None, None]]
    assert drawn == list(zip(look["colour"], dashes, strict=True))


@pytest.mark.parametrize("accuracies", [(0.71, 0.99), (0.2, 0.31)])
def test_limits_of_bands_lie_within_the_axis(curves, accuracies):
    low, high = accuracies
    domain = accuracy_domain(replace(curves, lines=curves.lines.assign(low=low, high=high)))
    assert domain[0] <= low < high <= domain[1]
    limits = accuracy_limits(pd.DataFrame({"accuracy": [0.5], "low": [low], "high": [high]}))
    assert limits == pytest.approx({0.71: (0.4, 1), 0.2: (0.2, 0.6)}[low])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", "3.3", "3.3: must be a number and in, cm, mm or pt, such as 3.3in"),
        ("width", "3,3in", "3,3in: must be a number and"),
        ("width", "0.2in", "0.2in: must be from 1in to 40in"),
        ("height", "2 metres", "2 metres: must be a number and"),
        ("font_size", "80pt", "80pt: must be from 4pt to 30pt"),
    ],
)
def test_a_length_without_a_unit_or_out_of_bounds_is_refused(name, value, message):
    with pytest.raises(ConfigError, match=re.escape(f"analysis.figure.{name}={message}")):
        FigureConfig(**{name: value})


@pytest.mark.parametrize(("value", "pixels"), [("1in", 96), ("2.54cm", 96), ("25.4 mm", 96), ("72pt", 96)])
def test_lengths_have_units(value, pixels):
    assert FigureConfig(width=value).pixels("width") == pytest.approx(pixels)


def test_a_group_without_one_prefix_scores_leaves_the_colours_of_the_others():
    rows = [("lstm", "two_prefix"), ("txl", "two_prefix"), ("txl", "one_prefix")]
    columns = ["group", "method", "name", "accuracy", "full"]
    accuracies = pd.DataFrame([(*row, name, 0.6, 0.7) for row in rows for name in ("Overall", "A")], columns=columns)
    panels = [prefix_chart(accuracies, method, frame=Frame(200)).to_dict() for method in ("one_prefix", "two_prefix")]
    scales = [layer["encoding"]["color"]["scale"] for panel in panels for layer in panel["layer"][1:]]  # after chance
    assert all(scale == {"domain": ["lstm", "txl"], "range": list(HUES[:2])} for scale in scales)
    drawn = [{row["group"] for layer in panel["layer"][1:] for row in rows_of(panel, layer)} for panel in panels]
    assert drawn == [{"txl"}, {"lstm", "txl"}]
