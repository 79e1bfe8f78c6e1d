"""Samples: exact sizes, nested or independent, reproducible, without replacement, of sentences or documents."""

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.config import SampleConfig, SplitConfig
from corpora.prepare import Corpus, prepare
from corpora.samples import Sample, draw_sample
from corpora.text import Document, TextStore, write_text_store
from corpora.tokenizers import EOS
from corpora.words import count_characters, count_words
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from pairscale.seeds import permutation

STARTS = ["The dog", "A cat (old) that", "Mr. Fox", 'She said "no", and he', "They didn't say if Dr. No"]
ENDS = ["barks.", "can't sleep at 10:30.", "left the U.S. in May?", "owns 3,000 well-known dogs' bones!"]
SENTENCES = [f"{start} {number} {end}" for number in range(40) for start, end in itertools.product(STARTS, ENDS)]
DOCUMENTS = [SENTENCES[start : start + 7] for start in range(0, len(SENTENCES), 7)]


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> TextStore:
    folder = tmp_path_factory.mktemp("samples")
    split = SplitConfig(seed=0, valid=0.05, test=0.05)
    write_text_store(folder, [Document("a", document) for document in DOCUMENTS], "treebank", split, {})
    return TextStore(folder)


def sample(text: TextStore, size: int, seed: int = 1, **values) -> Sample:
    defaults = {"count": "words", "unit": "sentence", "nested": False, "seed": None}
    return draw_sample(text, SampleConfig(size=str(size), **{**defaults, **values}), seed)


def sentences(text: TextStore, sample: Sample) -> list[str]:
    texts = list(text.sentences(sample.indices.tolist()))
    return texts + [text.sentence(index)[:end] for index, end in sample.cuts]


@given(
    size=st.integers(1, 6000),
    count=st.sampled_from(["words", "characters", "sentences"]),
    unit=st.sampled_from(["sentence", "document"]),
    nested=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_sizes_are_exact_and_nothing_is_drawn_twice(text, size, count, unit, nested, seed):
    size = size if count != "sentences" else 1 + size % 600
    drawn = sample(text, size, seed, count=count, unit=unit, nested=nested)
    texts = sentences(text, drawn)
    assert {"words": drawn.words, "characters": drawn.characters, "sentences": drawn.sentences}[count] == size
    assert len(texts) == drawn.sentences
    assert drawn.characters == sum(map(count_characters, texts))
    last = len(drawn.cuts)
    words_of_whole_sentences = sum(count_words(sentence, "treebank") for sentence in texts[: len(texts) - last])
    assert words_of_whole_sentences <= drawn.words
    indices = drawn.indices.tolist() + [index for index, _ in drawn.cuts]
    assert len(set(indices)) == len(indices)
    assert set(indices) <= set(text.split_sentences("train").tolist())


@given(sizes=st.lists(st.integers(1, 5000), min_size=2, max_size=4), unit=st.sampled_from(["sentence", "document"]))
def test_nested_samples_are_prefixes_of_larger_ones(text, sizes, unit):
    texts = ["\n".join(sentences(text, sample(text, size, nested=True, unit=unit))) for size in sorted(sizes)]
    assert all(large.startswith(small) for small, large in itertools.pairwise(texts))


def test_independent_samples_overlap_as_expected(text):
    size = 2000
    order = [tuple(sample(text, size, seed).indices[:50]) for seed in range(3)]
    assert len(set(order)) == 3
    assert tuple(sample(text, size + 1, 0).indices[:50]) != order[0]
    drawn = [sample(text, size, seed) for seed in range(20)]
    shared = [
        text.words[np.intersect1d(first.indices, second.indices)].sum() / size
        for first, second in itertools.combinations(drawn, 2)
    ]
    assert np.mean(shared) == pytest.approx(drawn[0].share, abs=0.02)
    assert drawn[0].share == size / drawn[0].available
    assert drawn[0].available == text.manifest["splits"]["train"]["words"]


def test_a_sample_depends_only_on_its_seed(text):
    three = sample(text, 500, seed=3)
    assert sample(text, 500, seed=3).digest == three.digest
    assert sample(text, 500, seed=4).digest != three.digest
    fixed = SampleConfig(size="500", count="words", unit="sentence", nested=False, seed=7)
    third, fourth = draw_sample(text, fixed, 3), draw_sample(text, fixed, 4)
    assert third.digest == fourth.digest != three.digest


def test_a_digest_is_of_the_sentences_in_order_the_shortened_one_and_the_text(text):
    """Manifests compare it with what earlier versions wrote."""
    for size in (500, text.manifest["splits"]["train"]["words"]):
        drawn = sample(text, size)
        cut = drawn.cuts[0] if drawn.cuts else None
        content = drawn.indices.astype("<i8").tobytes() + f"{cut} {text.digest}".encode()
        assert drawn.digest == hashlib.sha256(content).hexdigest()
    assert cut is None


def test_samples_of_documents_keep_the_order_of_sentences(text):
    drawn = sample(text, 1500, unit="document")
    of_sentence = np.repeat(np.arange(len(text.documents) - 1), np.diff(text.documents))[drawn.indices]
    documents = [document for document, _ in itertools.groupby(of_sentence.tolist())]
    assert len(set(documents)) == len(documents)
    expected = [index for at in documents for index in range(text.documents[at], text.documents[at + 1])]
    assert drawn.indices.tolist() == expected[: len(drawn.indices)]
    assert len(expected) - len(drawn.indices) < 7


def test_a_sample_larger_than_the_corpus_raises_an_error_with_the_available_words(text):
    available = text.manifest["splits"]["train"]["words"]
    assert sample(text, available).words == available
    with pytest.raises(ConfigError, match=rf"sample\.size=(1M|1000000): .* {available:,} words"):
        sample(text, 1_000_000)


def test_the_permutation_of_a_seed_never_changes():
    # PCG64's raw output is part of numpy's promises; these values must never change.
    assert permutation(8, 1).tolist() == [2, 4, 7, 5, 0, 6, 3, 1]
    assert permutation(5, 1, 2).tolist() != permutation(5, 1).tolist()
    assert sorted(permutation(1000, 2**62).tolist()) == list(range(1000))


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "text.txt"
    path.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS), encoding="utf-8")
    return path


def corpus(file: Path, *overrides: str) -> Corpus:
    options = ["corpus=local", f"corpus.path={file}", f"paths.store={file.parent}/store"]
    return prepare(compose("corpora", [*options, *overrides]))


@pytest.fixture(scope="module")
def word_corpus(file) -> Corpus:
    return corpus(file, "tokenizer=word")


@given(size=st.integers(1, 3000))
def test_word_tokens_of_a_sample_are_its_words(word_corpus, size):
    config = word_corpus.config
    resized = replace(config, sample=replace(config.sample, size=str(size)))
    drawn = Corpus(resized).sample()
    assert drawn.words == size
    assert len(drawn.tokens) == size + drawn.sentences
    assert (drawn.tokens == EOS).sum() == drawn.sentences
    assert drawn.tokens[-1] == EOS


@pytest.mark.parametrize("tokenizer", ["char", "bpe"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 13, 100, 1001])
def test_pieces_of_a_sample_spell_its_text(file, tokenizer, size):
    sized = ["tokenizer.vocab_size=400"] if tokenizer == "bpe" else []
    prepared = corpus(file, f"tokenizer={tokenizer}", f"sample.size={size}", *sized)
    tokens = prepared.sample().tokens
    ends = np.flatnonzero(tokens == EOS)
    parts = np.split(tokens, ends + 1)
    assert len(parts.pop()) == 0
    pieces = ["".join(map(prepared.tokenizer.token, part[:-1].tolist())) for part in parts]
    texts = sentences(prepared.text, prepared.drawn)
    assert pieces == (texts if tokenizer == "char" else ["▁" + text.replace(" ", "▁") for text in texts])


def test_documents_of_a_sample_are_counted_in_its_order(tmp_path):
    """What `recipe.packing=documents` packs: the sentences of each document, the shortened last one included."""
    lines = [f"a{n} b c .\n" * (1 + n % 3) for n in range(60)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    config = compose(
        "corpora", ["corpus=local", f"corpus.path={tmp_path}/text.txt", f"paths.store={tmp_path}/store",
                    "tokenizer=word", "corpus.split.valid=0.1", "sample.unit=document", "sample.size=150"]
    )  # fmt: skip
    corpus = prepare(config)
    sample = corpus.sample()
    sentences = [corpus.text.sentence(index).split()[0] for index in corpus.drawn.indices.tolist()]
    sentences += [corpus.text.sentence(index).split()[0] for index, _ in corpus.drawn.cuts]
    expected = [len(list(group)) for _, group in itertools.groupby(sentences)]
    assert sample.documents.tolist() == expected
    assert sample.documents.sum() == sample.sentences
