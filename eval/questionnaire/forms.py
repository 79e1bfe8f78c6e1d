"""Write forms: HTML pages with pairs of a benchmark for people to judge, and attention checks."""

import math
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from rich.console import Console

from eval.benchmarks.load import Benchmark, drawn_pairs
from eval.config import QuestionnaireConfig
from eval.questionnaire.answers import SCHEMA, VERSION
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.files import sha256_json, write_text
from pairscale.schema import load_yaml, read_yaml

LANGUAGES = ("en", "zh")  # languages of the texts in this folder
PAIR_SECONDS = 8  # how long people take per pair, for the duration on the form
_STOP = re.compile(r"[.!?。！？]$")


def read_texts(config: QuestionnaireConfig, language: str | None) -> dict[str, Any]:
    """Return the texts of a form in a language, by the keys of en.yaml. Texts in the file `config.texts` replace them.

    Raises ConfigError if there are no texts in this language, and InputError if the file does not contain texts.
    """
    like = load_yaml(_asset("en.yaml"))
    texts = load_yaml(_asset(f"{language}.yaml")) if language in LANGUAGES else {}
    if config.texts is not None:
        schema, remedy = dict[str, str | dict[str, str]], "see eval/questionnaire/en.yaml"
        texts |= read_yaml(Path(config.texts).expanduser(), schema, InputError, remedy)
    if wrong := [name for name in {**like, **texts} if type(texts.get(name)) is not type(like.get(name))]:
        if config.texts is None:
            raise ConfigError(
                f"questionnaire.language={language or 'null'}: there are no texts for this language. Use en or zh, or "
                "give your own with questionnaire.texts=FILE."
            )
        raise ConfigError(
            f"questionnaire.texts={config.texts}: {first_few(wrong)} are missing, unknown or of the wrong type. Give "
            "all texts in eval/questionnaire/en.yaml, or set questionnaire.language=en or zh to replace only some."
        )
    return texts


def deal(benchmark: Benchmark, config: QuestionnaireConfig, checks: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """Return the questions of each form: `per_paradigm` pairs of each paradigm, each on `raters` forms.

    In each round, the forms contain each of these pairs once. Their sizes, and their numbers of pairs per paradigm,
    differ by at most one, and each round groups the pairs differently. A question has two `sentences` in an order that
    reveals nothing, and either `paradigm` and `pair_id` or, for an attention check, `check` (the good sentence).

    Args:
        benchmark: The pairs.
        config: The settings of the questionnaire.
        checks: The bad sentence of each attention check, by its good sentence.

    Raises ConfigError if there are too few attention checks.
    """
    pairs = benchmark.pairs.iloc[drawn_pairs(benchmark.pairs, str(config.per_paradigm), config.seed)]
    like = _style_of(benchmark.pairs["good"])
    known = [{"check": like(good), "sentences": sorted([like(good), like(bad)])} for good, bad in checks.items()]
    if config.checks > len(known):
        raise ConfigError(
            f"questionnaire.checks={config.checks}: the texts have {len(known)} attention checks. Choose a smaller "
            "number, or add some to the file of questionnaire.texts."
        )
    questions = [
        {"paradigm": pair["paradigm"], "pair_id": pair["pair_id"], "sentences": sorted([pair["good"], pair["bad"]])}
        for pair in pairs.to_dict("records")
    ]
    rng = np.random.default_rng([config.seed, 1])
    hands = math.ceil(len(questions) / config.pairs)
    forms = []
    for _ in range(config.raters):  # pairs are sorted by paradigm and dealt in turn, like cards
        order = rng.permutation(len(questions))
        dealt = order[np.argsort(pd.factorize(pairs["paradigm"].iloc[order])[0], kind="stable")]
        for hand in range(hands):
            drawn = rng.permutation(len(known))[: config.checks]
            forms.append([*(questions[i] for i in np.sort(dealt[hand::hands])), *(known[i] for i in drawn)])
    return forms


def _style_of(good: pd.Series) -> Callable[[str], str]:
    """Return a function that writes a sentence with a full stop and a capital only if most good sentences have them.

    Otherwise people would recognise an attention check by its full stop.
    """
    stop, small = good.str.contains(_STOP).mean() > 0.5, good.str[:1].str.islower().mean() > 0.5

    def like(sentence: str) -> str:
        sentence = sentence if stop else _STOP.sub("", sentence)
        return sentence[:1].lower() + sentence[1:] if small else sentence

    return like


def write_forms(benchmark: Benchmark, config: QuestionnaireConfig, of: str | None) -> None:
    """Write the page of each form, and print how many there are. `of` is the language of the sentences, if known.

    Raises InputError if the folder has another questionnaire, and the errors of `read_texts` and `deal`.
    """
    language = config.language or of
    texts = read_texts(config, language)
    forms = deal(benchmark, config, texts["checks"])
    for number, questions in enumerate(forms, start=1):
        name = f"form-{number:0{len(str(len(forms)))}d}"
        page = form_page(name, questions, benchmark, texts, language or "und", of or "")
        path = Path(config.folder, f"{name}.html")
        if path.exists() and path.read_text(encoding="utf-8") != page:
            raise InputError(
                f"{path}: this form belongs to another questionnaire, which people may be answering. Choose another "
                "folder with questionnaire.folder=NEW."
            )
        write_text(path, page)
    longest = max(map(len, forms))
    written = f"{benchmark.name}: {len(forms)} forms of up to {longest} questions ({minutes(longest)} minutes)"
    Console(markup=False, soft_wrap=True, highlight=False).print(f"{written} in {config.folder}")
    if not texts["contact"]:
        say("The forms have no contact for questions. Add one with questionnaire.texts=FILE.", "note", "yellow")


def minutes(questions: int) -> int:
    """Estimate how many minutes a form takes."""
    return math.ceil(questions * PAIR_SECONDS / 60)


def form_page(
    name: str, questions: list[dict[str, Any]], benchmark: Benchmark, texts: dict[str, Any], language: str, of: str
) -> str:
    """Return the HTML of a form, which needs no network and doesn't reveal the good sentences of its pairs.

    `language` is the language of the texts, and `of` that of the sentences (ISO 639; "" if unknown). All text is
    escaped: by the template, as JSON without < > &, and as text nodes by the script.
    """
    about = {"schema": SCHEMA, "version": VERSION, "benchmark": benchmark.name, "digest": benchmark.digest}
    form = {
        "id": sha256_json([benchmark.digest, questions]),
        "about": about | {"form": name},
        "questions": questions,
        "texts": {key: texts[key] for key in ("progress", "downloaded")},
    }
    values = {"texts": texts, "language": language, "of": of, "form": form, "minutes": minutes(len(questions))}
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_asset("page.html"))
    return template.render(values, questions=len(questions))


def _asset(name: str) -> str:
    return (files("eval.questionnaire") / name).read_text(encoding="utf-8")
