"""Templates: texts with places for the sentences of a pair, of ours (conf/template/) or the user's.

A template of a kind has each placeholder of that kind once:

    in_template   {sentence}           a text that says that what follows is good, and the sentence
    comparative   {target}, {other}    the same, with the other sentence of the pair where a bad one belongs
    yes_no        {sentence}           a question about the sentence
    ab            {a}, {b}             a question about both
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eval.benchmarks.cells import check_encodes
from pairscale import ROOT
from pairscale.errors import ConfigError, InputError
from pairscale.schema import checked, read_yaml

if TYPE_CHECKING:
    from eval.scorers.base import TokenScores

PLACEHOLDERS = {
    "in_template": ("sentence",),
    "comparative": ("target", "other"),
    "yes_no": ("sentence",),
    "ab": ("a", "b"),
}
PROMPTS = ("yes_no", "ab")  # kinds with a system message and answers
FOLDER = ROOT / "conf" / "template"
_KEYS = ("system", "answers", "cue", "space", "templates")  # of a file; those of prompts before the last


Templated = Annotated[str | list[str | dict[str, str]] | None, "texts"]  # a file, or a list of templates


@dataclass
class TemplateParameters:
    """Parameters of a method with templates."""

    templates: Templated = None  # null: those of the benchmark's language; or a list of texts, or a YAML file with some


@dataclass(frozen=True)
class Template:
    """One template of a kind."""

    name: str
    text: str  # of a prompt: the user's message
    kind: str

    def fill(self, *sentences: str) -> tuple[str, tuple[int, int]]:
        """Return the text with sentences in the order of PLACEHOLDERS, and the place of the first of them in it.

        Braces in a sentence are not read as a placeholder.
        """
        places = PLACEHOLDERS[self.kind]
        parts = re.split(rf"\{{({'|'.join(places)})\}}", self.text)  # by turns text and the name of a placeholder
        first = 1 + 2 * parts[1::2].index(places[0])
        parts[1::2] = [sentences[places.index(place)] for place in parts[1::2]]
        start = sum(map(len, parts[:first]))
        return "".join(parts), (start, start + len(parts[first]))


@dataclass(frozen=True)
class Templates:
    """The templates that a method uses; what only prompts have is None elsewhere."""

    kind: str
    templates: tuple[Template, ...]
    system: str | None = None  # message that describes the task
    answers: tuple[str, str] | None = None  # yes_no: for and against; ab_prompt: the first and the second sentence
    cue: str | None = None  # what a base model's prompt ends with
    space: str | None = None  # between the cue and an answer

    def described(self) -> dict[str, Any]:
        """Return all of it as plain data, for metadata."""
        texts = {"templates": [{"name": template.name, "text": template.text} for template in self.templates]}
        prompts = {"system": self.system, "answers": self.answers and [*self.answers]}
        return {**prompts, "cue": self.cue, "space": self.space, **texts} if self.kind in PROMPTS else texts


ALONE = Templates("in_template", (Template("", "{sentence}", "in_template"),))  # of methods without templates


def templates_of(method: str, kind: str, own: Any, language: str | None) -> Templates:
    """Return the user's templates `own` (a list, or a file with a list or mapping), or if None those of the language.

    A user's prompts take what they leave out (system, answers, cue, space) from those of the language. Raises
    InputError for a file that cannot be read as templates, ConfigError for a template without its placeholder and where
    a language is needed and has none.
    """
    where = f"method.{method}.templates"
    ours = FOLDER / f"{kind}_{language}.yaml"
    values = read_yaml(ours, dict[str, Any], InputError, "restore it") if ours.is_file() else {}
    if own is None and not values:
        known = ", ".join(sorted(path.stem.removeprefix(f"{kind}_") for path in FOLDER.glob(f"{kind}_*.yaml")))
        raise ConfigError(
            f"method={method}: benchmark.language={'null' if language is None else language}, and there are "
            f"templates of: {known}; give benchmark.language or {where}=FILE"
        )
    if isinstance(own, str):
        where = f"{where}={own}"
        own = read_yaml(Path(own).expanduser(), Any, InputError, f"{where} must be a YAML file or a list")
    if own is not None:
        values = {**values, **(own if isinstance(own, Mapping) else {"templates": own})}
    if not set(values) <= set(_KEYS) or not isinstance(values.get("templates"), list):
        raise InputError(f"{where}: must be a list of templates, or have one and perhaps {', '.join(_KEYS[:-1])}")
    items = []
    for number, item in enumerate(values["templates"], start=1):
        named = {"text": item} if isinstance(item, str) else item
        items.append({"name": str(number), **named, "kind": kind} if isinstance(named, Mapping) else item)
    texts = {**values, "kind": kind, "templates": items}
    templates = checked(texts, Templates, where, InputError, "put in quotes what YAML reads as no text")
    _check(where, templates)
    return templates


def _check(where: str, templates: Templates) -> None:
    """Raise ConfigError for missing or wrong texts, InputError for text with NUL or half a surrogate pair in it."""
    names = [template.name for template in templates.templates]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"{where}: must be at least one template, each with another name; has {', '.join(names)}")
    for template in templates.templates:
        for placeholder in PLACEHOLDERS[templates.kind]:
            if (times := template.text.count(f"{{{placeholder}}}")) != 1:
                raise ConfigError(
                    f"{where}: template {template.name}: must have {{{placeholder}}} once, has it {times} times: "
                    f"{template.text!r}"
                )
    if templates.kind in PROMPTS and None in (templates.answers, templates.cue, templates.space):
        raise ConfigError(
            f"{where}: without answers, cue or space; give them in a YAML file of templates, or benchmark.language to "
            "have ours"
        )
    texts = [text for template in templates.templates for text in (template.name, template.text)]
    for text in filter(None, [templates.system, templates.cue, *(templates.answers or ()), *texts]):
        check_encodes(text, where, "a text")


def within(scores: TokenScores, span: tuple[int, int]) -> TokenScores:
    """Return the tokens of a sentence that stands at `span` of a longer text.

    A token counts where it covers a character of the sentence, even if it begins with the space before. Tokens without
    a width are the first bytes of the character after them and count with it; but the one at the beginning of the
    sentence is a space cut from the offsets, where no other token covers what stands before the sentence.
    """
    start, end = scores.spans[:, 0], scores.spans[:, 1]
    first, last = span
    cut = first > 0 and not bool(((start < first) & (end >= first)).any())
    inside = (start < last) & ((end > first) | (start >= first + cut))
    ids = scores.ids[inside] if len(scores.ids) else scores.ids
    return type(scores)(scores.logprobs[inside], scores.spans[inside], scores.unk[inside], ids)
