"""What a scorer needs of a tokenizer: `OurTokens` of models trained here, `HubTokens` of others."""

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
Encoded = tuple[Sequence[int], Spans]  # token ids, and character offsets of each

# Plain text in two scripts: a tokenizer of any model reads a part of it, and a trained model predicts it above chance.
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
_NO_WORDS = ("n't", "n’t")  # Treebank tokens that begin no word; the other contractions begin with a mark
# Parts of config.json that change no score: its origin, training, and further output.
_NO_SCORE = ("_name_or_path", "_commit_hash", "architectures", "auto_map", "dtype", "id2label", "label2id",
             "output_attentions", "output_hidden_states", "problem_type", "return_dict", "task_specific_params",
             "torch_dtype", "transformers_version", "use_cache")  # fmt: skip


class Marked(NamedTuple):
    """A text with the symbols that a masked model puts around it; of each of its n tokens:"""

    ids: Sequence[int]
    spans: Spans
    special: Sequence[int]  # 1 for those symbols
    words: Sequence[int | None]  # the number of its word, as far as the tokenizer cuts words


class Tokens(ABC):
    """The tokens of a model. `begin`: the symbol before a text; `mask`: of a masked model; None: there is none."""

    digest: str  # of the vocabulary
    begin: int | None
    eos: int | None
    unknown: int | None
    mask: int | None
    special: Sequence[int]
    word_level: bool = False  # the default of policy.score_eos
    chat_template: ChatTemplate | None = None  # None: prompts are plain text

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of tokens."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Iterable[Encoded]:
        """Yield the tokens of each text, without any symbol that the tokenizer would add."""

    @abstractmethod
    def marked(self, texts: Sequence[str]) -> Iterator[Marked]:
        """Yield each text as a masked model reads it."""

    @abstractmethod
    def token(self, index: int) -> str:
        """Return the token of an id."""

    @abstractmethod
    def beginnings(self) -> dict[int, str]:
        """Return ids and texts of the tokens that begin a word after another one."""

    @property
    @abstractmethod
    def first_symbol(self) -> int:
        """The symbol from which a masked next-token model predicts a first token if its tokenizer adds none."""

    def check(self, text: str, ids: Sequence[int]) -> None:  # noqa: B027
        """Raise InputError for a token of a text that is not one of the model's, which are 0 to `vocabulary` - 1."""

    def checked_begin(self, name: str) -> int:
        """Return the begin symbol of a model `name`. Raises ConfigError if there is none, InputError as `check`."""
        if self.begin is None:
            raise ConfigError(
                f"{name}: its tokenizer names neither BOS nor EOS; give model.begin=TOKEN to stand for one"
            )
        self.check("the begin symbol", [self.begin])
        return self.begin

    def words(self) -> dict[int, str]:
        """Return the tokens that are whole words: they begin a word and look like one (no marks, no special tokens).

        No tokenizer tells that such a token also begins longer words ("wait" of "waiter").
        """
        return {index: text for index, text in self.beginnings().items() if is_word(text)}


def is_word(text: str) -> bool:
    """Return True if `text` looks like a word: it begins with a letter or a digit."""
    return _WORD.fullmatch(text) is not None and text.lower() not in _NO_WORDS


class OurTokens(Tokens):
    """The tokenizer of a study. A text begins after `<eos>`, as in training, where that ended the sentence before."""

    def __init__(self, tokenizer: Tokenizer, digest: str, masked: bool = False):
        self.tokenizer, self.digest = tokenizer, digest
        self.word_level = tokenizer.word_level and not masked
        self.added = SPECIAL_TOKENS if masked else 0  # before those of the tokenizer
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
            begins = [True] * len(ids)  # of each token: it begins a word
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
    """The fast tokenizer of a Hugging Face model that reads `vocabulary` tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, name: str, vocabulary: int, begin: str | None = None):
        """`begin` is the token that stands before a text, by default BOS, else EOS; `name`: the model's.

        Raises ConfigError for a `begin` that is no token, and for a tokenizer without character offsets. Also
        InputError for one that reads no letters: where a model comes without its tokenizer, transformers 5 invents one
        of a few symbols, and a normalizer may remove letters. All sentences would be equal.
        """
        if not tokenizer.is_fast:
            raise ConfigError(f"{name}: its tokenizer gives no character offsets (it has no tokenizer.json)")
        self.tokenizer, self.name, self.vocabulary = tokenizer, name, vocabulary
        read = self._read(PLAIN_SENTENCES, add_special_tokens=False)["input_ids"]
        if not any(letter.isalpha() for ids in read for letter in tokenizer.decode(ids, skip_special_tokens=True)):
            raise InputError(
                f"{name}: its tokenizer ({len(tokenizer):,} tokens) reads no letter of a plain sentence, so it is not "
                "the model's own; put the files of that (tokenizer.json) into the model's folder"
            )
        self.digest = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
        self.begin = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        if begin is not None:
            if begin not in (ids := tokenizer.get_vocab()):
                raise ConfigError(f"model.begin={begin}: no token of {name}")
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
        """Return what the tokenizer makes of texts. Raises InputError where a pattern in tokenizer.json gives up."""
        try:
            return self.tokenizer(list(texts), **options)
        except BaseException as error:  # a panic of the library is no Exception
            if type(error).__name__ != "PanicException":
                raise
            raise InputError(
                f"{self.name}: a pattern of its tokenizer.json gives up on one of {len(texts):,} texts "
                f"({error_line(error)}); avoid repetitions of repetitions, such as (a+)+"
            ) from None

    def check(self, text: str, ids: Sequence[int]) -> None:
        if len(ids) and (highest := max(ids)) >= self.vocabulary:
            raise InputError(
                f"{self.name}: knows {self.vocabulary:,} tokens, and {self.token(highest)!r} in {shown(text)} is "
                f"number {highest:,} of its tokenizer, so that is another model's"
            )

    def token(self, index: int) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(index))

    def beginnings(self) -> dict[int, str]:
        """Return the tokens that the tokenizer sets off by a space: no need to know its marks ("Ġ", "▁", "##")."""
        word = self.tokenizer.encode("a", add_special_tokens=False)[-1]
        (before,) = self.tokenizer.batch_decode([[word]], clean_up_tokenization_spaces=False)
        special = set(self.special)
        tokens = [index for index in range(len(self)) if index not in special]
        texts = self.tokenizer.batch_decode([[word, index] for index in tokens], clean_up_tokenization_spaces=False)
        begin = f"{before} "
        return {index: text[len(begin) :] for index, text in zip(tokens, texts, strict=True) if text.startswith(begin)}

    @property
    def first_symbol(self) -> int:
        """CLS, else BOS, as in the evaluation of BabyLM. Raises ConfigError for a tokenizer without either."""
        for index in (self.tokenizer.cls_token_id, self.tokenizer.bos_token_id):
            if index is not None:
                return int(index)
        raise ConfigError(
            "policy.pll_shift=1: the tokenizer has no CLS or BOS to predict a sentence's first token from"
        )


def score_settings(model: PreTrainedModel, tokens: HubTokens, masked: bool) -> dict[str, Any]:
    """Return what changes scores beside the weights and tokenizer.json: begin symbol, special tokens, config.json.

    The digest is of config.json's changes to its class.
    """
    tokenizer = tokens.tokenizer
    names = {name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    special = {name: {"id": tokenizer.convert_tokens_to_ids(token), "text": token} for name, token in names.items()}
    first = None if masked or tokens.begin is None else {"id": tokens.begin, "text": tokens.token(tokens.begin)}
    settings = {"begin": first, "special_tokens": special, "config_digest": _config_digest(model.config.to_diff_dict())}
    # A setting of tokenizer_config.json that is not in the tokenizer itself: "<s>" in a text is cut as text.
    return settings | ({"split_special_tokens": True} if tokenizer.split_special_tokens else {})


def _config_digest(values: dict[str, Any]) -> str:
    def score_relevant(part: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if key not in _NO_SCORE}

    return sha256_json(json.loads(json.dumps(values, default=str), object_hook=score_relevant))
