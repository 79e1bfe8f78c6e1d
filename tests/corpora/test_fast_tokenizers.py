"""Fast tokenizers: ids, offsets and words equal to those of the study's tokenizers, special tokens, saved files."""

from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from corpora.config import TokenizerConfig
from corpora.fast_tokenizers import backend_of, is_serialisable
from corpora.tokenization_pairscale import PairscaleTokenizer
from corpora.tokenizers import MASK, PAD, SPECIAL_TOKENS, PieceTokenizer, Tokenizer, fit_tokenizer
from eval.scorers.tokens import OurTokens
from pairscale.errors import ConfigError

KINDS = ("word", "char", "unigram", "bpe", "jieba", "whitespace")
SENTENCES = [
    "The dog doesn't bark.",
    'A cat said "no, Mr. Fox" twice.',
    "Cafés – naïve 狗 ran.",
    "我们喜欢狗。",
    "北京大学的学生喜欢狗。",
    "A tag is <b> or <unk> or <0x.",
]
INVENTED = ["".join(syllables) for syllables in product("bdkms", "aeiou", ["n", "r", "st", "l"])]
TEXT = [*(f"{sentence} {word}" for sentence, word in product(SENTENCES, INVENTED)), *SENTENCES]
ODD = [
    "<eos>", "a <eos> b", "<mask><pad>", "<0x41>", "x<0x4F><unk>", "狗é🙂🙂x", " 🙂", "▁ a", "  a  b ",
    "\t\n\u3000\xa0.",
]  # fmt: skip
texts = st.one_of(
    st.sampled_from([*TEXT, *ODD]),
    st.text(max_size=20),
    st.lists(st.sampled_from([*ODD, *INVENTED, "The", "doesn't", ".", "狗", "é", " "]), max_size=8).map("".join),
)


def fit(kind: str, sentences=TEXT, size: int | None = None) -> Tokenizer:
    fixed = {"fit_on": "train", "fit_sentences": 1000, "character_coverage": 1.0}
    config = TokenizerConfig(name=kind, kind=kind, vocab_size=size, **fixed)
    return fit_tokenizer(config, sentences, len(sentences))


def fast_tokenizer(tokenizer: Tokenizer, masked: bool = False) -> PreTrainedTokenizerFast:
    """Return a tokenizer as transformers has it; the spelling of a special token is text to it."""
    backend, names = backend_of(tokenizer, masked)
    kind = PreTrainedTokenizerFast if is_serialisable(tokenizer) else PairscaleTokenizer
    return kind(tokenizer_object=backend, split_special_tokens=True, **names)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request) -> Tokenizer:
    return fit(request.param, size=335 if request.param in ("unigram", "bpe") else 300)


@pytest.fixture(scope="module")
def fast(tokenizer) -> PreTrainedTokenizerFast:
    return fast_tokenizer(tokenizer)


@pytest.fixture(scope="module")
def masked(tokenizer) -> PreTrainedTokenizerFast:
    return fast_tokenizer(tokenizer, masked=True)


@given(text=texts)
@example("")
def test_ids_and_offsets_are_those_of_the_study(tokenizer, fast, masked, text):
    ids, offsets = tokenizer.encode_raw(text)
    for one in (fast, masked):
        batch = one([text], add_special_tokens=False, return_offsets_mapping=True)
        first = SPECIAL_TOKENS if one is masked else 0
        assert batch["input_ids"] == [[first + index for index in ids]]
        if not isinstance(tokenizer, PieceTokenizer):  # the two count the bytes of a character otherwise
            assert batch["offset_mapping"] == [offsets]
    batch = fast(text, return_special_tokens_mask=True)
    assert batch["input_ids"] == [0, *ids]
    assert batch["special_tokens_mask"] == [1, *[0] * len(ids)]


@given(text=texts)
def test_a_masked_models_text_lies_between_two_symbols(tokenizer, masked, text):
    ids, offsets = tokenizer.encode_raw(text)
    batch = masked(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    assert batch["input_ids"] == [2, *(2 + index for index in ids), 2]
    assert batch["special_tokens_mask"] == [1, *[0] * len(ids), 1]
    (ours,) = OurTokens(tokenizer, "", masked=True).marked([text])
    assert (ours.ids, ours.special) == (batch["input_ids"], batch["special_tokens_mask"])
    assert ours.spans[1:-1] == offsets
    if isinstance(tokenizer, PieceTokenizer):  # where a word ends, but that the file also cuts at spellings of tokens
        if "<" in text or "▁" in text:
            return
        cuts = [[at for at, pair in enumerate(pairwise(words[1:-1])) if pair[0] != pair[1]]
                for words in (ours.words, batch.word_ids())]  # fmt: skip
        assert cuts[0] == cuts[1]
    else:
        assert (ours.spans, ours.words) == (batch["offset_mapping"], batch.word_ids())


@given(text=st.sampled_from([sentence for sentence in TEXT if "<" not in sentence]))
def test_pieces_of_a_word_share_its_number(tokenizer, masked, text):
    batch = masked(text, return_offsets_mapping=True)
    numbers, spans = batch.word_ids()[1:-1], batch["offset_mapping"][1:-1]
    if tokenizer.config.kind in ("unigram", "bpe"):
        # White space counts to the word after it.
        assert numbers == [text[: max(end, start + 1)].count(" ") for start, end in spans]
    else:
        assert numbers == list(range(len(spans)))


def test_special_tokens_have_the_ids_of_the_study_or_come_first(tokenizer, fast, masked):
    size = len(tokenizer)
    assert (len(fast), len(masked)) == (size, size + 2)
    assert (fast.bos_token_id, fast.eos_token_id, fast.pad_token_id, fast.unk_token_id) == (0, 0, 0, 1)
    assert fast.mask_token_id is None
    assert (masked.cls_token_id, masked.sep_token_id, masked.unk_token_id) == (2, 2, 3)
    assert (masked.pad_token_id, masked.mask_token_id) == (PAD, MASK)
    tokens = [tokenizer.token(index) for index in range(size)]
    assert fast.convert_ids_to_tokens(list(range(size))) == tokens
    assert masked.convert_ids_to_tokens(list(range(size + 2))) == ["<pad>", "<mask>", *tokens]


def test_a_saved_tokenizer_loads_unchanged(tokenizer, masked, tmp_path):
    if not is_serialisable(tokenizer):
        return
    written = {"tokenizer_object": masked.backend_tokenizer, "split_special_tokens": True}
    PreTrainedTokenizerFast(**written, **masked.special_tokens_map).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert all(loaded(text)["input_ids"] == masked(text)["input_ids"] for text in [*TEXT, *ODD])
    if not tokenizer.word_level:  # whose words have lost the spaces between them
        assert [loaded.decode(loaded(text)["input_ids"], skip_special_tokens=True) for text in SENTENCES] == SENTENCES


def test_a_mask_that_is_a_word_already_is_refused():
    tokenizer = fit("whitespace", ["a <mask> b"])
    assert fast_tokenizer(tokenizer)("a b")["input_ids"] == [0, *tokenizer.encode("a b")]
    with pytest.raises(ConfigError, match=r"tokenizer=whitespace: .*<mask>"):
        fast_tokenizer(tokenizer, masked=True)
