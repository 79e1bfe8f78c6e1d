"""The language of rewriting rules: what stands in the place of the words that a pattern names.

A rule is a text with nodes of the pattern in braces: {verb} is the word itself, {theme...} the word with all that
depends on it (without the parts that other nodes of the rule name), {noun:other} another word of equal frequency with
the same part of speech and features, and {-article} or {-clause...} what is left out. All else stands as it is written.
The words of a rule's nodes must form one stretch of the sentence.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corpora.constructions.patterns import Pattern
from pairscale.errors import ConfigError

WORD, PHRASE, OTHER = "word", "phrase", "other"
_SLOT = re.compile(r"\{(?P<left_out>-)?(?P<node>[^{}.:-]+)(?P<form>\.\.\.|:other)?\}")
_FORMS = {None: WORD, "...": PHRASE, ":other": OTHER}


@dataclass(frozen=True)
class Slot:
    """A node of a rule, the form in which it stands, WORD, PHRASE or OTHER, and whether that is left out."""

    node: str
    form: str
    left_out: bool = False


Rule = tuple[str | Slot, ...]  # texts as they are, and nodes


def compile_rules(rules: Any, patterns: Sequence[Pattern], where: str) -> list[Rule | None]:
    """Return the rule of each pattern of a filter, None where it has none; `where` names them in messages.

    rules: one for all patterns, or a list with one for each, null for none. Raises ConfigError.
    """
    if isinstance(rules, str):
        rules = [rules] * len(patterns)
    if not isinstance(rules, list) or len(rules) != len(patterns):
        raise ConfigError(f"{where}={rules!r:.80}: must be a rule, or a list of {len(patterns)}, one for each pattern")
    compiled = zip(rules, patterns, strict=True)
    return [_rule(rule, nodes, f"{where}[{number}]") for number, (rule, nodes) in enumerate(compiled)]


def _rule(rule: Any, pattern: Pattern, where: str) -> Rule | None:
    if rule is None:
        return None
    if not isinstance(rule, str):
        raise ConfigError(f"{where}={rule!r:.80}: must be a text such as '{{verb}} {{theme...}} to {{recipient...}}'")
    names = [node.name for node in pattern]
    parts: list[str | Slot] = []
    end = 0
    for match in _SLOT.finditer(rule):
        parts.append(rule[end : match.start()])
        parts.append(Slot(match["node"], _FORMS[match["form"]], bool(match["left_out"])))
        end = match.end()
    parts.append(rule[end:])
    slots = [part for part in parts if isinstance(part, Slot)]
    if any(brace in part for part in parts if isinstance(part, str) for brace in "{}"):
        raise ConfigError(
            f"{where}={rule}: braces must hold a node: {{verb}}, {{theme...}}, {{noun:other}} or {{-article}}"
        )
    for slot in slots:
        if slot.node not in names:
            raise ConfigError(f"{where}={rule}: no node '{slot.node}' in its pattern; available: {', '.join(names)}")
    if not slots or len({slot.node for slot in slots}) < len(slots):
        raise ConfigError(f"{where}={rule}: must name at least one node, and each once")
    return tuple(part for part in parts if part)
