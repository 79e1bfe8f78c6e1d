"""Forms: pairs of a benchmark dealt out for people to judge, with attention checks, and the texts around them."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from eval.benchmarks.files import read_yaml
from eval.benchmarks.load import Benchmark, drawn_pairs
from eval.questionnaire.config import CheckConfig, QuestionnaireConfig, TextConfig
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_json
from pairscale.schema import checked

UNDETERMINED = "und"  # the code of ISO 639 for a language that is not known
_STOP = re.compile(r"[.!?。！？]$")


@dataclass(frozen=True)
class Form:
    """The pairs of a benchmark that one person judges, each once."""

    number: int  # from 1
    of: int
    pairs: pd.DataFrame  # rows of Benchmark.pairs
    checks: tuple[CheckConfig, ...]
    digest: str  # `form_digest` of it
    minutes: int  # that it takes, as a guess

    @property
    def name(self) -> str:
        """form-03"""
        return f"form-{self.number:0{len(str(self.of))}d}"

    @property
    def questions(self) -> int:
        """Number of its pairs and attention checks."""
        return len(self.pairs) + len(self.checks)


def form_digest(benchmark: str, pairs: Iterable[tuple[str, str, str, str]], checks: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of a form's content in any order, by which a file of answers is known to be whole.

    `benchmark`: its digest. `pairs`: paradigm, pair_id and the two sentences of each; `checks`: their two sentences.
    """
    questions = sorted([paradigm, pair_id, *sorted(sentences)] for paradigm, pair_id, *sentences in pairs)
    return sha256_json([benchmark, questions, sorted(sorted(sentences) for sentences in checks)])


def deal(benchmark: Benchmark, config: QuestionnaireConfig, texts: TextConfig) -> list[Form]:
    """Return forms: `per_paradigm` pairs of each paradigm, each on `raters` forms with different other pairs.

    Forms of a round hold each of these pairs once, differ in size by one pair at most, and share each paradigm as
    evenly. The attention checks of a form are drawn too, and written as its pairs are. Raises ConfigError where the
    texts have fewer of them.
    """
    if config.checks > len(texts.checks):
        raise ConfigError(f"questionnaire.checks={config.checks}: the texts hold {len(texts.checks)} attention checks")
    pairs = benchmark.pairs.iloc[drawn_pairs(benchmark.pairs, str(config.per_paradigm), config.seed)]
    known = _like_pairs(texts.checks, benchmark.pairs)
    rng = np.random.default_rng([config.seed, 1])
    hands = math.ceil(len(pairs) / config.pairs)
    forms = []
    for number in range(hands * config.raters):
        if number % hands == 0:  # a new round: paradigms one after the other, as cards of a suit, are dealt in turn
            order = rng.permutation(len(pairs))
            suits = pd.factorize(pairs["paradigm"].iloc[order])[0]
            dealt = order[np.argsort(suits, kind="stable")]
        hand = pairs.iloc[np.sort(dealt[number % hands :: hands])]
        checks = tuple(known[i] for i in rng.permutation(len(known))[: config.checks])
        digest = form_digest(
            benchmark.digest,
            hand[["paradigm", "pair_id", "good", "bad"]].itertuples(index=False, name=None),
            [(check.good, check.bad) for check in checks],
        )
        minutes = math.ceil((len(hand) + len(checks)) * config.pair_seconds / 60)
        forms.append(Form(number + 1, hands * config.raters, hand, checks, digest, minutes))
    return forms


def _like_pairs(checks: Iterable[CheckConfig], pairs: pd.DataFrame) -> list[CheckConfig]:
    """Return attention checks with a full stop and a capital only if most good sentences of `pairs` have them.

    People see at once that the only sentence with a full stop is a check.
    """
    good = pairs["good"].str
    stop, small = good.contains(_STOP).mean() > 0.5, good[:1].str.islower().mean() > 0.5

    def like(sentence: str) -> str:
        sentence = sentence if stop else _STOP.sub("", sentence)
        return sentence[:1].lower() + sentence[1:] if small else sentence

    return [CheckConfig(like(check.good), like(check.bad)) for check in checks]


def texts_of(config: QuestionnaireConfig, language: str | None) -> dict[str, TextConfig]:
    """Return the texts of the forms by their language: the benchmark's `language`, unless `config` names others.

    Raises ConfigError where there are no texts of a language, InputError for a file that does not hold texts.
    """
    return {code or UNDETERMINED: _texts(config, code) for code in config.languages or [language or ""]}


def _texts(config: QuestionnaireConfig, code: str) -> TextConfig:
    ours = config.by_language.get(code)
    if config.texts is None:
        if ours is None:
            raise ConfigError(
                f"no texts in the language {code or 'null'} (questionnaire.languages, or else the benchmark's); "
                f"available: {', '.join(config.by_language)}; give one of these, or questionnaire.texts=FILE"
            )
        return ours
    where, path = f"questionnaire.texts={config.texts}", Path(config.texts)
    if path.is_dir():
        path = path / f"{code}.yaml"
    elif len(config.languages or ()) > 1:
        names = ", ".join(f"{code}.yaml" for code in config.languages or ())
        raise ConfigError(f"{where}: must be a folder with a file a language: {names}")
    return _own(where, read_yaml(where, path), ours)


def _own(where: str, values: object, ours: TextConfig | None) -> TextConfig:
    names = [field.name for field in fields(TextConfig)]
    if not isinstance(values, Mapping) or not set(values) <= set(names):
        keys = [str(name) for name in values if name not in names] if isinstance(values, Mapping) else ["no keys"]
        raise InputError(f"{where}: has {', '.join(keys)}; must be texts under some of {', '.join(names)}")
    merged = {**(asdict(ours) if ours else {}), **values}
    remedy = "put in quotes what YAML reads as no text" if ours else "there are no texts of the language to add them"
    texts = checked(merged, TextConfig, where, InputError, remedy)
    if any(set(check) != {"good", "bad"} for check in merged["checks"]):
        raise InputError(f"{where}: checks must be a list, each with the texts good and bad")
    return texts
