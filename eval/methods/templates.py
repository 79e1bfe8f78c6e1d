"""Templates: texts with places for the sentences of a pair, of ours (conf/template/) or the user's.

A template of a kind holds each placeholder of that kind once:

    in_template   {sentence}           a text that says that what follows is good, and the sentence
    comparative   {target}, {other}    the same, with the other sentence of the pair where a bad one belongs
    yes_no        {sentence}           a question about the sentence
    ab            {a}, {b}             a question about both
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eval.benchmarks.cells import check_encodes, sentence_of
from eval.benchmarks.files import read_yaml
from eval.config import MethodConfig, TemplateConfig, TemplatesConfig
from eval.scorers.base import TokenScores
from pairscale.errors import ConfigError, InputError

PLACEHOLDERS = {
    "in_template": ("sentence",),
    "comparative": ("target", "other"),
    "yes_no": ("sentence",),
    "ab": ("a", "b"),
}
PROMPTS = ("yes_no", "ab")  # kinds with a system message and answers
Span = tuple[int, int]


@dataclass(frozen=True)
class Template:
    """One template of a kind."""

    name: str
    text: str
    kind: str

    @cached_property
    def _parts(self) -> list[str]:
        """By turns text and the name of a placeholder."""
        return re.split(rf"\{{({'|'.join(PLACEHOLDERS[self.kind])})\}}", self.text)

    def fill(self, *sentences: str) -> tuple[str, Span]:
        """The text with the sentences, in the order of PLACEHOLDERS, and where in it the first of them stands.

        What a sentence holds is not read as a placeholder.
        """
        given = dict(zip(PLACEHOLDERS[self.kind], sentences, strict=True))
        first = PLACEHOLDERS[self.kind][0]
        text, span = "", (0, 0)
        for number, part in enumerate(self._parts):
            filled = given[part] if number % 2 else part
            if number % 2 and part == first:
                span = len(text), len(text) + len(filled)
            text += filled
        return text, span


@dataclass(frozen=True)
class Templates:
    """The templates that a method uses; `system` to `space` are of prompts alone (eval.config.TemplatesConfig)."""

    kind: str
    templates: tuple[Template, ...]
    system: str | None
    answers: tuple[str, str] | None
    cue: str | None
    space: str | None

    def described(self) -> dict[str, Any]:
        """All of it as plain data, for metadata."""
        texts = {"templates": [{"name": template.name, "text": template.text} for template in self.templates]}
        if self.kind not in PROMPTS:
            return texts
        return {
            "system": self.system,
            "answers": list(self.answers or ()),
            "cue": self.cue,
            "space": self.space,
            **texts,
        }


def templates_of(method: str, kind: str, config: MethodConfig, language: str | None) -> Templates:
    """The user's templates where `config.templates` gives some, else those of the benchmark's language.

    Of a user's prompts what is not given (system, answers, cue, space) is that of the language.
    Raises ConfigError for a template without its placeholder, and where no language is known and it is needed;
    InputError for a file that cannot be read as templates.
    """
    key = f"method.{method}.templates"
    ours = (config.by_language or {}).get(language or "")
    if config.templates is None:
        if ours is None:
            known = ", ".join(config.by_language or {}) or "none"
            raise ConfigError(
                f"method={method}: benchmark.language={'null' if language is None else language}, and there are "
                f"templates of: {known}; give benchmark.language or {key}=FILE"
            )
        found, where = ours, key
    else:
        found, where = _users(key, config.templates, ours)
    if kind in PROMPTS:
        _check_prompts(where, found)
    templates = _checked(where, kind, found.templates)
    answers = (found.answers[0], found.answers[1]) if kind in PROMPTS and found.answers else None
    return Templates(kind, templates, found.system, answers, found.cue, found.space)


def _users(key: str, given: Any, ours: TemplatesConfig | None) -> tuple[TemplatesConfig, str]:
    """What the user gave, and the file or key that a message names: a list, or a YAML file with one or a mapping."""
    where = key
    if isinstance(given, str):
        where = f"{key}={given}"
        given = read_yaml(where, Path(given), "a YAML file or a list")
    names = [field.name for field in fields(TemplatesConfig)]
    found = given if isinstance(given, Mapping) else {"templates": given}
    unknown = [str(name) for name in found if name not in names]
    if unknown:
        raise InputError(f"{where}: has {', '.join(unknown)}; must be a list of templates, or have {', '.join(names)}")
    if not isinstance(found.get("templates"), list):
        raise InputError(f"{where}: without a list of templates")
    items = [_item(where, number, item) for number, item in enumerate(found["templates"], start=1)]
    return TemplatesConfig(**{**(asdict(ours) if ours else {}), **found, "templates": items}), where


def _item(where: str, number: int, item: Any) -> TemplateConfig:
    if isinstance(item, str):
        return TemplateConfig(str(number), item)
    if isinstance(item, Mapping) and set(item) <= {"name", "text"} and isinstance(item.get("text"), str):
        return TemplateConfig(str(item.get("name", number)), item["text"])
    raise InputError(f"{where}: template {number}: must be a text, or have a text and perhaps a name, got {item!r}")


def _checked(where: str, kind: str, given: list[TemplateConfig]) -> tuple[Template, ...]:
    if not given:
        raise ConfigError(f"{where}: must hold at least one template")
    found: dict[str, Template] = {}
    for item in given:
        check_encodes(item.name, where, "the name of a template")
        sentence_of(item.text, where, f"template {item.name}")
        for placeholder in PLACEHOLDERS[kind]:
            times = item.text.count(f"{{{placeholder}}}")
            if times != 1:
                told = f"{times} times" if times else "without it"
                raise ConfigError(
                    f"{where}: template {item.name}: must have {{{placeholder}}} once, is {told}: {item.text!r}"
                )
        if item.name in found:
            raise ConfigError(f"{where}: two templates named {item.name}")
        found[item.name] = Template(item.name, item.text, kind)
    return tuple(found.values())


def _check_prompts(where: str, found: TemplatesConfig) -> None:
    """Raise ConfigError for what is no text, InputError for text with NUL or half a surrogate pair in it."""
    for name in ("cue", "space"):
        if not isinstance(getattr(found, name), str):
            raise ConfigError(
                f"{where}: no {name}; give one in a YAML file of templates, or benchmark.language to have ours"
            )
    if not isinstance(found.system, str | None):
        raise ConfigError(f"{where}: system is {found.system!r}, must be a text")
    answers = found.answers
    if not isinstance(answers, list) or len(answers) != 2 or not all(isinstance(text, str) for text in answers):
        raise ConfigError(
            f"{where}: answers are {answers!r}, must be two texts (in quotes: YAML reads Yes and No as true and false)"
        )
    parts = {"system": found.system, "cue": found.cue, "answer 1": answers[0], "answer 2": answers[1]}
    for name, text in parts.items():
        if text:
            check_encodes(text, where, name)


def within(scores: TokenScores, span: Span) -> TokenScores:
    """The tokens of a sentence that stands at `span` of a longer text.

    A token counts where it covers a character of the sentence: so also one that begins before it, with the space or the
    line's end that a tokenizer joins to the first word. Tokens without a width are the first bytes of the character
    after them and count with it; but the one at the beginning of the sentence is a space cut from the offsets, where no
    other token covers what stands before the sentence.
    """
    start, end = scores.spans[:, 0], scores.spans[:, 1]
    first, last = span
    cut = first > 0 and not bool(((start < first) & (end >= first)).any())
    inside: npt.NDArray[np.bool_] = (start < last) & ((end > first) | (start >= first + cut))
    return TokenScores(scores.logprobs[inside], scores.spans[inside], scores.unk[inside])
