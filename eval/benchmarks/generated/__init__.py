"""Minimal pairs from paradigms of our own, in English and Mandarin: the languages' data, and what loads it.

<language>/lexicon/*.tsv          tables of words
<language>/grammar.yaml           variables and phrases that the paradigms share (corpora/grammar/engine.py)
<language>/paradigms/<UID>.yaml   a paradigm: phenomenon, field, prefix, skeleton (eval/benchmarks/paradigm.py)
"""

from collections.abc import Callable
from pathlib import Path

import yaml

from corpora.grammar.engine import Grammar, read_grammar
from eval.benchmarks.paradigm import Paradigm
from pairscale.errors import InputError

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "english", "zh": "mandarin"}  # ISO 639 code: folder


def grammar_of(language: str, knows: Callable[[str], bool] | None = None) -> Grammar:
    """Read the grammar of a language, "en" or "zh"; `knows` and errors as of corpora.grammar.lexicon.Lexicon."""
    return read_grammar(FOLDER / LANGUAGES[language], knows)


def paradigms_of(language: str) -> list[str]:
    """Return the UIDs of a language's paradigms."""
    return sorted(file.stem for file in (FOLDER / LANGUAGES[language] / "paradigms").glob("*.yaml"))


def paradigm_of(language: str, name: str, grammar: Grammar) -> Paradigm:
    """Read one paradigm. Raises InputError for a broken file, NothingFits if no words fit."""
    file = FOLDER / LANGUAGES[language] / "paradigms" / f"{name}.yaml"
    try:
        described = yaml.safe_load(file.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{file}: {' '.join(str(error).split())}") from None
    if not isinstance(described, dict):
        raise InputError(f"{file}: must be a mapping with phenomenon, field, prefix and skeleton")
    return Paradigm(name, described, grammar, f"{LANGUAGES[language]}/paradigms/{name}.yaml")
