"""Reading text: every format gives the same documents, and each bad file raises a one-line error."""

import bz2
import gzip
import json
import lzma
import random

import pandas as pd
import pytest
import zstandard

from corpora.prepare import prepare
from corpora.sources.read import describe_source, documents, published_vocabulary, split_sentences
from corpora.text import Document
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

DOCUMENTS = [["One dog barks.", "Café – naïve 狗."], ["It didn't stop.", "Why?", "\u00a0x  y"]]
TEXT = "\n".join("".join(f"{sentence}\n" for sentence in document) for document in DOCUMENTS)
EXPECTED = [[sentence.strip() for sentence in document] for document in DOCUMENTS]
COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}


def corpus(*overrides: str, group: str = "local"):
    pretokenised = ["tokenizer=whitespace"] if group in ("gulordava_en", "wikitext103") else []
    return compose("corpora", [f"corpus={group}", *pretokenised, *overrides]).corpus


def read(*overrides: str, group: str = "local") -> list[Document]:
    return list(documents(corpus(*overrides, group=group)))


def sentences(*overrides: str, group: str = "local") -> list[list[str]]:
    return [document.sentences for document in read(*overrides, group=group)]


def write(folder, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return f"corpus.path={folder / name}"


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("text", [TEXT, "\ufeff\n\n" + TEXT.replace("\n", "\r\n") + "\r\n\r\n", TEXT.rstrip("\n")])
def test_text_and_json_lines_are_read_from_every_compression(tmp_path, ending, text):
    compress = COMPRESS[ending]
    path = write(tmp_path, f"a.txt{ending}", compress(text.encode()))
    assert read(path) == [Document("a", document) for document in EXPECTED]
    halves = [part.encode() for part in text.partition("\n\n")]  # archives of several frames
    assert sentences(write(tmp_path, f"a.txt{ending}", b"".join(map(compress, halves)))) == EXPECTED
    rows = "".join(json.dumps({"id": 1, "body": "\n".join(document)}) + "\n\n" for document in DOCUMENTS)
    path = write(tmp_path, f"a.jsonl{ending}", compress(rows.encode()))
    assert sentences(path, "corpus.text_field=body") == EXPECTED


@pytest.mark.parametrize("ending", [ending for ending in COMPRESS if ending])
def test_cut_and_damaged_archives_raise_one_line_errors(tmp_path, ending):
    text = " ".join(random.Random(1).choices(["dog", "cat", "café", "barks."], k=20_000)).replace(". ", ".\n").encode()
    archive = COMPRESS[ending](text)
    for content in (archive[: len(archive) // 2], b"no archive at all"):
        with pytest.raises(InputError, match=rf"a\.txt\{ending}: .* to its end \(\S.*$") as caught:
            read(write(tmp_path, f"a.txt{ending}", content))
        assert "\n" not in str(caught.value)


def test_parquet_and_several_files_are_read_in_order(tmp_path):
    write(tmp_path, "b.parquet", parquet_of(["\n".join(document) for document in DOCUMENTS]))
    write(tmp_path, "a.txt", TEXT.encode())
    rows = "".join(json.dumps({"id": 1, "body": "\n".join(document)}) + "\n\n" for document in DOCUMENTS)
    write(tmp_path, "c.jsonl.gz", gzip.compress(rows.encode()))
    paths = f"corpus.path=[{tmp_path}/a.txt,{tmp_path}/b.parquet,{tmp_path}/c.jsonl.gz]"
    read_documents = read(paths, "corpus.text_field=body")
    assert [document.sentences for document in read_documents] == EXPECTED * 3
    assert [document.source for document in read_documents] == ["a", "a", "b", "b", "c", "c"]


def test_running_text_is_split_into_sentences_and_documents_of_a_given_length(tmp_path):
    path = write(tmp_path, "a.txt", b"A dog. A cat ran! Did it?\nYes.\n\nMr. Low left.")
    first, second = ["A dog.", "A cat ran!", "Did it?", "Yes."], ["Mr. Low left."]
    split = "corpus.split_sentences=true"
    assert sentences(path, split) == [first, second]
    assert sentences(path, split, "corpus.document_sentences=3") == [first[:3], first[3:], second]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two. Three.", ["One.", "Two.", "Three."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("It cost 3.5 dollars.", ["It cost 3.5 dollars."]),
        ("J. R. Smith of St. Paul paid, e.g. Mr. Jones.", ["J. R. Smith of St. Paul paid, e.g. Mr. Jones."]),
        ("Was it I? So said I. He agreed.", ["Was it I?", "So said I.", "He agreed."]),
        ("He stopped... and went on.", ["He stopped... and went on."]),
        ("他走了。她说：“你好！”然后呢？好", ["他走了。", "她说：“你好！”", "然后呢？", "好"]),
        ("The dog , tokenised . He ran .", ["The dog , tokenised .", "He ran ."]),
        ("  ", []),
    ],
)
def test_sentence_rules(text, expected):
    assert split_sentences(text) == expected


def parquet_of(rows: list[str]) -> bytes:
    return pd.DataFrame({"body": rows}).to_parquet()


LATIN1 = "fine\ncaf\xe9\n".encode("latin-1")
BAD_FILES = {
    "missing": ("b.txt", None, r"b\.txt: .* does not exist"),
    "blank": ("a.txt", b"\n \n\t\n", r"a\.txt: this file contains no text"),
    "latin-1": ("a.txt", LATIN1, r"a\.txt:2: .* UTF-8 \(byte 0xe9 at position 4\)"),
    "latin-1 in an archive": ("a.txt.gz", gzip.compress(LATIN1), r"a\.txt\.gz:2: .* UTF-8"),
    "not json": ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a\.jsonl:2: .* JSON"),
    "not an object": ("a.jsonl", b"[1]\n", r"a\.jsonl:1: .* list.* object"),
    "no field": (
        "a.jsonl",
        b'{"body": "a", "id": 1}\n',
        r"a\.jsonl:1: .*no field 'text'. .*corpus.text_field to body or id",
    ),
    "not text": ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl:1: .* field 'text' .* int"),
    "half a character": ("a.jsonl", b'{"text": "\\ud800"}\n', r"a\.jsonl:1: .*half a surrogate pair"),
    "not parquet": ("a.parquet", b"PAR1 or not", r"a\.parquet: this is not a readable Parquet file"),
    "no column": ("a.parquet", parquet_of(["a"]), r"no field 'text'. .*corpus.text_field to body"),
    "unknown ending": ("a.docx", b"x", r"a\.docx: .* \.txt"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_raise_one_line_errors(tmp_path, case):
    name, content, message = BAD_FILES[case]
    path = write(tmp_path, name, content) if content is not None else f"corpus.path={tmp_path / name}"
    with pytest.raises((InputError, ConfigError), match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_the_description_of_a_source_changes_only_with_its_content_and_settings(tmp_path):
    path = write(tmp_path, "a.txt", TEXT.encode())
    description = describe_source(corpus(path), {})
    assert json.loads(json.dumps(description)) == description
    (tmp_path / "elsewhere").mkdir()
    elsewhere = write(tmp_path / "elsewhere", "a.txt", TEXT.encode())
    assert describe_source(corpus(elsewhere), {}) == description
    assert describe_source(corpus(path, "corpus.split.seed=1"), {}) != description
    write(tmp_path, "a.txt", TEXT.encode().replace(b"dog", b"cat"))
    assert describe_source(corpus(path), description["corpus.path"]) != description
    (tmp_path / "a.txt").unlink()
    assert describe_source(corpus(path), description["corpus.path"]) == description
    with pytest.raises(InputError, match=r"a\.txt: .* does not exist"):
        describe_source(corpus(path), {})
    with pytest.raises(ConfigError, match="same name"):
        describe_source(corpus(f"corpus.path=[{tmp_path}/a.txt,{tmp_path}/elsewhere/a.txt]"), {})


def hub_copy(tmp_path, texts: dict[str, list[str]]) -> str:
    import datasets  # seconds

    rows = {split: datasets.Dataset.from_dict({"text": of}) for split, of in texts.items()}
    datasets.DatasetDict(rows).save_to_disk(tmp_path / "copy")
    return f"corpus.path={tmp_path}/copy"


def test_local_copies_of_published_data_sets_are_read(tmp_path):
    lines = (" = A dog = ", "", " It barks . It runs . ", " = = Life = = ", " Long . ", " = B = ", " Yes . ")
    articles = [f"{line}\n" for line in lines]
    path = hub_copy(tmp_path, {"train": articles, "validation": [" = C = \n", " No . \n"]})
    assert read(path, group="wikitext103") == [
        Document("Salesforce/wikitext", ["It barks .", "It runs .", "Long ."], "train"),
        Document("Salesforce/wikitext", ["Yes ."], "train"),
        Document("Salesforce/wikitext", ["No ."], "valid"),
    ]


def test_rows_are_lines_or_documents_by_corpus(tmp_path):
    path = hub_copy(tmp_path, {"train": ["He ran. She sat.\n", "", "No."], "test": ["It is.\n\nWe go."]})
    expected = [(["He ran.", "She sat."], "train"), (["No."], "train"), (["It is."], "test"), (["We go."], "test")]
    assert read(path, group="babylm_hub") == [Document("nilq/babylm-100M", *of) for of in expected]
    wikipedia = [Document("wikimedia/wikipedia", of) for of, _ in expected[:2]]  # one document per row, no splits
    assert read(path, group="wikipedia_en") == wikipedia


def test_the_hub_without_a_network_raises_a_one_line_error_at_once(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"Salesforce/wikitext wikitext-103-raw-v1.*corpus\.path=FOLDER"):
        read(group="wikitext103")
    with pytest.raises(InputError, match=r"corpus\.path=nowhere: .* does not exist"):
        read("corpus.path=nowhere", group="wikitext103")


def test_gulordava_keeps_its_splits_and_needs_all_files(tmp_path):
    for part in ("train", "valid", "test"):
        write(tmp_path, f"{part}.txt", f"the {part} <unk> . <eos>\nyes . <eos>\n".encode() * 2)
    for where in (f"corpus.path={tmp_path}", f"corpus.url=file://{tmp_path}"):
        found = read(where, "corpus.document_sentences=3", group="gulordava_en")
        sizes = [(document.split, len(document.sentences)) for document in found]
        assert sizes == [(split, size) for split in ("train", "valid", "test") for size in (3, 1)]
        assert found[0].sentences[:2] == ["the train <unk> .", "yes ."]
    with pytest.raises(InputError, match=r"can't download http://127\.0\.0\.1:9/train\.txt .*corpus\.path to a folder"):
        read("corpus.url=http://127.0.0.1:9", group="gulordava_en")
    (tmp_path / "valid.txt").unlink()
    with pytest.raises(InputError, match=r"valid\.txt: .* does not exist"):
        read(f"corpus.path={tmp_path}", group="gulordava_en")


def test_gulordava_has_a_published_vocabulary(tmp_path):
    write(tmp_path, "vocab.txt", b"the\n<unk>\ncat\n<eos>\n.\n")
    for where in (f"corpus.path={tmp_path}", f"corpus.url=file://{tmp_path}"):
        assert published_vocabulary(corpus(where, group="gulordava_en")) == ["the", "cat", "."]
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(InputError, match=r"vocab\.txt: .* does not exist"):
        published_vocabulary(corpus(f"corpus.path={tmp_path}", group="gulordava_en"))
    assert published_vocabulary(corpus(f"corpus.path={tmp_path}")) is None


def test_the_tokenizer_has_the_published_words_unless_a_smaller_size_is_set(tmp_path):
    for part in ("train", "valid", "test"):
        write(tmp_path, f"{part}.txt", b"the dog sees the cat . <eos>\n" * 50)
    write(tmp_path, "vocab.txt", b"<unk>\n<eos>\ncat\nthe\nzebra\n.\n")
    options = ["corpus=gulordava_en", f"corpus.path={tmp_path}", "tokenizer=whitespace", f"paths.store={tmp_path}/s"]
    for size, expected in (([], ["cat", "the", "zebra", "."]), (["tokenizer.vocab_size=1"], ["the"])):
        tokenizer = prepare(compose("corpora", [*options, *size])).tokenizer
        assert [tokenizer.token(index) for index in range(len(tokenizer))] == ["<eos>", "<unk>", *expected]
