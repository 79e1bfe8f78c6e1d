"""Text and token stores: round trips, splits, one preparation for many processes, damaged files."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import corpora.prepare
import corpora.store
from corpora.config import CorporaConfig, SplitConfig
from corpora.prepare import known_sizes, prepare
from corpora.store import dtype_of, ranges
from corpora.text import Document, TextStore, split_of, write_text_store
from corpora.tokenizers import EOS, UNK
from corpora.words import count_characters, count_words
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, StoreError
from tests.support.commands import run_command

NOUNS = ["dog", "cat", "café", "fox", "owner", "狗", "farmer", "singer"]
DOCUMENTS = [
    [f"The {noun} of {number} didn't bark." for noun in NOUNS[: 1 + number % len(NOUNS)]] for number in range(150)
]
SENTENCES = [sentence for document in DOCUMENTS for sentence in document]


@pytest.fixture
def path(tmp_path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS), encoding="utf-8")
    return file


def config(path: Path, *overrides: str) -> CorporaConfig:
    options = ["corpus=local", f"corpus.path={path}", f"paths.store={path.parent}/store", "sample.size=200"]
    return compose("corpora", [*options, *overrides])


@pytest.mark.parametrize("kind", ["word", "char", "unigram", "bpe"])
@pytest.mark.parametrize("values", [["sample.size=49"], ["sample.size=100", "sample.unit=document", "seed=3"]])
def test_a_small_sample_encoded_alone_equals_its_part_of_the_store(path, tmp_path, monkeypatch, kind, values):
    options = [f"tokenizer={kind}", "tokenizer.vocab_size=300", "tokenizer.fit_sentences=400", *values]
    from_store = prepare(config(path, *options, f"paths.store={tmp_path}/whole"))
    from_store.prepare_store()
    monkeypatch.setattr(corpora.prepare, "SMALL_SHARE", 1.0)
    monkeypatch.setattr(corpora.prepare, "write_token_store", None)
    from_sample = prepare(config(path, *options))
    assert from_sample.store is None
    whole, alone = from_store.sample(), from_sample.sample()
    assert (whole.tokens.dtype, whole.digest) == (alone.tokens.dtype, alone.digest)
    assert whole.tokens.tolist() == alone.tokens.tolist()
    assert from_store.held_out("valid", 50).tokens.tolist() == from_sample.held_out("valid", 50).tokens.tolist()
    assert from_store.manifest == from_sample.manifest
    sizes = known_sizes(config(path, *options))
    assert sizes.vocabulary == len(from_store.tokenizer)
    assert sizes.tokens_per_word == pytest.approx(from_store.prepare_store().manifest["tokens_per_word"], rel=0.1)


def test_a_tokenizer_fitted_on_another_text_is_rejected(path, monkeypatch):
    monkeypatch.setattr(corpora.prepare, "SMALL_SHARE", 1.0)
    folder = prepare(config(path)).text.folder.parent
    _ = prepare(config(path)).tokenizer
    shutil.rmtree(folder / "text")
    path.write_text(path.read_text(encoding="utf-8").replace("dog", "god"), encoding="utf-8")
    with pytest.raises(StoreError, match="'text' differs from the folder's manifest"):
        _ = prepare(config(path)).tokenizer


def test_the_text_store_returns_every_sentence_and_its_sizes(path):
    text = prepare(config(path)).text
    assert list(text.sentences(range(len(text)))) == SENTENCES
    assert text.words.tolist() == [count_words(sentence, "treebank") for sentence in SENTENCES]
    assert text.characters.tolist() == [count_characters(sentence) for sentence in SENTENCES]
    assert np.diff(text.documents).tolist() == [len(document) for document in DOCUMENTS]
    assert sum(split["words"] for split in text.manifest["splits"].values()) == text.words.sum()
    content = (text.folder / "text.txt").read_bytes()
    assert content.decode() == "".join(f"{sentence}\n" for sentence in SENTENCES)
    assert text.manifest["text_digest"] == hashlib.sha256(content).hexdigest()
    parts = [text.split_sentences(split) for split in ("train", "valid", "test")]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(text)))


def test_splits_are_shares_of_each_source_and_depend_only_on_the_seed():
    split = SplitConfig(seed=0, valid=0.02, test=0.02)
    documents = [Document(source, [f"sentence {number}"]) for source in ("a", "b") for number in range(10_000)]
    splits = [split_of(document, split) for document in documents]
    for part in (splits[:10_000], splits[10_000:]):
        # Four standard deviations of a binomial with p = .02.
        assert part.count("valid") == pytest.approx(200, abs=56)
        assert part.count("test") == pytest.approx(200, abs=56)
    assert splits[:10_000] != splits[10_000:]
    assert [split_of(document, split) for document in reversed(documents)] == splits[::-1]
    other = SplitConfig(seed=1, valid=0.02, test=0.02)
    assert [split_of(document, other) for document in documents] != splits
    assert split_of(Document("a", ["x"], "test"), split) == "test"


@pytest.mark.parametrize("tokenizer", ["word", "char", "unigram", "whitespace"])
def test_the_token_store_holds_the_output_of_the_tokenizer(path, monkeypatch, tokenizer):
    """Also where sentences are encoded and gathered in several parts."""
    advances = []

    def counted(steps, *_):
        for advance, value in steps:
            advances.append(advance)
            yield value

    monkeypatch.setattr(corpora.store, "with_progress", counted)
    monkeypatch.setattr(corpora.store, "BATCH", 30)
    monkeypatch.setattr(corpora.store, "GATHERED", 2)
    sized = ["tokenizer.vocab_size=310"] if tokenizer == "unigram" else []
    corpus = prepare(config(path, f"tokenizer={tokenizer}", *sized))
    store = corpus.prepare_store()
    assert sum(advances) == len(SENTENCES) > 30
    encoded = [[*corpus.tokenizer.encode(sentence), EOS] for sentence in SENTENCES]
    assert store.tokens.tolist() == [index for ids in encoded for index in ids]
    order = np.array([5, 0, 5, len(SENTENCES) - 1])
    assert store.gather(order).tolist() == [index for at in order for index in encoded[at]]
    assert store.gather(order[:0]).tolist() == []
    assert ranges(np.array([3, 0, 7]), np.array([5, 0, 8])).tolist() == [3, 4, 7]
    assert store.tokens.dtype == (np.uint8 if len(corpus.tokenizer) <= 256 else np.uint16)
    assert store.manifest["tokens"] == len(store.tokens)
    assert store.manifest["unknown"] == int((store.tokens == UNK).sum())


@pytest.mark.parametrize(
    ("entries", "dtype"), [(256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.uint32)]
)
def test_ids_take_the_smallest_type_that_has_all_of_them(entries, dtype):
    assert dtype_of(range(entries)) == dtype


def test_the_tokenizer_is_fitted_on_the_train_split_or_the_sample(path):
    corpus = prepare(config(path))
    train = [SENTENCES[index] for index in corpus.text.split_sentences("train")]
    numbers = {word for sentence in train for word in sentence.split()}
    vocabulary = {corpus.tokenizer.token(index) for index in range(len(corpus.tokenizer))}
    held_out = [SENTENCES[index].split()[3] for index in corpus.text.split_sentences("valid")]
    assert not (set(held_out) - numbers) & vocabulary
    small = prepare(config(path, "tokenizer.fit_on=sample", "sample.size=50"))
    assert len(small.tokenizer) < len(corpus.tokenizer)
    assert small.store is None
    assert UNK not in small.sample().tokens
    assert small.held_out("valid", 1000).unk > corpus.held_out("valid", 1000).unk
    assert prepare(config(path, "tokenizer.fit_on=sample", "sample.size=50")).manifest == small.manifest


def test_held_out_text_is_the_same_for_all_runs(path):
    corpus = prepare(config(path, "corpus.split.valid=0.3"))
    held_out = corpus.held_out("valid", 120)
    assert 100 < held_out.words <= 120
    assert held_out.sentences == (held_out.tokens == EOS).sum()
    assert len(held_out.tokens) == held_out.words + held_out.sentences  # words are the tokens here
    other = prepare(config(path, "corpus.split.valid=0.3", "seed=5", "sample.size=50"))
    assert other.held_out("valid", 120).tokens.tolist() == held_out.tokens.tolist()
    everything = corpus.held_out("valid", 10**9)
    assert everything.words == corpus.text.manifest["splits"]["valid"]["words"]


def test_a_text_of_too_few_documents_raises_an_error_and_is_not_stored(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("\n".join(SENTENCES), encoding="utf-8")
    with pytest.raises(InputError, match=r"too few documents \(1\), .* validation .*corpus\.document_sentences=1"):
        prepare(config(file))
    held_out = [Document("a", ["x y"], "valid"), Document("a", [])]
    split = SplitConfig(seed=0, valid=0.1, test=0.1)
    with pytest.raises(InputError, match=r"training .* lower corpus\.split\.valid and corpus\.split\.test"):
        write_text_store(tmp_path / "text", held_out, "treebank", split, {})
    with pytest.raises(StoreError, match=r"manifest\.json: .*\. Remove"):
        TextStore(tmp_path / "text")
    parted = prepare(config(file, "corpus.document_sentences=5", "corpus.split.valid=0.1"))
    assert parted.held_out("valid", 100).words > 0


def test_a_changed_text_or_configuration_is_not_mistaken_for_the_prepared_one(path):
    prepare(config(path))
    with pytest.raises(StoreError, match=r"prepared with corpus\.split=.*, but .*\. Choose another corpus\.name"):
        prepare(config(path, "corpus.split.seed=9"))
    with pytest.raises(InputError, match=r"other\.txt: .* does not exist"):
        prepare(config(path.with_name("other.txt")))
    path.write_text(path.read_text(encoding="utf-8").replace("dog", "god"), encoding="utf-8")
    with pytest.raises(StoreError, match=r"prepared from other files \(text\.txt\)\. Choose another corpus\.name"):
        prepare(config(path))
    path.unlink()
    assert len(prepare(config(path)).text) == len(SENTENCES)  # a prepared text outlives its file


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["tokens.bin", "offsets.npy", "tokenizer/vocab.txt"])
@pytest.mark.parametrize("damage", [flip, lambda file: file.write_bytes(file.read_bytes()[:-2]), Path.unlink])
def test_a_damaged_token_store_raises_a_one_line_error(path, name, damage):
    folder = prepare(config(path)).prepare_store().folder
    damage(folder / name)
    with pytest.raises(StoreError, match=rf"{folder.name}.*(differs from|can't be read)") as caught:
        prepare(config(path)).prepare_store()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda text: flip(text / "text.txt"),
            r"text\.txt: .*digest differs from its manifest.*Remove .*text to prepare",
        ),
        (lambda text: (text / "text.txt").write_bytes(b"short"), r"text\.txt: .*size differs"),
        (lambda text: (text / "manifest.json").write_text("{"), r"manifest\.json: .* as JSON"),
        (lambda text: edit_manifest(text, version=99), "version 99, but "),
        (
            lambda text: edit_manifest(text, text_digest=None),
            r"missing: text_digest\. Remove .*text to prepare",
        ),
    ],
)
def test_a_damaged_text_is_not_encoded(path, damage, message):
    damage(prepare(config(path)).text.folder)
    with pytest.raises(StoreError, match=message):
        prepare(config(path)).prepare_store()


def edit_manifest(text: Path, **values) -> None:
    content = json.loads((text / "manifest.json").read_text()) | values
    (text / "manifest.json").write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_sizes_are_known_once_the_store_is_written_and_a_sample_above_them_is_refused(path):
    assert known_sizes(config(path, "sample.size=1M")) is None
    corpus = prepare(config(path))
    assert known_sizes(config(path)) is None
    store, sizes = corpus.prepare_store(), known_sizes(config(path))
    assert sizes.vocabulary == len(corpus.tokenizer)
    assert sizes.tokens_per_word == (len(store.tokens) - len(SENTENCES)) / corpus.text.words.sum() == 1
    available = corpus.text.manifest["splits"]["train"]["words"]
    with pytest.raises(ConfigError, match=rf"sample\.size=1M: .* has only {available:,} words\. .* smaller size"):
        known_sizes(config(path, "sample.size=1M"))


def test_the_command_prepares_and_reports(path, tmp_path):
    options = ["corpus=local", f"corpus.path={path}", f"paths.store={tmp_path}/store"]
    assert "to be prepared" in run_command("corpora", *options, "dry_run=true").stdout
    done = run_command("corpora", *options)
    assert done.returncode == 0, done.stderr
    words = prepare(config(path)).text.manifest["splits"]["train"]["words"]
    assert f"{words:,}" in done.stdout
    assert f"{tmp_path}/store/local" in done.stdout
    path.write_bytes(b"caf\xe9")
    failed = run_command("corpora", *options, "corpus.name=latin")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.count("\n") == 1
    assert "text.txt:1: this line is not valid UTF-8" in failed.stderr
