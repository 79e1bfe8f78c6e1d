"""Read and fill in templates, which are texts with placeholders for the sentences of a pair.

Templates are in conf/template/ or written by the user. A template must contain each placeholder of its kind once:

    in_template   {sentence}           a statement that the following sentence is good
    comparative   {target}, {other}    a statement that one sentence is good and the other bad
    yes_no        {sentence}           a question about the sentence
    ab            {a}, {b}             a question about both sentences
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
PROMPTS = ("yes_no", "ab")  # the kinds with a system message and answers
FOLDER = ROOT / "conf" / "template"
_KEYS = ("system", "answers", "cue", "space", "templates")  # keys of a file; the first four are only for prompts


Templated = Annotated[str | list[str | dict[str, str]] | None, "texts"]  # a file, or a list of templates


@dataclass
class TemplateParameters:
    """Parameters of a method with templates."""

    templates: Templated = None  # a list of texts or a YAML file; null: the templates for the benchmark's language


@dataclass(frozen=True)
class Template:
    """A text with placeholders for sentences."""

    name: str
    text: str  # for prompts, the user's message
    kind: str

    def fill(self, *sentences: str) -> tuple[str, tuple[int, int]]:
        """Fill in sentences, in the order of PLACEHOLDERS. Return the text, and begin and end of the first sentence.

        Braces in a sentence are never treated as a placeholder.
        """
        places = PLACEHOLDERS[self.kind]
        parts = re.split(rf"\{{({'|'.join(places)})\}}", self.text)  # text and names of placeholders alternate
        first = 1 + 2 * parts[1::2].index(places[0])
        parts[1::2] = [sentences[places.index(place)] for place in parts[1::2]]
        start = sum(map(len, parts[:first]))
        return "".join(parts), (start, start + len(parts[first]))


@dataclass(frozen=True)
class Templates:
    """The templates that a method uses. The attributes for prompts are None for other kinds."""

    kind: str
    templates: tuple[Template, ...]
    system: str | None = None  # a message that describes the task
    answers: tuple[str, str] | None = None  # for good and bad (yes_no), or for the first and the second sentence (ab)
    cue: str | None = None  # the end of a prompt for a base model
    space: str | None = None  # the text between the cue and an answer

    def described(self) -> dict[str, Any]:
        """Return the templates as plain data, for metadata."""
        texts = {"templates": [{"name": template.name, "text": template.text} for template in self.templates]}
        prompts = {"system": self.system, "answers": self.answers and [*self.answers]}
        return {**prompts, "cue": self.cue, "space": self.space, **texts} if self.kind in PROMPTS else texts


ALONE = Templates("in_template", (Template("", "{sentence}", "in_template"),))  # for methods without templates


def templates_of(method: str, kind: str, own: Any, language: str | None) -> Templates:
    """Return the user's templates, or the built-in ones for the language.

    Args:
        method: Name of the method, for error messages.
        kind: Kind of templates (PLACEHOLDERS).
        own: The user's templates, as a list, a mapping with _KEYS, or a YAML file with either of these. If it is None,
            the built-in templates are used. They also replace missing keys (system, answers, cue, space).
        language: Language of the built-in templates.

    Raises:
        InputError: If a file can't be read as templates.
        ConfigError: If a template lacks a placeholder, or if there are no built-in templates for the language.
    """
    where = f"method.{method}.templates"
    ours = FOLDER / f"{kind}_{language}.yaml"
    values = read_yaml(ours, dict[str, Any], InputError, "restore it") if ours.is_file() else {}
    if own is None and not values:
        known = ", ".join(sorted(path.stem.removeprefix(f"{kind}_") for path in FOLDER.glob(f"{kind}_*.yaml")))
        raise ConfigError(
            f"benchmark.language={'null' if language is None else language}: method={method} has no built-in templates "
            f"for this language. Set benchmark.language to {known}, or use your own templates with {where}=FILE."
        )
    if isinstance(own, str):
        where = f"{where}={own}"
        own = read_yaml(Path(own).expanduser(), Any, InputError, f"{where} must be a YAML file or a list")
    if own is not None:
        values = {**values, **(own if isinstance(own, Mapping) else {"templates": own})}
    if not set(values) <= set(_KEYS) or not isinstance(values.get("templates"), list):
        raise InputError(
            f"{where}: this is neither a list of templates nor a mapping with the key templates. Write a list, or a "
            f"mapping with the keys {', '.join(_KEYS)}."
        )
    items = []
    for number, item in enumerate(values["templates"], start=1):
        named = {"text": item} if isinstance(item, str) else item
        items.append({"name": str(number), **named, "kind": kind} if isinstance(named, Mapping) else item)
    texts = {**values, "kind": kind, "templates": items}
    templates = checked(texts, Templates, where, InputError, "put quotes around texts that YAML reads as other types")
    _check(where, templates)
    return templates


def _check(where: str, templates: Templates) -> None:
    """Raise ConfigError if a text is missing or wrong, and InputError if it contains NUL or half a surrogate pair."""
    names = [template.name for template in templates.templates]
    if not names or len(set(names)) < len(names):
        given = f"two templates have the same name ({', '.join(names)})" if names else "there are no templates"
        raise ConfigError(f"{where}: {given}. Write at least one template, and give each a different name.")
    for template in templates.templates:
        for placeholder in PLACEHOLDERS[templates.kind]:
            if (times := template.text.count(f"{{{placeholder}}}")) != 1:
                raise ConfigError(
                    f"{where}: template {template.name} contains {{{placeholder}}} {times} times, but must contain it "
                    f"once. Correct this template: {template.text!r}"
                )
    if templates.kind in PROMPTS and None in (templates.answers, templates.cue, templates.space):
        raise ConfigError(
            f"{where}: answers, cue or space are missing. Add them to a YAML file of templates, or set "
            "benchmark.language to use the built-in ones."
        )
    texts = [text for template in templates.templates for text in (template.name, template.text)]
    for text in filter(None, [templates.system, templates.cue, *(templates.answers or ()), *texts]):
        check_encodes(text, where, "a text")


def within(scores: TokenScores, span: tuple[int, int]) -> TokenScores:
    """Return the token scores of a sentence that is part of a longer text, at the characters `span`.

    A token is included if it covers a character of the sentence, even if it begins with the space before it. Tokens of
    zero width are the first bytes of the next character, and are included with it. There is one exception. If no other
    token covers the space before the sentence, a token of zero width at its beginning is this space.
    """
    start, end = scores.spans[:, 0], scores.spans[:, 1]
    first, last = span
    cut = first > 0 and not bool(((start < first) & (end >= first)).any())
    inside = (start < last) & ((end > first) | (start >= first + cut))
    ids = scores.ids[inside] if len(scores.ids) else scores.ids
    return type(scores)(scores.logprobs[inside], scores.spans[inside], scores.unk[inside], ids)
