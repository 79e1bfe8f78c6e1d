"""The questionnaire command: write forms, or print how far the answers to them agree."""

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
from eval.questionnaire.config import QuestionnaireConfig, TextConfig
from eval.questionnaire.forms import Form, deal, texts_of
from eval.questionnaire.page import write_page, write_start_page
from pairscale.errors import ConfigError, InputError
from pairscale.files import write_json
from pairscale.schema import read_json
from pairscale.tables import print_table

FORMS_VERSION = 1


def write_forms(config: EvalConfig) -> None:
    """Write in a folder for each language an HTML file for each form, and questionnaire.json, which lists their pairs.

    Beside the folders stands index.html, which leads people to a form. Raises what load_benchmark, resolved, texts_of
    and deal raise, InputError in the folder of another questionnaire.
    """
    settings, benchmark = _settings_and_benchmark(config)
    texts, of = texts_of(settings, config.benchmark.language), config.benchmark.language or ""
    by_language = {language: deal(benchmark, settings, one) for language, one in texts.items()}
    folder = Path(settings.folder)
    listed = {
        folder / language / FORMS_FILE: _listed(forms, benchmark, settings.seed)
        for language, forms in by_language.items()
    }
    for index, content in listed.items():
        if index.exists() and read_json(index, dict[str, Any], InputError, "give questionnaire.folder=NEW") != content:
            raise InputError(
                f"{index}: of another questionnaire, which people may be answering; give questionnaire.folder=NEW"
            )
    for language, forms in by_language.items():
        for form in forms:
            write_page(folder / language / f"{form.name}.html", form, benchmark, texts[language], language, of)
    for index, content in listed.items():
        write_json(index, content)
    forms = next(iter(by_language.values()))  # in another language, the same pairs
    write_start_page(folder, forms, texts, benchmark.digest)
    for line in _described(forms, benchmark, settings, texts):
        Console().print(line, markup=False, soft_wrap=True, highlight=False)


def _described(
    forms: list[Form], benchmark: Benchmark, settings: QuestionnaireConfig, texts: dict[str, TextConfig]
) -> list[str]:
    """Return what was written, in lines."""
    folder = Path(settings.folder)
    per_paradigm = pd.concat([form.pairs for form in forms]).drop_duplicates(["paradigm", "pair_id"])["paradigm"]
    sizes = dict.fromkeys(sorted(len(form.pairs) for form in forms))
    names = dict.fromkeys([forms[0].name, forms[-1].name])
    lines = [
        f"{benchmark.name}: {len(per_paradigm):,} pairs of {per_paradigm.nunique()} paradigms; forms: {len(forms)}, "
        f"each of {' or '.join(map(str, sizes))} pairs and {settings.checks} attention checks, about "
        f"{max(form.minutes for form in forms)} min",
        *(f"fewer pairs than questionnaire.per_paradigm: {name} ({count})"
          for name, count in per_paradigm.value_counts().items() if count < settings.per_paradigm),
        *(f"forms: {' to '.join(str(folder / language / f'{name}.html') for name in names)}" for language in texts),
        f"start page: {folder / 'index.html'} draws a form; ?lang={'|'.join(texts)} and ?form=NUMBER choose one",
    ]  # fmt: skip
    if silent := [language for language, one in texts.items() if not one.contact]:
        lines.append(f"whom people can ask is not named ({', '.join(silent)}): questionnaire.texts=FILE with contact")
    return lines


def print_agreement(config: EvalConfig) -> None:
    """Print how far the people agree whose answers `config.people` names; raises what reading them does."""
    settings, benchmark = _settings_and_benchmark(config)
    answers = counted(read_sheets(config.people), benchmark.name, benchmark.digest, benchmark.pairs, settings)
    title = f"{benchmark.name} · {answers.raters} rater{'' if answers.raters == 1 else 's'}"
    console, table = Console(), agreement_table(title, agreement(answers.judgements), settings.threshold)
    print_table(console, table, ("seconds", "ties", "judged", "people"))
    for note in answers.notes:
        Console(stderr=True, highlight=False).print("[yellow]note[/]", escape(note), soft_wrap=True)


def _settings_and_benchmark(config: EvalConfig) -> tuple[QuestionnaireConfig, Benchmark]:
    assert config.questionnaire is not None  # conf/questionnaire.yaml
    if not config.benchmark.has_pairs:
        raise ConfigError(f"benchmark={config.benchmark.name}: a diagnostic has no pairs for people to choose from")
    pairs = resolved(config.benchmark, dataclasses.asdict(config), config.paths.runs, config.paths.store)
    return config.questionnaire, load_benchmark(pairs)


def _listed(forms: list[Form], benchmark: Benchmark, seed: int) -> dict[str, Any]:
    """Return the pairs of each form, the good sentences named, for those who hand out the forms."""
    return {
        "version": FORMS_VERSION,
        "benchmark": {"name": benchmark.name, "digest": benchmark.digest},
        "seed": seed,
        "forms": [
            {
                "file": f"{form.name}.html",
                "digest": form.digest,
                "pairs": form.pairs[["paradigm", "pair_id", "good", "bad"]].to_dict("records"),
            }
            for form in forms
        ],
    }
