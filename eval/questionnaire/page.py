"""A form as one HTML file that needs no network. It does not tell the good sentences."""

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
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    html = environment.get_template("page.html").render(
        language=language,
        of=of,
        texts=texts,
        questions=str(len(form.pairs) + len(form.checks)),
        form=_described(form, benchmark, texts),
        css=(files("eval") / "theme.css").read_text(encoding="utf-8") + _asset("page.css"),
        js=_asset("page.js"),
    )
    write_text(path, html)


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
