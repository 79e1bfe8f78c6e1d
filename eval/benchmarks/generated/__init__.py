"""Minimal pairs from paradigms of our own, in English and Mandarin: the languages' data, and what loads it.

<language>/lexicon/*.tsv          tables of words
<language>/grammar.yaml           variables and phrases that the paradigms share (corpora/grammar/engine.py)
<language>/paradigms/<UID>.yaml   a paradigm: phenomenon, field, prefix, skeleton (eval/benchmarks/paradigm.py)
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpora.grammar.engine import Grammar, read_grammar
from eval.benchmarks.paradigm import Paradigm
from pairscale.errors import InputError
from pairscale.schema import read_yaml

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
    where = f"{LANGUAGES[language]}/paradigms/{name}.yaml"
    described = read_yaml(FOLDER / where, dict[str, Any], InputError, "see eval/benchmarks/paradigm.py")
    return Paradigm(name, described, grammar, where)
