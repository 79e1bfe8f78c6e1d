"""The page of a report, which opens without a network: its template, style and script."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import vl_convert

from analysis.figures.style import schema_version
from analysis.formats import with_minus_signs
from pairscale.files import write_text


def write_page(path: Path, charts: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any]) -> None:
    """Write report.html. Text from data is escaped, in the charts too.

    Args:
        path: the file to write.
        charts: Vega-Lite specifications by the name that the template has for them.
        context: the values of the template.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["minus"] = with_minus_signs
    css = _asset("theme.css", "eval") + _asset("report.css")
    assets = {"charts": charts, "css": css, "js": _asset("report.js"), "vega": _vega()}
    write_text(path, environment.get_template("report.html").render({**context, **assets}))


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that may stand in a page."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", schema_version())
    return bundle.replace("</script", "<\\/script")


def _asset(name: str, package: str = "analysis.page") -> str:
    return (files(package) / name).read_text(encoding="utf-8")
