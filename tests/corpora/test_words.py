"""Reference words, by the patterns that a tokenizer.json contains, compared with NLTK's on odd and on running text."""

import json
import lzma
from itertools import islice, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from corpora.config import REFERENCES
from corpora.words import count_characters, count_words, treebank_splitter, word_spans, words
from pairscale.errors import ConfigError

# Parts to which NLTK's rules apply, alone or where they meet, and white space of `str.split`.
_PARTS = r"""
    dog Dogs can't cannot CANNOT can not gonna Wanna wanna na gimme me d'ye more'n 'tis 'twas 'TİS is was o'clock
    's 'S 'm 'd n't N'T n 'll 'RE 've I'd dogs' 'n' 'quoted' rock'n'roll Mr. U.S. e.g. etc... . .. ... , ,, : ; ;;
    ? ! ?! - -- --- — – … " '' ' ` `` ( ) [ ] { } < > « » “ ” ‘ ’ „ & % $ # @ * / 3 3,000 10:30 5 ٣ ² é ſ s t x _
    狗 。 🙂 a:b 1/2 can(not) don't. end.) end." end.' end.” x.y http://a.b café "Stop!" 'em a_b 10: (dog's dog's,
    dog's. (cannot can-not Gimme-dog ""dog"" '''dog'' dog?" e- "plates"—are U.S.'s a's—b's, (2013). régime"".
    $15–20 x,3 :3 a.b.c (a.) [a] be?". On!!". a,,b
"""
PARTS = _PARTS.split()
SPACES = [" ", "  ", "\n", "\t", "\xa0", "\x1c", "\x85", "\u3000", "\u200b", "\u0301", "\u200d"]
texts = st.one_of(
    st.lists(st.sampled_from([*PARTS, *SPACES]), max_size=14).map("".join),
    st.lists(st.sampled_from([*PARTS, *SPACES * 3]), max_size=14).map("".join),
    st.lists(st.sampled_from([*"',:.\"-", " ", "5", "s", "cannot", "'tis", "'twas", "n't"]), max_size=10).map("".join),
    st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=20),  # Cn: letters in newer Unicode tables
)


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


@settings(max_examples=500)
@given(texts)
@example("")
@example("\n")
@example('He said: "I cannot pay $3,000, Mr. Fox." ')
@example('x. "')
@example('" dog ."')
@example('dog. " )')
@example("x's' y's'")
@example("a,,b ,,,5 a:::")
@example("cannot'tis'twas gonna'twas'tis gonnan't")
def test_treebank_words_of_odd_text_are_nltks(patterns, text):
    assert word_spans(text, "treebank") == nltk_spans(text) == patterns.encode(text).offsets


def test_treebank_words_of_benchmarks_and_running_text_are_nltks(patterns, real_data):
    sentences = []
    for path in sorted((real_data / "blimp").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for row in map(json.loads, islice(file, 0, None, 50)):
                sentences += [row["sentence_good"], row["sentence_bad"]]
    for language in ("english", "chinese"):
        with lzma.open(real_data / "text" / f"{language}.txt.xz", "rt", encoding="utf-8") as file:
            sentences += islice(file, 3_000)
    sentences.append("".join(sentences[-100:]))  # a full stop ends the last line only
    for sentence, encoding in zip(sentences, patterns.encode_batch(sentences), strict=True):
        assert word_spans(sentence, "treebank") == nltk_spans(sentence) == encoding.offsets, sentence


def test_the_time_for_long_rows_of_marks_grows_with_their_length(patterns):
    for marks in (",", "'", ".", "a,,", "y's' ", "x.) "):
        assert len(patterns.encode(marks * 20_000)) > 0  # minutes, if it grew with the square of the length


def test_the_other_references_by_hand():
    assert words("我们 喜欢狗。A b", "characters") == ["我", "们", "喜", "欢", "狗", "。", "A", "b"]
    assert words("我们喜欢狗。 北京大学", "jieba") == ["我们", "喜欢", "狗", "。", "北京大学"]
    assert words(" a b.  c ", "whitespace") == ["a", "b.", "c"]


@given(st.text(max_size=40), st.sampled_from(REFERENCES))
@example("\"\u00a0'' ``x``", "treebank")
def test_words_are_slices_of_the_text_and_cover_all_but_white_space(text, reference):
    tokens = words(text, reference)
    spans = word_spans(text, reference)
    assert [text[start:end] for start, end in spans] == tokens
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert "".join(tokens) == "".join(text.split())
    assert count_words(text, reference) == len(tokens)
    assert count_characters(text) == sum(not character.isspace() for character in text)


def test_an_unknown_reference_raises_an_error():
    with pytest.raises(ConfigError, match=r"corpus\.reference=bert: .*must be one of characters, jieba"):
        words("a", "bert")
