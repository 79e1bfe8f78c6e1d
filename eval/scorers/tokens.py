"""Define the interface of tokenizers for scoring. `OurTokens` is for our models, and `HubTokens` is for others."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from corpora.fast_tokenizers import SPACE
from corpora.tokenizers import EOS, MASK, SPECIAL_TOKENS, UNK, PieceTokenizer, Tokenizer
from eval.benchmarks.cells import shown
from eval.scorers.chat import ChatTemplate
from pairscale.errors import ConfigError, InputError, error_line
from pairscale.files import sha256_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

Spans = Sequence[tuple[int, int]]
Encoded = tuple[Sequence[int], Spans]  # ids and character offsets of tokens

# Plain text in two scripts. Any tokenizer can read some of it, and a trained model predicts it better than chance.
PLAIN_SENTENCES = (
    "The children were playing in the garden when it started to rain.",
    "She said that she had never seen such a big house before.",
    "He is one of the most important people in the history of the country.",
    "I would like to have a cup of tea and a piece of cake.",
    "The men who live next to my sister do not like the new school.",
    "孩子们在公园里玩，天开始下雨了。",
    "他是这个国家历史上最重要的人之一。",
    "我想喝一杯茶，吃一块蛋糕。",
)
_WORD = re.compile(r"[^\W_][\w'’.&/-]*")
_NO_WORDS = ("n't", "n’t")  # Treebank tokens that don't begin a word; other contractions begin with an apostrophe
# Entries of config.json that don't change a score, such as the model's origin, training settings and extra outputs.
_NO_SCORE = ("_name_or_path", "_commit_hash", "architectures", "auto_map", "dtype", "id2label", "label2id",
             "output_attentions", "output_hidden_states", "problem_type", "return_dict", "task_specific_params",
             "torch_dtype", "transformers_version", "use_cache")  # fmt: skip


class Marked(NamedTuple):
    """The n tokens of a text, including the special symbols around it that a masked model needs."""

    ids: Sequence[int]
    spans: Spans
    special: Sequence[int]  # 1 for special symbols, 0 for other tokens
    words: Sequence[int | None]  # index of each token's word, if the tokenizer splits texts into words


class Tokens(ABC):
    """The tokens of a model. The id of a special symbol is None if the model doesn't have it."""

    digest: str  # digest of the vocabulary
    begin: int | None  # the symbol before a text
    eos: int | None
    unknown: int | None
    mask: int | None
    special: Sequence[int]
    word_level: bool = False  # whether tokens are words; the default of policy.score_eos
    chat_template: ChatTemplate | None = None  # None: prompts are plain text

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of tokens."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Iterable[Encoded]:
        """Yield the tokens of each text, without special symbols that the tokenizer would add."""

    @abstractmethod
    def marked(self, texts: Sequence[str]) -> Iterator[Marked]:
        """Yield the tokens of each text as a masked model reads it, with special symbols."""

    @abstractmethod
    def token(self, index: int) -> str:
        """Return the token with this id."""

    @abstractmethod
    def beginnings(self) -> dict[int, str]:
        """Return the ids and texts of the tokens that begin a new word in the middle of a text."""

    @property
    @abstractmethod
    def first_symbol(self) -> int:
        """The symbol to add at the beginning if the tokenizer adds none. The first token is predicted from it."""

    def check(self, text: str, ids: Sequence[int]) -> None:  # noqa: B027
        """Raise InputError if an id is not in the model's vocabulary. `text` is the text with these ids."""

    def checked_begin(self, name: str) -> int:
        """Return the begin symbol of the model `name`.

        Raises ConfigError if there is none, and the same errors as `check`.
        """
        if self.begin is None:
            raise ConfigError(
                f"{name}: the tokenizer has no BOS and no EOS token. Set model.begin=TOKEN to another token."
            )
        self.check("the begin symbol", [self.begin])
        return self.begin

    def words(self) -> dict[int, str]:
        """Return the tokens that are whole words, because they begin a word and look like one.

        A tokenizer doesn't show whether such a token can also begin a longer word, as "wait" can begin "waiter".
        """
        return {index: text for index, text in self.beginnings().items() if is_word(text)}


def is_word(text: str) -> bool:
    """Return True if `text` looks like a word. It must begin with a letter or digit."""
    return _WORD.fullmatch(text) is not None and text.lower() not in _NO_WORDS


class OurTokens(Tokens):
    """The tokenizer of a study. A text follows `<eos>`, because `<eos>` ends the previous sentence in training."""

    def __init__(self, tokenizer: Tokenizer, digest: str, masked: bool = False):
        self.tokenizer, self.digest = tokenizer, digest
        self.word_level = tokenizer.word_level and not masked
        self.added = SPECIAL_TOKENS if masked else 0  # tokens of the model with lower ids than the tokenizer's
        self.first = self.begin = self.eos = EOS + self.added
        self.unknown = UNK + self.added
        self.mask = MASK if masked else None
        self.special = range(self.added + max(EOS, UNK) + 1)

    def __len__(self) -> int:
        return len(self.tokenizer) + self.added

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        for text in texts:
            ids, spans = self.tokenizer.encode_raw(text)
            yield ([index + self.added for index in ids] if self.added else ids), spans

    def marked(self, texts: Sequence[str]) -> Iterator[Marked]:
        for ids, spans in self.encode(texts):
            begins = [True] * len(ids)  # whether each token begins a word
            if isinstance(self.tokenizer, PieceTokenizer):
                begins = [self.token(index).startswith(SPACE) for index in ids]
            words = list(accumulate(begins, initial=-1))[1:]
            spans = [(0, 0), *spans, (0, 0)]
            yield Marked([self.first, *ids, self.first], spans, [1, *[0] * len(ids), 1], [None, *words, None])

    def token(self, index: int) -> str:
        return self.tokenizer.token(index - self.added)

    def beginnings(self) -> dict[int, str]:
        begin = "" if self.tokenizer.word_level else " " if self.tokenizer.config.kind == "char" else "▁"
        tokens = {index: self.token(index) for index in range(len(self.special), len(self))}
        return {index: text.removeprefix(begin) for index, text in tokens.items() if text.startswith(begin)}

    @property
    def first_symbol(self) -> int:
        return self.first


class HubTokens(Tokens):
    """The fast tokenizer of a Hugging Face model with `vocabulary` tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, name: str, vocabulary: int, begin: str | None = None):
        """Check the tokenizer of the model `name`.

        `begin` is the token before each text. The default is BOS, or EOS if there is no BOS.

        Raises:
            ConfigError: If `begin` isn't a token, or if the tokenizer doesn't provide character offsets.
            InputError: If the tokenizer can't read letters, so that all sentences would have the same tokens. If a
                model has no tokenizer, transformers 5 creates one with a few symbols. A normalizer may also remove
                letters.
        """
        if not tokenizer.is_fast:
            raise ConfigError(
                f"{name}: without tokenizer.json, there are no character offsets. Use a model with this file."
            )
        self.tokenizer, self.name, self.vocabulary = tokenizer, name, vocabulary
        read = self._read(PLAIN_SENTENCES, add_special_tokens=False)["input_ids"]
        if not any(letter.isalpha() for ids in read for letter in tokenizer.decode(ids, skip_special_tokens=True)):
            raise InputError(
                f"{name}: the tokenizer ({len(tokenizer):,} tokens) can't read any letters, so it isn't the tokenizer "
                "that the model was trained with. Copy the right tokenizer.json into the model's folder."
            )
        self.digest = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
        self.begin = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        if begin is not None:
            if begin not in (ids := tokenizer.get_vocab()):
                raise ConfigError(f"model.begin={begin}: {name} has no such token. Choose one from its vocabulary.")
            self.begin = ids[begin]
        self.eos, self.unknown, self.mask = tokenizer.eos_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id
        self.special = [index for index in tokenizer.all_special_ids if index < len(self)]
        if tokenizer.chat_template is not None:
            self.chat_template = ChatTemplate(tokenizer, name)

    def __len__(self) -> int:
        return min(len(self.tokenizer), self.vocabulary)

    def encode(self, texts: Sequence[str]) -> Iterator[Encoded]:
        if not texts:
            return
        batch = self._read(texts, add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False)
        for text, ids, spans in zip(texts, batch["input_ids"], batch["offset_mapping"], strict=True):
            self.check(text, ids)
            yield ids, spans

    def marked(self, texts: Sequence[str]) -> Iterator[Marked]:
        batch = self._read(texts, return_offsets_mapping=True, return_special_tokens_mask=True)
        for number in range(len(texts)):
            ids, spans, special = (batch[key][number] for key in ("input_ids", "offset_mapping", "special_tokens_mask"))
            yield Marked(ids, spans, special, batch.word_ids(number))

    def _read(self, texts: Sequence[str], **options: bool) -> Any:
        """Tokenize texts. Raises InputError if a regular expression in tokenizer.json is too complex."""
        try:
            return self.tokenizer(list(texts), **options)
        except BaseException as error:  # a panic in the Rust library isn't an Exception
            if type(error).__name__ != "PanicException":
                raise
            raise InputError(
                f"{self.name}: a regular expression in tokenizer.json is too complex for one of {len(texts):,} texts "
                f"({error_line(error)}). Rewrite it without nested repetitions, such as (a+)+."
            ) from None

    def check(self, text: str, ids: Sequence[int]) -> None:
        if len(ids) and (highest := max(ids)) >= self.vocabulary:
            raise InputError(
                f"{self.name}: the model has {self.vocabulary:,} tokens, but {self.token(highest)!r} in {shown(text)} "
                f"has the id {highest:,}. Use the tokenizer that belongs to the model."
            )

    def token(self, index: int) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(index))

    def beginnings(self) -> dict[int, str]:
        """Return the tokens that follow a space when decoded. This works for any marking ("Ġ", "▁", "##")."""
        word = self.tokenizer.encode("a", add_special_tokens=False)[-1]
        (before,) = self.tokenizer.batch_decode([[word]], clean_up_tokenization_spaces=False)
        special = set(self.special)
        tokens = [index for index in range(len(self)) if index not in special]
        texts = self.tokenizer.batch_decode([[word, index] for index in tokens], clean_up_tokenization_spaces=False)
        begin = f"{before} "
        return {index: text[len(begin) :] for index, text in zip(tokens, texts, strict=True) if text.startswith(begin)}

    @property
    def first_symbol(self) -> int:
        """The id of CLS or, if there is none, of BOS (as in BabyLM's evaluation).

        Raises ConfigError if both are missing.
        """
        for index in (self.tokenizer.cls_token_id, self.tokenizer.bos_token_id):
            if index is not None:
                return int(index)
        raise ConfigError(
            f"policy.pll_shift=1: the first token of a sentence can't be predicted, because the tokenizer of "
            f"{self.name} has no CLS or BOS token. If this isn't a masked next-token model, use policy.pll_shift=0."
        )


def score_settings(model: PreTrainedModel, tokens: HubTokens, masked: bool) -> dict[str, Any]:
    """Return the begin symbol, the special tokens and a digest of config.json, because they affect scores.

    The digest only includes values of config.json that differ from the defaults of its class.
    """
    tokenizer = tokens.tokenizer
    names = {name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    special = {name: {"id": tokenizer.convert_tokens_to_ids(token), "text": token} for name, token in names.items()}
    first = None if masked or tokens.begin is None else {"id": tokens.begin, "text": tokens.token(tokens.begin)}
    settings = {"begin": first, "special_tokens": special, "config_digest": _config_digest(model.config.to_diff_dict())}
    # With this setting of tokenizer_config.json, special tokens such as "<s>" in a text are split like other text.
    return settings | ({"split_special_tokens": True} if tokenizer.split_special_tokens else {})


def _config_digest(values: dict[str, Any]) -> str:
    def score_relevant(part: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if key not in _NO_SCORE}

    return sha256_json(json.loads(json.dumps(values, default=str), object_hook=score_relevant))
