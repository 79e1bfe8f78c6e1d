"""Forms: pairs of a benchmark dealt out for people to judge, with attention checks, and the texts around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from eval.benchmarks.files import read_yaml
from eval.benchmarks.load import Benchmark, drawn_pairs
from eval.questionnaire.config import CheckConfig, QuestionnaireConfig, TextConfig
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_json


@dataclass(frozen=True)
class Form:
    """What one person judges: some pairs of a benchmark, each once.

    pairs: rows of Benchmark.pairs. digest: `form_digest` of it.
    """

    number: int  # from 1
    of: int
    pairs: pd.DataFrame
    checks: tuple[CheckConfig, ...]
    digest: str

    @property
    def name(self) -> str:
        """form-03"""
        return f"form-{self.number:0{len(str(self.of))}d}"


def form_digest(benchmark: str, pairs: Iterable[tuple[str, str, str, str]], checks: Iterable[tuple[str, str]]) -> str:
    """SHA-256 of what a form asks, in whatever order it stands there: so an answer tells whether it is whole.

    `benchmark`: its digest. `pairs`: paradigm, pair_id and the two sentences of each; `checks`: their two sentences.
    """
    asked = sorted([paradigm, pair_id, *sorted(sentences)] for paradigm, pair_id, *sentences in pairs)
    return sha256_json([benchmark, asked, sorted(sorted(sentences) for sentences in checks)])


def deal(benchmark: Benchmark, config: QuestionnaireConfig, texts: TextConfig) -> list[Form]:
    """The forms: `per_paradigm` pairs of each paradigm, each on `raters` forms that differ in what else is on them.

    Forms of a round hold each of these pairs once, differ in size by one pair at most, and share each paradigm as
    evenly. Which attention checks a form has is drawn too. Raises ConfigError where there are fewer checks than asked.
    """
    if config.checks > len(texts.checks):
        raise ConfigError(f"questionnaire.checks={config.checks}: the texts hold {len(texts.checks)} attention checks")
    pairs = benchmark.pairs.iloc[drawn_pairs(benchmark.pairs, str(config.per_paradigm), config.seed)]
    rng = np.random.default_rng([config.seed, 1])
    hands = math.ceil(len(pairs) / config.pairs)
    forms = []
    for number in range(hands * config.raters):
        if number % hands == 0:  # a new round: paradigms one after the other, as cards of a suit, are dealt in turn
            order = rng.permutation(len(pairs))
            suits = pd.factorize(pairs["paradigm"].iloc[order])[0]
            dealt = order[np.argsort(suits, kind="stable")]
        hand = pairs.iloc[np.sort(dealt[number % hands :: hands])]
        checks = tuple(texts.checks[i] for i in rng.permutation(len(texts.checks))[: config.checks])
        digest = form_digest(
            benchmark.digest,
            hand[["paradigm", "pair_id", "good", "bad"]].itertuples(index=False, name=None),
            [(check.good, check.bad) for check in checks],
        )
        forms.append(Form(number + 1, hands * config.raters, hand, checks, digest))
    return forms


def texts_of(config: QuestionnaireConfig, language: str | None) -> tuple[TextConfig, str]:
    """What the forms say, and the language that it is in: the benchmark's, unless `config` names another.

    Raises ConfigError where there are no texts of the language, InputError for a file that does not hold texts.
    """
    code = config.language or language or ""
    ours = config.by_language.get(code)
    if config.texts is None:
        if ours is None:
            raise ConfigError(
                f"questionnaire.language={config.language or 'null'}, benchmark.language={language or 'null'}: there "
                f"are texts in {', '.join(config.by_language)}; give one of these, or questionnaire.texts=FILE"
            )
        return ours, code
    where = f"questionnaire.texts={config.texts}"
    given = read_yaml(where, Path(config.texts))
    return _users(where, given, ours), code


def _users(where: str, given: object, ours: TextConfig | None) -> TextConfig:
    names = [field.name for field in fields(TextConfig)]
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        told = ", ".join(str(name) for name in given if name not in names) if isinstance(given, Mapping) else "no keys"
        raise InputError(f"{where}: has {told}; must be texts under some of {', '.join(names)}")
    found = {**(asdict(ours) if ours else {}), **given}
    lacking = [name for name in names if name not in found]
    if lacking:
        raise InputError(
            f"{where}: without {', '.join(lacking)}, and there are no texts of the language to take them from"
        )
    for name, value in found.items():
        match name:
            case "checks":
                fits = _all(value, Mapping) and all(
                    set(check) == {"good", "bad"} and _all([*check.values()], str) for check in value
                )
                allowed = "a list, each with the texts good and bad"
            case "introduction" | "thanks" | "answers":
                fits, allowed = _all(value, str), "a list of texts"
            case _:
                fits, allowed = isinstance(value, str), "a text"
        if not fits:
            raise InputError(
                f"{where}: {name} is {value!r}, must be {allowed} (in quotes where YAML reads it as another)"
            )
    found["checks"] = [CheckConfig(**check) for check in found["checks"]]
    return TextConfig(**found)


def _all(values: object, of: type) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str) and all(isinstance(one, of) for one in values)
