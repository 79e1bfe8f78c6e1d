"""Chat templates of instruct models: prompts of a system message and a question, and checks of the template."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pairscale.errors import ConfigError, error_line
from pairscale.files import sha256_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class ChatTemplate:
    """The chat template of a tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, name: str):
        """`name` is the model's, for messages."""
        self.tokenizer = tokenizer
        self.name = name

    @property
    def digest(self) -> str:
        """SHA-256 of the template, or of the named ones."""
        return sha256_json(self.tokenizer.chat_template)

    @cached_property
    def takes_system(self) -> bool:
        """True if the template takes a system message: some raise an error for one, some leave it out."""
        try:
            return "a probe" in self._rendered([("system", "a probe"), ("user", "a question")])
        except ConfigError:
            return False

    @cached_property
    def space(self) -> str:
        """White space that the template writes before an answer: one space in Llama 2's, none in most."""
        question, answer = [("user", "a question")], "an answer"
        try:
            prompt = self._rendered(question)
            answered = self._rendered([*question, ("assistant", answer)], to_answer=False)
        except ConfigError:
            return ""
        between = answered.removeprefix(prompt).partition(answer)[0]
        return between if between.isspace() else ""

    def prompt(self, system: str | None, user: str) -> str:
        """Return the prompt up to where the answer begins.

        A system message that the template does not take stands first in the user's message.
        """
        if not system:
            return self._rendered([("user", user)])
        if self.takes_system:
            return self._rendered([("system", system), ("user", user)])
        return self._rendered([("user", f"{system}\n{user}")])

    def check(self) -> None:
        """Raise ConfigError for a template that fails on every message."""
        if not self.takes_system:
            self._rendered([("user", "a question")])

    def _rendered(self, messages: list[tuple[str, str]], to_answer: bool = True) -> str:
        conversation = [{"role": role, "content": content} for role, content in messages]
        try:
            # Some templates print the date: the same prompt has to be the same tomorrow.
            rendered = self.tokenizer.apply_chat_template(
                conversation, tokenize=False, add_generation_prompt=to_answer, date_string="26 Jul 2024"
            )
        except Exception as error:  # anyone's template: its syntax, what it raises, what it may not do
            raise ConfigError(
                f"{self.name}: its chat template fails ({error_line(error)}); chat=false of the method asks without it"
            ) from error
        return str(rendered)
