"""Tokenizers: offsets into the original text, round trips, determinism, saved files."""

import json
import re
from collections import Counter
from dataclasses import asdict
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.config import TokenizerConfig
from corpora.tokenizers import EOS, UNK, Tokenizer, fit_tokenizer, load_tokenizer, tokenizer_digest
from corpora.words import words
from pairscale.errors import ConfigError, StoreError

SENTENCES = [
    "The dog doesn't bark.",
    'A cat said "no, Mr. Fox" twice.',
    "The dogs' owner can't run 3.5 miles.",
    "Cafés – naïve 狗 ran.",
    "我们喜欢狗。",
    "北京大学的学生喜欢狗。",
]
INVENTED = ["".join(syllables) for syllables in product("bdkms", "aeiou", ["n", "r", "st", "l"])]
TEXT = [*(f"{sentence} {word}" for sentence, word in product(SENTENCES, INVENTED)), *SENTENCES]


KINDS = ("word", "char", "unigram", "bpe", "jieba", "whitespace")
PIECES = ("unigram", "bpe")


def config(kind: str, **values) -> TokenizerConfig:
    size = 340 if kind in PIECES else None
    defaults = {"vocab_size": size, "fit_on": "train", "fit_sentences": 1000, "character_coverage": 1.0}
    return TokenizerConfig(name=kind, kind=kind, **{**defaults, **values})


def fit(kind: str, sentences=TEXT, **values) -> Tokenizer:
    return fit_tokenizer(config(kind, **values), sentences, len(sentences))


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request) -> Tokenizer:
    return fit(request.param)


def test_special_tokens_come_first(tokenizer):
    assert [tokenizer.token(EOS), tokenizer.token(UNK)] == ["<eos>", "<unk>"]
    assert tokenizer.word_level == (tokenizer.config.kind in ("word", "jieba", "whitespace"))


@given(text=st.one_of(st.text(max_size=30), st.sampled_from(TEXT), st.text("a狗é \u3000\u0301<unkeos>", max_size=12)))
def test_spans_lie_in_the_text_in_order_and_batches_agree(tokenizer, text):
    ids, spans = tokenizer.encode_spans(text)
    assert ids == tokenizer.encode(text)
    assert len(ids) == len(spans)
    assert EOS not in ids
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    flat, lengths = tokenizer.encode_batch([text, "", text])
    assert flat.tolist() == [*ids, EOS, EOS, *ids, EOS]
    assert lengths.tolist() == [len(ids) + 1, 1, len(ids) + 1]


@given(text=st.one_of(st.sampled_from(TEXT), st.text(max_size=20)))
def test_spans_slice_the_text_back_into_tokens(tokenizer, text):
    ids, spans = tokenizer.encode_spans(text)
    slices = [text[start:end] for start, end in spans]
    match tokenizer.config.kind:
        case "char":
            assert slices == list(text)
        case "unigram" | "bpe":
            assert "".join(slices) == text
            assert UNK not in ids
        case kind:
            assert slices == words(text, {"word": "treebank"}.get(kind, kind))
    if tokenizer.config.kind not in PIECES:
        tokens = [tokenizer.token(index) for index in ids]
        assert all(token in (piece, "<unk>") for token, piece in zip(tokens, slices, strict=True))


def test_raw_sentences_are_split_into_words_for_a_tokenizer_of_pretokenised_text():
    tokenizer = fit("whitespace", ["The dog does n't bark ."])
    text = "The dog doesn't bark."
    ids, spans = tokenizer.encode_raw(text)
    assert [text[start:end] for start, end in spans] == ["The", "dog", "does", "n't", "bark", "."]
    assert UNK not in ids
    assert tokenizer.encode("bark.") == [UNK]


def test_pieces_write_their_spaces_as_underlines():
    tokenizer = fit("unigram")
    for text in ("The dog", " The  dog ", "Cafés 狗\u3000x", "e\u0301 ﬁ ①"):
        ids, spans = tokenizer.encode_spans(text)
        for index, (start, end) in zip(ids, spans, strict=True):
            token = tokenizer.token(index)
            if not token.startswith("<0x"):
                # A word has the same pieces wherever it stands: the space before the first is not in the text.
                assert token.replace("▁", " ") in (text[start:end], " " * (start == 0) + text[start:end])


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_in_the_text_are_text(kind):
    tokenizer = fit(kind, [*TEXT, "a <unk> <eos> b"] * 2)
    ids = tokenizer.encode("a <unk> <eos> b")
    assert EOS not in ids
    if kind == "whitespace":
        assert ids[1:3] == [UNK, UNK]


def test_a_vocabulary_has_the_most_frequent_words_with_ties_by_spelling():
    sentences = ["b a c a", "d c b", "e"]
    counts = Counter(" ".join(sentences).split())
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    for size in (1, 3, 5, None):
        for kind in ("word", "whitespace"):
            tokenizer = fit(kind, sentences, vocab_size=size)
            assert [tokenizer.token(index) for index in range(2, len(tokenizer))] == expected[:size]
            assert len(tokenizer) == 2 + len(expected[:size])
    assert fit("word", sentences, vocab_size=1).encode("a b x") == [2, UNK, UNK]


@pytest.mark.parametrize("kind", KINDS)
def test_fitting_is_deterministic_and_a_saved_tokenizer_loads_unchanged(kind, tmp_path):
    sentences = [*TEXT, "odd\x85tokens\rhere \u2028 \x0b\x1c"]
    first, second = fit(kind, sentences), fit(kind, sentences)
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    assert tokenizer_digest(tmp_path / "first") == tokenizer_digest(tmp_path / "second")
    loaded = load_tokenizer(tmp_path / "first")
    assert asdict(loaded.config) == asdict(first.config)
    assert [loaded.token(index) for index in range(len(loaded))] == [first.token(index) for index in range(len(first))]
    for sentence in sentences:
        assert loaded.encode_spans(sentence) == first.encode_spans(sentence)


@pytest.mark.parametrize("kind", PIECES)
def test_the_sentences_for_sentencepiece_are_drawn_reproducibly(kind):
    sentences = [f"{text} {number}" for number, text in enumerate(TEXT)]
    few = [fit(kind, sentences, fit_sentences=60, vocab_size=330).model for _ in range(2)]
    assert few[0] == few[1]
    assert few[0] != fit(kind, sentences, vocab_size=330).model


def test_a_long_text_is_fitted_on_as_lines_of_its_words_are():
    long = " ".join(["vixen", *("the  quick fox", "zebu\tjolt", "狗跑 ran") * 2000])
    assert len(long.encode()) > 2**16  # SentencePiece leaves out longer texts, silently
    pieces = long.split(" ")
    lines = [" ".join(pieces[start : start + 1000]) for start in range(0, len(pieces), 1000)]
    whole, cut = (fit("bpe", [*texts, "A cat said."], vocab_size=285) for texts in ([long], lines))
    assert whole.model == cut.model
    assert set("vixenzebu狗跑") <= set("".join(whole.token(index) for index in range(258, len(whole))))


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize("text", ["quiz jam " * 8000, "\U0001f600狗" * 10_000, "quiz ▅ jam"])
def test_no_text_is_left_out_of_a_fit(kind, text):
    """SentencePiece leaves out texts of more than 65,536 bytes, and texts with ▅, its sign for what is unknown."""
    tokenizer = fit(kind, [*SENTENCES, text], vocab_size=312)
    known = set("".join(tokenizer.token(index) for index in range(258, len(tokenizer))))
    assert set(text) - {"▅", " "} <= known
    assert tokenizer.processor.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize(
    ("size", "reason"), [(20_000, r"at most (\d+)"), (20, r"at least (\d+)"), (None, r"such as (\d+)")]
)
def test_impossible_vocabulary_sizes_raise_errors_that_name_a_possible_one(kind, size, reason):
    with pytest.raises(ConfigError, match=rf"tokenizer\.vocab_size={size or 'null'}: .*{reason}") as caught:
        fit(kind, vocab_size=size)
    if size is not None:
        possible = int(re.search(reason, str(caught.value))[1])
        assert len(fit(kind, vocab_size=possible)) == possible


def test_damaged_tokenizers_raise_one_line_errors(tmp_path):
    fit("word").save(tmp_path)
    vocabulary, description = tmp_path / "vocab.txt", tmp_path / "tokenizer.json"
    content = json.loads(description.read_text())
    vocabulary.write_text(vocabulary.read_text().replace("dog", "god"))
    with pytest.raises(StoreError, match=r"vocab\.txt: .*digest differs .* Remove the folder to fit it again"):
        load_tokenizer(tmp_path)
    description.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(StoreError, match=r"version 99, but pairscale reads version 1"):
        load_tokenizer(tmp_path)
    description.write_text("{")
    with pytest.raises(StoreError, match=r"tokenizer\.json: .* as JSON"):
        load_tokenizer(tmp_path)
    with pytest.raises(StoreError, match=r"tokenizer\.json: this file"):
        load_tokenizer(tmp_path / "nowhere")
