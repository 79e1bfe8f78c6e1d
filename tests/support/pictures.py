"""The pictures in README and docs/, drawn from the tables in analysis/results/ (`make pictures`).

    python -m tests.support.pictures   writes them beside the tables of their study

A PNG file is written beside the SVG file of a picture in PNG, for pages that show no SVG.
"""

import re
from functools import partial

import vl_convert

from analysis.config import FigureConfig
from analysis.exhibits.figures.curves import Level, curves_together, learning_curves, overview_chart
from analysis.exhibits.figures.files import DPI, PER_INCH, figure
from analysis.measures.accuracies import OVERALL, PEOPLE
from analysis.sections.pretrained_models import published_beside
from eval.published import read_published
from pairscale.files import write_bytes, write_text
from tests.support.committed_results import DEMO, RESULTS, STUDY, analysed

WIDTH, WIDE = FigureConfig(width="6.9in", height="2.8in"), FigureConfig(width="11in")
PICTURES = (f"{DEMO}/overview", f"{DEMO}/phenomena", f"{STUDY}/overview", f"{STUDY}/curves")
PNG = f"{STUDY}/curves"
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def picture(name: str) -> str:
    """Return one of PICTURES, "study/kind", as SVG."""
    study, kind = name.split("/")
    curves, _ = analysed(study)
    published = read_published("blimp") if study != DEMO else None
    groups = [str(group) for group in curves.slopes["group"].unique()]
    match kind:
        case "overview":
            beside = published_beside(published, "blimp") if published is not None else []
            rows = beside[beside["level"] == OVERALL].to_dict("records") if len(beside) else []
            levels = [Level(str(row["model"]), float(row["accuracy"])) for row in rows]
            return figure([partial(overview_chart, curves, levels)], WIDTH, 1)
        case "phenomena":
            steepest = curves.slopes.query("level == 'phenomenon'").groupby("name")["slope"].mean()
            names = steepest.sort_values(ascending=False).index
            return figure([partial(curves_together, curves, unit) for unit in names], FigureConfig(), 4, groups)
        case _:
            assert published is not None
            people = published.query(f"model == '{PEOPLE}' and level == '{OVERALL}'")["accuracy"].item()
            return figure([partial(learning_curves, curves, group, people=people) for group in groups], WIDE, 2)


def write() -> None:
    """Write all pictures."""
    for name in PICTURES:
        svg = picture(name)
        write_text((RESULTS / name).with_suffix(".svg"), svg)
        if name == PNG:
            write_bytes((RESULTS / name).with_suffix(".png"), vl_convert.svg_to_png(svg, scale=72 / PER_INCH, ppi=DPI))


def parts_of(svg: str) -> tuple[str, list[float]]:
    """Return what an SVG file says without its numbers, and these."""
    return _NUMBER.sub("#", svg), [float(number) for number in _NUMBER.findall(svg)]


if __name__ == "__main__":
    write()
