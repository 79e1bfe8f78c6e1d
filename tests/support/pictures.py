"""The pictures in README and docs/, drawn from committed tables (`make pictures`).

    python -m tests.support.pictures   writes them: those of a study beside its tables in analysis/results/

A PNG file is written beside the SVG file of a picture in PNG, for pages that show no SVG.
"""

import re
from collections.abc import Callable
from functools import partial

import vl_convert

from analysis.config import FigureConfig
from analysis.exhibits.figures.curves import Level, curves_together, learning_curves, overview_chart
from analysis.exhibits.figures.files import DPI, PER_INCH, figure
from analysis.exhibits.figures.style import Chart, finished, schema_version
from analysis.measures.accuracies import PEOPLE
from analysis.sections.pretrained_models import published_beside
from eval.published import OVERALL, read_published
from pairscale.files import write_bytes, write_text
from tests.bench.charts import coverage_chart, speed_chart
from tests.support import ROOT
from tests.support.ablation_tables import STUDY as ABLATION
from tests.support.ablation_tables import effects_picture
from tests.support.committed_results import DEMO, FAMILIES, GPU, LONG, STUDY, analysed

WIDTH, WIDE = FigureConfig(width="6.9in", height="2.8in"), FigureConfig(width="11in")
PNG = f"analysis/results/{GPU}/curves"
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def overview(study: str) -> str:
    """Return the overall accuracies of a study's models, beside published ones, as SVG."""
    curves, _ = analysed(study)
    levels = []
    if study != DEMO:
        beside = published_beside(read_published("blimp"), "blimp")
        rows = beside[beside["level"] == OVERALL].to_dict("records")
        levels = [Level(str(row["model"]), float(row["accuracy"])) for row in rows]
    return figure([partial(overview_chart, curves, levels)], WIDTH, 1)


def phenomena(study: str) -> str:
    """Return a panel for each phenomenon of a study, the steepest first, as SVG."""
    curves, _ = analysed(study)
    slopes = curves.slopes.query("level == 'phenomenon'").groupby("name")["slope"].mean()
    names, groups = slopes.sort_values(ascending=False).index, curves.slopes["group"].unique()
    panels = [partial(curves_together, curves, name) for name in names]
    return figure(panels, FigureConfig(), 4, [str(group) for group in groups])


def by_model(study: str) -> str:
    """Return a panel for each model of a study on BLiMP, with all phenomena, as SVG."""
    curves, _ = analysed(study)
    published = read_published("blimp")
    people = published.query(f"model == '{PEOPLE}' and level == '{OVERALL}'")["accuracy"].item()
    groups = [str(group) for group in curves.slopes["group"].unique()]
    return figure([partial(learning_curves, curves, group, people=people) for group in groups], WIDE, 2)


def whole(chart: Callable[[], Chart]) -> str:
    """Return a chart that has its own size, as SVG."""
    return vl_convert.vegalite_to_svg(finished(chart()), vl_version=schema_version())


PICTURES: dict[str, Callable[[], str]] = {
    f"analysis/results/{DEMO}/overview": partial(overview, DEMO),
    f"analysis/results/{DEMO}/phenomena": partial(phenomena, DEMO),
    f"analysis/results/{STUDY}/overview": partial(overview, STUDY),
    f"analysis/results/{STUDY}/curves": partial(by_model, STUDY),
    PNG: partial(by_model, GPU),
    f"analysis/results/{FAMILIES}/overview": partial(overview, FAMILIES),
    **{f"analysis/results/{study}/overview": partial(overview, study) for study in (LONG, GPU)},
    **{f"analysis/results/{study}/phenomena": partial(phenomena, study) for study in (LONG, GPU)},
    f"analysis/results/{ABLATION}/effects": effects_picture,
    "docs/pictures/coverage": partial(whole, coverage_chart),
    "docs/pictures/speed": partial(whole, speed_chart),
}


def write() -> None:
    """Write all pictures."""
    for name, draw in PICTURES.items():
        svg = draw()
        write_text((ROOT / name).with_suffix(".svg"), svg)
        if name == PNG:
            write_bytes((ROOT / name).with_suffix(".png"), vl_convert.svg_to_png(svg, scale=72 / PER_INCH, ppi=DPI))


def parts_of(svg: str) -> tuple[str, list[float]]:
    """Return what an SVG file says without its numbers, and these."""
    return _NUMBER.sub("#", svg), [float(number) for number in _NUMBER.findall(svg)]


if __name__ == "__main__":
    write()
