"""Forms: pairs of a benchmark dealt out for people to judge, with attention checks, and the texts around them."""

import math
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


@dataclass(frozen=True)
class Form:
    """The pairs of a benchmark that one person judges, each once."""

    number: int  # from 1
    of: int
    pairs: pd.DataFrame  # rows of Benchmark.pairs
    checks: tuple[CheckConfig, ...]
    digest: str  # `form_digest` of it

    @property
    def name(self) -> str:
        """form-03"""
        return f"form-{self.number:0{len(str(self.of))}d}"


def form_digest(benchmark: str, pairs: Iterable[tuple[str, str, str, str]], checks: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of a form's content in any order, by which a file of answers is known to be whole.

    `benchmark`: its digest. `pairs`: paradigm, pair_id and the two sentences of each; `checks`: their two sentences.
    """
    questions = sorted([paradigm, pair_id, *sorted(sentences)] for paradigm, pair_id, *sentences in pairs)
    return sha256_json([benchmark, questions, sorted(sorted(sentences) for sentences in checks)])


def deal(benchmark: Benchmark, config: QuestionnaireConfig, texts: TextConfig) -> list[Form]:
    """Return forms: `per_paradigm` pairs of each paradigm, each on `raters` forms with different other pairs.

    Forms of a round hold each of these pairs once, differ in size by one pair at most, and share each paradigm as
    evenly. The attention checks of a form are drawn too. Raises ConfigError where the texts have fewer of them.
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
    """Return the texts of the forms and their language: the benchmark's, unless `config` names another.

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
    return _own(where, read_yaml(where, Path(config.texts)), ours), code


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
