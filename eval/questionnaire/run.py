"""What `python -m eval.questionnaire` does: write forms, or read answers to them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.markup import escape

from eval.benchmarks.generated.vocabulary import resolved
from eval.benchmarks.load import Benchmark, load_benchmark
from eval.config import EvalConfig
from eval.questionnaire.agreement import agreement, agreement_table
from eval.questionnaire.answers import FORMS_FILE, counted, read_sheets
from eval.questionnaire.config import QuestionnaireConfig
from eval.questionnaire.forms import Form, deal, texts_of
from eval.questionnaire.page import write_page
from pairscale.errors import ConfigError, InputError
from pairscale.files import write_json
from pairscale.schema import read_json

FORMS_VERSION = 1


def write_forms(config: EvalConfig) -> None:
    """Write an HTML file for each form, and questionnaire.json, which says what is on which.

    Raises what load_benchmark, resolved, texts_of and deal raise, and InputError where the folder holds another
    questionnaire, which people may be answering.
    """
    asked, benchmark = _both(config)
    texts, language = texts_of(asked, config.benchmark.language)
    forms = deal(benchmark, asked, texts)
    folder = Path(asked.folder)
    listed = _listed(forms, benchmark, asked)
    there = folder / FORMS_FILE
    if there.exists() and read_json(there, dict[str, Any], InputError, "give questionnaire.folder=NEW") != listed:
        raise InputError(
            f"{there}: of another questionnaire, which people may be answering; give questionnaire.folder=NEW"
        )
    for form in forms:
        write_page(folder / f"{form.name}.html", form, benchmark, texts, language, config.benchmark.language or "")
    write_json(there, listed)
    console = Console()
    drawn = pd.concat([form.pairs for form in forms]).drop_duplicates(["paradigm", "pair_id"])
    per_paradigm = drawn["paradigm"].value_counts()
    sizes = dict.fromkeys(sorted(len(form.pairs) for form in forms))
    names = dict.fromkeys([forms[0].name, forms[-1].name])
    told = [
        f"{benchmark.name}: {len(drawn):,} pairs of {len(per_paradigm)} paradigms; forms: {len(forms)}, each of "
        f"{' or '.join(map(str, sizes))} pairs and {asked.checks} attention checks",
        *(f"fewer pairs than questionnaire.per_paradigm: {name} ({count})"
          for name, count in per_paradigm.items() if count < asked.per_paradigm),
        f"forms: {' to '.join(str(folder / f'{name}.html') for name in names)}",
    ]  # fmt: skip
    for line in told:
        console.print(line, markup=False, soft_wrap=True, highlight=False)


def say_agreement(config: EvalConfig) -> None:
    """Print how far the people agree whose answers `config.people` names; raises what reading them does."""
    asked, benchmark = _both(config)
    found = counted(read_sheets(config.people), benchmark.name, benchmark.digest, benchmark.pairs, asked)
    console, quiet = Console(), Console(stderr=True, highlight=False)
    console.print(
        agreement_table(
            f"{benchmark.name} · {found.raters} rater{'' if found.raters == 1 else 's'}",
            agreement(found.judgements),
            asked.threshold,
        )
    )
    for note in found.notes:
        quiet.print("[yellow]note[/]", escape(note), soft_wrap=True)


def _both(config: EvalConfig) -> tuple[QuestionnaireConfig, Benchmark]:
    assert config.questionnaire is not None  # conf/questionnaire.yaml
    if not config.benchmark.has_pairs:
        raise ConfigError(f"benchmark={config.benchmark.name}: a diagnostic has no pairs for people to choose from")
    pairs = resolved(config.benchmark, dataclasses.asdict(config), config.paths.runs, config.paths.store)
    return config.questionnaire, load_benchmark(pairs)


def _listed(forms: list[Form], benchmark: Benchmark, asked: QuestionnaireConfig) -> dict[str, Any]:
    """What is on which form, and which sentence is the good one: for whoever hands the forms out."""
    return {
        "version": FORMS_VERSION,
        "benchmark": {"name": benchmark.name, "digest": benchmark.digest},
        "seed": asked.seed,
        "forms": [
            {
                "file": f"{form.name}.html",
                "digest": form.digest,
                "pairs": form.pairs[["paradigm", "pair_id", "good", "bad"]].to_dict("records"),
            }
            for form in forms
        ],
    }
