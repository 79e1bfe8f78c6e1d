"""Pages that open without a network: the templates' environment, and what stands in every page."""

import gzip
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
import vl_convert

from analysis.exhibits.figures.style import schema_version
from analysis.exhibits.tables.text import with_minus_signs
from pairscale.files import write_text


def write_page(path: Path, template: str, charts: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any]) -> None:
    """Render a template of this folder, which extends page.html; `charts`: Vega-Lite specifications by their name.

    Text from data is escaped, in the charts too. A template calls `file` with the name of each file that it links to:
    these stand beside the page, and, packed, in it, so that a page that was sent alone still gives them. PNG files do
    not: the page draws them from the SVG of their name.
    """
    linked: dict[str, None] = {}

    def file(name: str) -> str:
        linked[name] = None
        return quote(name)

    def packed() -> dict[str, str]:
        texts = {name: path.with_name(name).read_bytes() for name in linked if not name.endswith(".png")}
        return {name: b64encode(gzip.compress(text, mtime=0)).decode() for name, text in texts.items()}

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters.update(minus=with_minus_signs, number=_number, duration=_duration)
    environment.globals.update(file=file, packed=packed)
    css = _asset("theme.css", "eval") + _asset("report.css")
    assets = {"charts": charts, "css": css, "js": _asset("report.js"), "vega": _vega()}
    write_text(path, environment.get_template(template).render({**context, **assets}))


def numbered(items: Iterable[dict[str, Any]]) -> None:
    """Number the figures and the tables of a page, in place: `figure` and `number` (of its table), or None."""
    figures, tables = count(1), count(1)
    for item in items:
        item["figure"] = next(figures) if item["charts"] else None
        item["number"] = next(tables) if item["rows"] else None


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that may stand in a page."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", schema_version())
    return bundle.replace("</script", "<\\/script")


def _asset(name: str, package: str = "analysis.page") -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def _number(value: Any, form: str = ",.0f") -> str:
    """Format a number for a table; an empty cell for an unknown one."""
    return "" if value is None or pd.isna(value) else format(float(value), form)


def _duration(seconds: Any) -> str:
    """Format seconds: 1 h 05 min, 12 min, 40 s."""
    if seconds is None or pd.isna(seconds):
        return ""
    minutes = round(float(seconds) / 60)
    if minutes < 2:
        return f"{float(seconds):.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
