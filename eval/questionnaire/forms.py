"""Write forms, which are HTML pages with a benchmark's pairs for people to judge, and with attention checks."""

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
from pairscale.sizes import plural

LANGUAGES = ("en", "zh")  # languages of the texts in this folder
PAIR_SECONDS = 8  # estimated time per pair, for the duration that is stated on the form
_STOP = re.compile(r"[.!?。！？]$")


def read_texts(config: QuestionnaireConfig, language: str | None) -> dict[str, Any]:
    """Return the texts of a form in a language, by the keys of en.yaml. The file `config.texts` replaces some of them.

    Raises ConfigError if texts are missing in this language, and InputError if the file can't be read as texts.
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
            f"questionnaire.texts={config.texts}: {first_few(wrong)} are missing, unknown or of the wrong type. Set "
            "every text in eval/questionnaire/en.yaml, or set questionnaire.language=en or zh to replace only some."
        )
    return texts


def deal(benchmark: Benchmark, config: QuestionnaireConfig, checks: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """Return the questions of each form.

    From each paradigm, `per_paradigm` pairs are drawn, and each is on `raters` forms. There are `raters` rounds. In
    each round, the forms contain each of these pairs once, in different groups. Within a round, the sizes of the
    forms, and their numbers of pairs per paradigm, differ by at most one. A question has two `sentences` in an
    order that doesn't show which is good. It also has `paradigm` and `pair_id` or, for an attention check, `check`
    (the good sentence).

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
            f"questionnaire.checks={config.checks}: there are only {len(known)} attention checks. Choose a smaller "
            "number, or add checks to the file of questionnaire.texts."
        )
    questions = [
        {"paradigm": pair["paradigm"], "pair_id": pair["pair_id"], "sentences": sorted([pair["good"], pair["bad"]])}
        for pair in pairs.to_dict("records")
    ]
    rng = np.random.default_rng([config.seed, 1])
    hands = math.ceil(len(questions) / config.pairs)
    forms = []
    for _ in range(config.raters):  # pairs are sorted by paradigm, and dealt to forms in turn, like cards
        order = rng.permutation(len(questions))
        dealt = order[np.argsort(pd.factorize(pairs["paradigm"].iloc[order])[0], kind="stable")]
        for hand in range(hands):
            drawn = rng.permutation(len(known))[: config.checks]
            forms.append([*(questions[i] for i in np.sort(dealt[hand::hands])), *(known[i] for i in drawn)])
    return forms


def _style_of(good: pd.Series) -> Callable[[str], str]:
    """Return a function that removes a sentence's full stop and capital if most good sentences don't have them.

    Otherwise, people would recognise an attention check by its full stop.
    """
    stop, small = good.str.contains(_STOP).mean() > 0.5, good.str[:1].str.islower().mean() > 0.5

    def like(sentence: str) -> str:
        sentence = sentence if stop else _STOP.sub("", sentence)
        return sentence[:1].lower() + sentence[1:] if small else sentence

    return like


def write_forms(benchmark: Benchmark, config: QuestionnaireConfig, of: str | None) -> None:
    """Write the page of each form, and print how many there are. `of` is the language of the sentences, if known.

    Raises InputError if the folder contains another questionnaire, and the same errors as `read_texts` and `deal`.
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
                f"{path}: this form belongs to another questionnaire, which people may still be answering. Choose "
                "another folder with questionnaire.folder=NEW."
            )
        write_text(path, page)
    longest = max(map(len, forms))
    written = f"{plural(len(forms), 'form')} of up to {longest} questions ({plural(minutes(longest), 'minute')})"
    Console(markup=False, soft_wrap=True, highlight=False).print(f"{benchmark.name}: {written} in {config.folder}")
    if not texts["contact"]:
        say("The forms don't say whom to contact. Add a contact with questionnaire.texts=FILE.", "note", "yellow")


def minutes(questions: int) -> int:
    """Estimate how many minutes a form takes."""
    return math.ceil(questions * PAIR_SECONDS / 60)


def form_page(
    name: str, questions: list[dict[str, Any]], benchmark: Benchmark, texts: dict[str, Any], language: str, of: str
) -> str:
    """Return the HTML of a form, which needs no network and doesn't reveal the good sentences of its pairs.

    `language` is the language of the form's texts, and `of` is the language of the sentences (ISO 639; "" if unknown).
    All text is escaped by the template, in JSON (without < > &), and as text nodes by the script.
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
