"""A form as one HTML file that needs no network, and the page that leads to it. Neither tells the good sentences."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from eval.benchmarks.load import Benchmark
from eval.questionnaire.answers import SCHEMA, VERSION
from eval.questionnaire.config import TextConfig
from eval.questionnaire.forms import Form
from pairscale.files import write_text


def write_page(path: Path, form: Form, benchmark: Benchmark, texts: TextConfig, language: str, of: str) -> None:
    """Write one form. `language` is that of the texts, `of` that of the sentences (ISO 639; "": not known).

    Text is escaped wherever it stands: by the template, as JSON without < > &, and as text nodes by the script.
    """
    html = _template("page.html").render(
        language=language,
        of=of,
        texts=texts,
        questions=str(form.questions),
        minutes=str(form.minutes),
        form=_described(form, benchmark, texts),
        css=_css(),
        js=_asset("page.js"),
    )
    write_text(path, html)


def write_start_page(folder: Path, forms: Sequence[Form], texts: Mapping[str, TextConfig], digest: str) -> None:
    """Write index.html, which leads to a form: the language by ?lang= or a choice, the form by ?form= or by chance.

    `texts`: by language, each of which has `forms` in a folder of its name. `digest`: of the benchmark.
    """
    languages = [{"code": code, "name": one.name, "title": one.title} for code, one in texts.items()]
    html = _template("start.html").render(
        languages=languages,
        forms=[f"{form.name}.html" for form in forms],
        digest=digest,
        css=_css(),
        js=_asset("start.js"),
    )
    write_text(folder / "index.html", html)


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template(name)


def _css() -> str:
    return (files("eval") / "theme.css").read_text(encoding="utf-8") + _asset("page.css")


def _described(form: Form, benchmark: Benchmark, texts: TextConfig) -> dict[str, Any]:
    """Return the data of the page's script. Sentences are sorted, so that their order tells nothing."""
    checks = [(sorted([check.good, check.bad]), check.good) for check in form.checks]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "benchmark": {"name": benchmark.name, "digest": benchmark.digest},
        "form": {"name": form.name, "digest": form.digest},
        "pairs": [
            {"paradigm": pair["paradigm"], "pair_id": pair["pair_id"], "sentences": sorted([pair["good"], pair["bad"]])}
            for pair in form.pairs.to_dict("records")
        ],
        "checks": [{"sentences": sentences, "right": sentences.index(good)} for sentences, good in checks],
        "texts": {name: getattr(texts, name) for name in ("progress", "downloaded", "again_question")},
    }


def _asset(name: str) -> str:
    return (files("eval.questionnaire") / name).read_text(encoding="utf-8")
