"""The patterns of Treebank words in tokenizer.json, compared with NLTK's tokenizer and with the study's own."""

import json
import lzma
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from corpora.config import TokenizerConfig
from corpora.fast_tokenizers import treebank_splitter
from corpora.tokenizers import ListTokenizer

# Parts to which NLTK's rules apply, alone or where they meet, and white space of `str.split`.
_PARTS = r"""
    dog can't cannot CANNOT can not gonna Wanna wanna na gimme me d'ye more'n 'tis 'twas 'TİS is was o'clock 's 'S 'm 'd
    n't N'T n 'll 'RE 've I'd dogs' 'n' Mr. U.S. . .. ... , ,, : ; ? ! - -- --- — – … " '' ' ` `` ( ) [ ] { } < > « »
    “ ” ‘ ’ „ & % $ # @ * / 3 3,000 10:30 5 ٣ ² é ſ s t x _ 狗 。 🙂
"""
PARTS = _PARTS.split()
SPACES = [" ", "  ", "\n", "\t", "\xa0", "\x1c", "\x85", "\u3000", "\u200b", "\u0301", "\u200d"]
texts = st.one_of(
    st.lists(st.sampled_from([*PARTS, *SPACES]), max_size=14).map("".join),
    st.lists(st.sampled_from([*PARTS, *SPACES * 3]), max_size=14).map("".join),
    st.lists(st.sampled_from([*"',:.\"-", " ", "5", "s", "cannot", "'tis", "'twas", "n't"]), max_size=10).map("".join),
    st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=20),  # Cn: letters in newer Unicode tables
)
# The words of plain text are the same for both kinds.
FIXED = {"vocab_size": None, "fit_on": "train", "fit_sentences": 1000, "character_coverage": 1.0}
WORDS, SPACED = (ListTokenizer(TokenizerConfig(name=kind, kind=kind, **FIXED), []) for kind in ("word", "whitespace"))


@pytest.fixture(scope="module")
def patterns() -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({"<unk>": 0}, "<unk>"))
    tokenizer.pre_tokenizer = treebank_splitter()
    return Tokenizer.from_str(tokenizer.to_str())


def nltk_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of NLTK's words of a sentence, whose white space is single spaces for NLTK's rules."""
    spans, end = [], 0
    for word in NLTKWordTokenizer().tokenize(" ".join(text.split())):
        start = end + len(text[end:]) - len(text[end:].lstrip())
        forms = (word, '"', "''") if word in ("``", "''") else (word,)
        end = start + len(next(form for form in forms if text.startswith(form, start)))
        spans.append((start, end))
    return spans


@settings(max_examples=400)
@given(texts)
@example("")
@example("\n")
@example('He said: "I cannot pay $3,000, Mr. Fox." ')
@example('x. "')
@example("x's' y's'")
@example("a,,b ,,,5 a:::")
@example("cannot'tis'twas gonna'twas'tis gonnan't")
def test_words_are_nltks_and_the_studys(patterns, text):
    spans = patterns.encode(text).offsets
    assert spans == nltk_spans(text)
    assert spans == WORDS.encode_raw(text)[1]
    assert spans == SPACED.encode_raw(text)[1]


def test_words_of_benchmarks_and_running_text_are_the_studys(patterns, real_data):
    sentences = []
    for path in sorted((real_data / "blimp").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            sentences += [json.loads(line)["sentence_bad"] for line in islice(file, 0, None, 100)]
    for language in ("english", "chinese"):
        with lzma.open(real_data / "text" / f"{language}.txt.xz", "rt", encoding="utf-8") as file:
            sentences += islice(file, 2_500)
    sentences.append("".join(sentences[-100:]))  # a full stop ends the last line only
    for sentence, encoding in zip(sentences, patterns.encode_batch(sentences), strict=True):
        assert encoding.offsets == WORDS.encode_raw(sentence)[1], sentence


def test_the_time_for_long_rows_of_marks_grows_with_their_length(patterns):
    for marks in (",", "'", ".", "a,,", "y's' ", "x.) "):
        assert len(patterns.encode(marks * 20_000)) > 0  # minutes, if it grew with the square of the length
