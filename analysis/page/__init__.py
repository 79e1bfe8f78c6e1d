"""The page of a report, which opens without a network: its template, style and script."""

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from analysis.formats import with_minus_signs
from pairscale.errors import WriteError
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


def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that may stand in a page.

    Joining their modules takes two seconds, so the script is kept in the user's folder of caches.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    kept = Path(caches).expanduser() / "pairscale" / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    with suppress(OSError, WriteError):
        write_text(kept, script)
    return script


def _asset(name: str, package: str = "analysis.page") -> str:
    return (files(package) / name).read_text(encoding="utf-8")
