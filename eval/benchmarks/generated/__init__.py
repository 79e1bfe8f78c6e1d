"""Minimal pairs from paradigms of our own, in English and Mandarin: the languages' data, and what loads it.

<language>/lexicon/*.tsv          tables of words
<language>/grammar.yaml           variables and phrases that the paradigms share (corpora/grammar/engine.py)
<language>/paradigms/<UID>.yaml   a paradigm: phenomenon, field, prefix, skeleton (eval/benchmarks/paradigm.py)
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from corpora.grammar.engine import Grammar, read_grammar
from eval.benchmarks.paradigm import Paradigm
from pairscale.errors import ConfigError, InputError

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "english", "zh": "mandarin"}  # ISO 639 code: folder


def grammar_of(language: str, knows: Callable[[str], bool] | None = None) -> Grammar:
    """The grammar of a language, "en" or "zh"; `knows` as for corpora.grammar.lexicon.Lexicon. Raises InputError."""
    return read_grammar(FOLDER / LANGUAGES[language], knows)


def paradigms_of(language: str, asked: Sequence[str] | None = None) -> list[str]:
    """The UIDs of a language's paradigms, or those that are asked for. Raises ConfigError for one that is not there."""
    known = sorted(file.stem for file in (FOLDER / LANGUAGES[language] / "paradigms").glob("*.yaml"))
    for name in asked or ():
        if name not in known:
            near = ", ".join(difflib.get_close_matches(name, known, n=3) or known[:3])
            raise ConfigError(f"benchmark.paradigms: {LANGUAGES[language]} has no paradigm '{name}'; near it: {near}")
    return known if asked is None else list(dict.fromkeys(asked))


def paradigm_of(language: str, name: str, grammar: Grammar) -> Paradigm:
    """Read one paradigm. Raises InputError where its file is broken, NothingFits where nothing fits."""
    file = FOLDER / LANGUAGES[language] / "paradigms" / f"{name}.yaml"
    try:
        described = yaml.safe_load(file.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from None
    if not isinstance(described, dict):
        raise InputError(f"{file}: must be a mapping with phenomenon, field, prefix and skeleton")
    return Paradigm(name, described, grammar, f"{LANGUAGES[language]}/paradigms/{name}.yaml")
