"""Fill in the chat templates of instruct models, and find out what a template supports."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pairscale.errors import ConfigError, error_line
from pairscale.files import sha256_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class ChatTemplate:
    """The chat template of a tokenizer, from which prompts are made."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, name: str):
        """Store the tokenizer, and the model's name for error messages."""
        self.tokenizer = tokenizer
        self.name = name

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the template, or of all templates if the tokenizer has several."""
        return sha256_json(self.tokenizer.chat_template)

    @cached_property
    def takes_system(self) -> bool:
        """Whether the template supports a system message. Some templates raise an error, others leave it out."""
        try:
            return "a probe" in self._rendered([("system", "a probe"), ("user", "a question")])
        except ConfigError:
            return False

    @cached_property
    def space(self) -> str:
        """The white space that the template adds before an answer (one space for Llama 2, none for most others)."""
        question, answer = [("user", "a question")], "an answer"
        try:
            prompt = self._rendered(question)
            answered = self._rendered([*question, ("assistant", answer)], to_answer=False)
        except ConfigError:
            return ""
        between = answered.removeprefix(prompt).partition(answer)[0]
        return between if between.isspace() else ""

    def prompt(self, system: str | None, user: str) -> str:
        """Return the prompt up to the beginning of the answer.

        If the template doesn't support a system message, it is put at the beginning of the user's message.
        """
        if not system:
            return self._rendered([("user", user)])
        if self.takes_system:
            return self._rendered([("system", system), ("user", user)])
        return self._rendered([("user", f"{system}\n{user}")])

    def check(self) -> None:
        """Raise ConfigError if the template fails on every message."""
        if not self.takes_system:
            self._rendered([("user", "a question")])

    def _rendered(self, messages: list[tuple[str, str]], to_answer: bool = True) -> str:
        conversation = [{"role": role, "content": content} for role, content in messages]
        try:
            # Some templates insert today's date. With a fixed date, prompts don't change from day to day.
            rendered = self.tokenizer.apply_chat_template(
                conversation, tokenize=False, add_generation_prompt=to_answer, date_string="26 Jul 2024"
            )
        except Exception as error:  # templates are written by others, and can fail with any error
            raise ConfigError(
                f"{self.name}: the model's chat template can't be filled in ({error_line(error)}). To use plain "
                "prompts instead, set method.NAME.chat=false."
            ) from error
        return str(rendered)
