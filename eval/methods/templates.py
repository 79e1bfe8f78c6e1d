"""Templates: texts with places for the sentences of a pair, of ours (conf/template/) or the user's.

A template of a kind holds each placeholder of that kind once:

    in_template   {sentence}           a text that says that what follows is good, and the sentence
    comparative   {target}, {other}    the same, with the other sentence of the pair where a bad one belongs
    yes_no        {sentence}           a question about the sentence
    ab            {a}, {b}             a question about both
"""

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
from pairscale.schema import checked

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
        """Return the text with sentences in the order of PLACEHOLDERS, and the place of the first of them in it.

        Braces in a sentence are not read as a placeholder.
        """
        values = dict(zip(PLACEHOLDERS[self.kind], sentences, strict=True))
        text, span = "", (0, 0)
        for number, part in enumerate(self._parts):
            filled = values[part] if number % 2 else part
            if number % 2 and part == PLACEHOLDERS[self.kind][0]:
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
        """Return all of it as plain data, for metadata."""
        texts = {"templates": [{"name": template.name, "text": template.text} for template in self.templates]}
        if self.kind not in PROMPTS:
            return texts
        prompt = {"system": self.system, "answers": list(self.answers or ()), "cue": self.cue, "space": self.space}
        return prompt | texts


def templates_of(method: str, kind: str, config: MethodConfig, language: str | None) -> Templates:
    """Return the user's templates if `config.templates` has some, else those of the benchmark's language.

    A user's prompts take what they leave out (system, answers, cue, space) from those of the language. Raises
    InputError for a file that cannot be read as templates, ConfigError for a template without its placeholder and where
    a language is needed and has none.
    """
    where = f"method.{method}.templates"
    texts = (config.by_language or {}).get(language or "")
    if config.templates is not None:
        texts, where = _own(where, config.templates, texts)
    elif texts is None:
        known = ", ".join(config.by_language or {}) or "none"
        raise ConfigError(
            f"method={method}: benchmark.language={'null' if language is None else language}, and there are "
            f"templates of: {known}; give benchmark.language or {where}=FILE"
        )
    if kind in PROMPTS:
        _check_prompts(where, texts)
    answers = (texts.answers[0], texts.answers[1]) if kind in PROMPTS and texts.answers else None
    return Templates(kind, _checked(where, kind, texts.templates), texts.system, answers, texts.cue, texts.space)


def _own(where: str, value: Any, ours: TemplatesConfig | None) -> tuple[TemplatesConfig, str]:
    """Return the user's texts, from a list or a YAML file with a list or a mapping, and their place for messages."""
    if isinstance(value, str):
        where = f"{where}={value}"
        value = read_yaml(where, Path(value), "a YAML file or a list")
    values = value if isinstance(value, Mapping) else {"templates": value}
    names = [field.name for field in fields(TemplatesConfig)]
    if unknown := [str(name) for name in values if name not in names]:
        raise InputError(f"{where}: has {', '.join(unknown)}; must be a list of templates, or have {', '.join(names)}")
    if not isinstance(values.get("templates"), list):
        raise InputError(f"{where}: without a list of templates")
    items = [_item(where, number, item) for number, item in enumerate(values["templates"], start=1)]
    merged = {**(asdict(ours) if ours else {}), **values, "templates": items}
    return checked(merged, TemplatesConfig, where, InputError, "put in quotes what YAML reads as no text"), where


def _item(where: str, number: int, item: Any) -> dict[str, str]:
    item = {"text": item} if isinstance(item, str) else item
    if isinstance(item, Mapping) and set(item) <= {"name", "text"} and isinstance(item.get("text"), str):
        return {"name": str(item.get("name", number)), "text": item["text"]}
    raise InputError(f"{where}: template {number}: must be a text, or have a text and perhaps a name, got {item!r}")


def _checked(where: str, kind: str, items: list[TemplateConfig]) -> tuple[Template, ...]:
    if not items:
        raise ConfigError(f"{where}: must hold at least one template")
    templates: dict[str, Template] = {}
    for item in items:
        check_encodes(item.name, where, "the name of a template")
        sentence_of(item.text, where, f"template {item.name}")
        for placeholder in PLACEHOLDERS[kind]:
            if (times := item.text.count(f"{{{placeholder}}}")) != 1:
                raise ConfigError(
                    f"{where}: template {item.name}: must have {{{placeholder}}} once, has it {times} times: "
                    f"{item.text!r}"
                )
        if item.name in templates:
            raise ConfigError(f"{where}: two templates named {item.name}")
        templates[item.name] = Template(item.name, item.text, kind)
    return tuple(templates.values())


def _check_prompts(where: str, texts: TemplatesConfig) -> None:
    """Raise ConfigError for missing texts, InputError for text with NUL or half a surrogate pair in it."""
    for name in ("cue", "space", "answers"):
        if getattr(texts, name) is None:
            raise ConfigError(
                f"{where}: no {name}; give one in a YAML file of templates, or benchmark.language to have ours"
            )
    answers = texts.answers or []
    if len(answers) != 2:
        raise ConfigError(f"{where}: answers are {answers!r}, must be two texts")
    parts = {"system": texts.system, "cue": texts.cue, "answer 1": answers[0], "answer 2": answers[1]}
    for name, text in parts.items():
        if text:
            check_encodes(text, where, name)


def within(scores: TokenScores, span: Span) -> TokenScores:
    """Return the tokens of a sentence that stands at `span` of a longer text.

    A token counts where it covers a character of the sentence, even if it begins with the space before. Tokens without
    a width are the first bytes of the character after them and count with it; but the one at the beginning of the
    sentence is a space cut from the offsets, where no other token covers what stands before the sentence.
    """
    start, end = scores.spans[:, 0], scores.spans[:, 1]
    first, last = span
    cut = first > 0 and not bool(((start < first) & (end >= first)).any())
    inside: npt.NDArray[np.bool_] = (start < last) & ((end > first) | (start >= first + cut))
    ids = scores.ids[inside] if len(scores.ids) else scores.ids
    return TokenScores(scores.logprobs[inside], scores.spans[inside], scores.unk[inside], ids)
