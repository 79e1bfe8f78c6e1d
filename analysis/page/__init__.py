"""Write the page of a report from its template, style and script. The page opens without a network."""

import os
import re
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


def write_page(path: Path, context: Mapping[str, Any]) -> None:
    """Write report.html or report.md from the template of the same name. All text from data is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=path.suffix == ".html", trim_blocks=True
    )
    environment.filters |= {"minus": with_minus_signs, "plain": _plain}
    environment.globals |= {"asset": _asset, "vega": _vega}
    write_text(path, environment.get_template(path.name).render(context) + "\n")


def _plain(text: str) -> str:
    """Return a text on one line, with the markup of Markdown and HTML escaped."""
    return with_minus_signs(re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", " ".join(text.split())))


def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that can be part of a page.

    Joining their modules takes two seconds, so the script is kept in the user's cache folder.
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


def _asset(name: str) -> str:
    return (files("analysis.page") / name).read_text(encoding="utf-8")
