"""Reading text: every format gives the same documents, and each bad file raises a one-line error."""

import bz2
import gzip
import json
import lzma

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
def test_text_is_read_from_every_compression(tmp_path, ending, text):
    path = write(tmp_path, f"a.txt{ending}", COMPRESS[ending](text.encode()))
    assert read(path) == [Document("a", document) for document in EXPECTED]


def test_parquet_json_lines_and_several_files_are_read_in_order(tmp_path):
    pd.DataFrame({"body": ["\n".join(document) for document in DOCUMENTS]}).to_parquet(tmp_path / "b.parquet")
    write(tmp_path, "a.txt", TEXT.encode())
    rows = "".join(json.dumps({"id": 1, "body": "\n".join(document)}) + "\n\n" for document in DOCUMENTS)
    write(tmp_path, "c.jsonl.gz", gzip.compress(rows.encode()))
    paths = f"corpus.path=[{tmp_path}/a.txt,{tmp_path}/b.parquet,{tmp_path}/c.jsonl.gz]"
    read_documents = read(paths, "corpus.text_field=body")
    assert [document.sentences for document in read_documents] == EXPECTED * 3
    assert [document.source for document in read_documents] == ["a", "a", "b", "b", "c", "c"]


def test_running_text_is_split_into_sentences_and_documents_of_a_given_length(tmp_path):
    path = write(tmp_path, "a.txt", b"A dog. A cat ran! Did it?\nYes.\n\nMr. Low left.")
    assert sentences(path, "corpus.split_sentences=true") == [
        ["A dog.", "A cat ran!", "Did it?", "Yes."],
        ["Mr. Low left."],
    ]
    assert sentences(path, "corpus.split_sentences=true", "corpus.document_sentences=3") == [
        ["A dog.", "A cat ran!", "Did it?"],
        ["Yes."],
        ["Mr. Low left."],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two. Three.", ["One.", "Two.", "Three."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("It cost 3.5 dollars. J. R. Smith of St. Paul paid, e.g. Mr. Jones.", None),
        ("Was it I? So said I. He agreed.", ["Was it I?", "So said I.", "He agreed."]),
        ("He stopped... and went on.", None),
        ("他走了。她说：“你好！”然后呢？好", ["他走了。", "她说：“你好！”", "然后呢？", "好"]),
        ("The dog , tokenised . He ran .", ["The dog , tokenised .", "He ran ."]),
        ("  ", []),
    ],
)
def test_sentence_rules(text, expected):
    if expected is None:
        first, rest = text, []
        if "dollars" in text:
            first, rest = "It cost 3.5 dollars.", ["J. R. Smith of St. Paul paid, e.g. Mr. Jones."]
        expected = [first, *rest]
    assert split_sentences(text) == expected


LATIN1 = "fine\ncaf\xe9\n".encode("latin-1")
BAD_FILES = {
    "missing": ("b.txt", None, r"no file .*b\.txt"),
    "empty": ("a.txt", b"", r"a\.txt: has no text"),
    "blank": ("a.txt", b"\n \n\t\n", r"a\.txt: has no text"),
    "latin-1": ("a.txt", LATIN1, r"a\.txt:2: not UTF-8 \(byte 0xe9 at position 4 of the line\)"),
    "latin-1 in an archive": ("a.txt.gz", gzip.compress(LATIN1), r"a\.txt\.gz:2: not UTF-8"),
    "not json": ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a\.jsonl:2: not JSON"),
    "not an object": ("a.jsonl", b"[1]\n", r"a\.jsonl:1: is list, not an object"),
    "no field": ("a.jsonl", b'{"body": "a", "id": 1}\n', r"a\.jsonl:1: no field 'text'.*available: body, id"),
    "not text": ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl:1: field 'text' is int"),
    "half a character": ("a.jsonl", b'{"text": "\\ud800"}\n', r"a\.jsonl:1: .*half a surrogate pair"),
    "not parquet": ("a.parquet", b"PAR1 or not", r"a\.parquet: not a readable parquet file"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_raise_one_line_errors(tmp_path, case):
    name, content, message = BAD_FILES[case]
    path = write(tmp_path, name, content) if content is not None else f"corpus.path={tmp_path / name}"
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [ending for ending in COMPRESS if ending])
def test_truncated_and_damaged_archives_raise_one_line_errors(tmp_path, ending):
    import random

    text = " ".join(random.Random(1).choices(["dog", "cat", "café", "barks."], k=20_000)).replace(". ", ".\n").encode()
    archive = COMPRESS[ending](text)
    for content in (archive[: len(archive) // 2], b"no archive at all"):
        with pytest.raises(InputError, match=rf"a\.txt\{ending}: cannot be read to its end \(\S") as caught:
            read(write(tmp_path, f"a.txt{ending}", content))
        assert "\n" not in str(caught.value)


def test_missing_columns_and_unknown_endings_raise_errors(tmp_path):
    pd.DataFrame({"body": ["a"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"no field 'text'.*available: body"):
        read(f"corpus.path={tmp_path}/a.parquet")
    with pytest.raises(ConfigError, match=r"a\.docx: must end in \.txt"):
        read(write(tmp_path, "a.docx", b"x"))


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
    with pytest.raises(InputError, match=r"no file .*a\.txt"):
        describe_source(corpus(path), {})
    with pytest.raises(ConfigError, match="different names"):
        describe_source(corpus(f"corpus.path=[{tmp_path}/a.txt,{tmp_path}/elsewhere/a.txt]"), {})


def hub_copy(tmp_path, texts: dict[str, list[str]]) -> str:
    import datasets  # seconds

    folder = tmp_path / "copy"
    datasets.DatasetDict(
        {split: datasets.Dataset.from_dict({"text": rows}) for split, rows in texts.items()}
    ).save_to_disk(folder)
    return f"corpus.path={folder}"


def test_local_copies_of_published_data_sets_are_read(tmp_path):
    articles = [
        " = A dog = \n",
        "\n",
        " It barks . It runs . \n",
        " = = Life = = \n",
        " Long . \n",
        " = B = \n",
        " Yes . \n",
    ]
    path = hub_copy(tmp_path, {"train": articles, "validation": [" = C = \n", " No . \n"]})
    assert read(path, group="wikitext103") == [
        Document("Salesforce/wikitext", ["It barks .", "It runs .", "Long ."], "train"),
        Document("Salesforce/wikitext", ["Yes ."], "train"),
        Document("Salesforce/wikitext", ["No ."], "valid"),
    ]


def test_rows_are_lines_or_documents_by_corpus(tmp_path):
    path = hub_copy(tmp_path, {"train": ["He ran. She sat.\n", "", "No."], "test": ["It is.\n\nWe go."]})
    assert read(path, group="babylm_hub") == [
        Document("nilq/babylm-100M", ["He ran.", "She sat."], "train"),
        Document("nilq/babylm-100M", ["No."], "train"),
        Document("nilq/babylm-100M", ["It is."], "test"),
        Document("nilq/babylm-100M", ["We go."], "test"),
    ]
    assert read(path, group="wikipedia_en") == [
        Document("wikimedia/wikipedia", ["He ran.", "She sat."]),
        Document("wikimedia/wikipedia", ["No."]),
    ]


def test_the_hub_without_a_network_raises_a_one_line_error_at_once(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        InputError, match=r"needs Salesforce/wikitext wikitext-103-raw-v1 .*corpus\.path=FOLDER"
    ) as caught:
        read(group="wikitext103")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no folder nowhere"):
        read("corpus.path=nowhere", group="wikitext103")


def test_gulordava_keeps_its_splits_and_needs_all_files(tmp_path):
    for part in ("train", "valid", "test"):
        write(tmp_path, f"{part}.txt", f"the {part} <unk> . <eos>\nyes . <eos>\n".encode() * 2)
    read_documents = read(f"corpus.path={tmp_path}", "corpus.document_sentences=3", group="gulordava_en")
    assert [(document.split, len(document.sentences)) for document in read_documents] == [
        (split, size) for split in ("train", "valid", "test") for size in (3, 1)
    ]
    assert read_documents[0].sentences[:2] == ["the train <unk> .", "yes ."]
    (tmp_path / "valid.txt").unlink()
    with pytest.raises(InputError, match=r"no file .*valid\.txt"):
        read(f"corpus.path={tmp_path}", group="gulordava_en")


def test_gulordava_has_a_published_vocabulary(tmp_path):
    write(tmp_path, "vocab.txt", b"the\n<unk>\ncat\n<eos>\n.\n")
    for where in (f"corpus.path={tmp_path}", f"corpus.url=file://{tmp_path}"):
        assert published_vocabulary(corpus(where, group="gulordava_en")) == ["the", "cat", "."]
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(InputError, match=r"no file .*vocab\.txt"):
        published_vocabulary(corpus(f"corpus.path={tmp_path}", group="gulordava_en"))
    assert published_vocabulary(corpus(f"corpus.path={tmp_path}")) is None


def test_the_tokenizer_has_the_published_words_unless_a_smaller_size_is_set(tmp_path):
    for part in ("train", "valid", "test"):
        write(tmp_path, f"{part}.txt", b"the dog sees the cat . <eos>\n" * 50)
    write(tmp_path, "vocab.txt", b"<unk>\n<eos>\ncat\nthe\nzebra\n.\n")
    options = [
        "corpus=gulordava_en",
        f"corpus.path={tmp_path}",
        "tokenizer=whitespace",
        f"paths.store={tmp_path}/store",
    ]
    tokenizer = prepare(compose("corpora", options)).tokenizer
    assert [tokenizer.token(index) for index in range(len(tokenizer))] == ["<eos>", "<unk>", "cat", "the", "zebra", "."]
    fewer = prepare(compose("corpora", [*options, "tokenizer.vocab_size=1"])).tokenizer
    assert [fewer.token(index) for index in range(len(fewer))] == ["<eos>", "<unk>", "the"]


def test_gulordava_is_read_over_the_network(tmp_path):
    for part in ("train", "valid", "test"):
        write(tmp_path, f"{part}.txt", b"a b . <eos>\n")
    assert sentences(f"corpus.url=file://{tmp_path}", group="gulordava_en") == [["a b ."]] * 3
    with pytest.raises(InputError, match=r"needs http://127\.0\.0\.1:9/train\.txt .*corpus\.path=FOLDER"):
        sentences("corpus.url=http://127.0.0.1:9", group="gulordava_en")
