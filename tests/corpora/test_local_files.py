"""Local corpora of several files: folders, globs and lists, published splits, BabyLM's text data, unclear cases."""

import gzip

import pytest

from corpora.prepare import prepare
from corpora.sources.files import source_files
from corpora.sources.read import describe_source, documents
from corpora.text import SPLITS, Document
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, StoreError

CHILDES = "*MOT:\tlook at that . what is it ?\n*CHI:\ta dog .\n"
WIKI = "= = = Fox = = =\nA fox is an animal. It runs.\n\nIt barks.\n = = = Dr. No = = = \nHe is Dr. No.\n"


def write(folder, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def corpus(path, *overrides: str, group: str = "local"):
    return compose("corpora", [f"corpus={group}", f"corpus.path={path}", *overrides]).corpus


@pytest.fixture
def babylm(tmp_path):
    """Return a folder as of BabyLM's download, with what unpacking on a Mac leaves."""
    folder = tmp_path / "babylm"
    for parent, ending in (("train_10M", "train"), ("dev", "dev"), ("test", "test")):
        write(folder / parent, **{f"childes__{ending}": CHILDES, f"simple_wiki__{ending}": WIKI})
        write(folder / "__MACOSX" / parent, **{f".__childes__{ending}": "no text"})
    write(folder, README__md="The data.", __DS_Store="no text")
    return folder


def test_babylm_is_read_as_it_is_downloaded(babylm):
    """A line is running text; empty lines and headings begin documents; domain and split are in the name."""
    expected = [
        Document(domain, sentences, split)
        for split in ("valid", "test", "train")  # in the order of the folders: dev, test, train_10M
        for domain, sentences in (
            ("childes", ["*MOT:\tlook at that . what is it ?", "*CHI:\ta dog ."]),
            ("simple_wiki", ["A fox is an animal.", "It runs."]),
            ("simple_wiki", ["It barks."]),
            ("simple_wiki", ["He is Dr. No."]),
        )
    ]
    assert list(documents(corpus(babylm, group="babylm"))) == expected
    flat = babylm.parent / "flat"
    write(flat, **{file.name: file.read_text() for file in babylm.glob("*/*") if "MACOSX" not in str(file)})
    assert sorted(map(str, documents(corpus(flat, group="babylm")))) == sorted(map(str, expected))
    for file in flat.iterdir():
        file.rename(f"{file}.txt")
    assert sorted(map(str, documents(corpus(flat, group="babylm")))) == sorted(map(str, expected))
    parts = f"[{babylm}/train_10M,{babylm}/dev,{babylm}/test]"
    assert list(documents(corpus(parts, group="babylm"))) == expected[8:] + expected[:8]
    read = list(documents(corpus(babylm, "corpus.published_splits=false")))
    assert {(document.source, document.split) for document in read} == {("childes", None), ("simple_wiki", None)}


def test_a_long_file_without_empty_lines_is_cut_into_documents(tmp_path):
    write(tmp_path, open_subtitles__train="Who is it? It's me.\n" * 130)
    sizes = [len(document.sentences) for document in documents(corpus(tmp_path, group="babylm"))]
    assert sizes == [100, 100, 60]


def test_the_two_sizes_of_babylm_are_not_read_together(babylm):
    write(babylm / "train_100M", childes__train=CHILDES)
    with pytest.raises(ConfigError, match=r"train_100M/childes\.train and .*train_10M/childes\.train"):
        source_files(corpus(babylm, group="babylm"))


def test_a_missing_split_is_drawn_from_train_and_said(tmp_path, capsys):
    write(tmp_path, a__train="".join(f"No {number}.\n\n" for number in range(400)), a__dev="Yes.\n")
    with_dev = list(documents(corpus(tmp_path, "corpus.split.valid=0.2", "corpus.split.test=0.2")))
    counts = {split: sum(document.split == split for document in with_dev) for split in ("train", "valid", "test")}
    assert counts["valid"] == 1
    assert 50 < counts["test"] < 110  # a fifth of 400, give or take 3.75 standard deviations
    assert "no files for test. Instead, documents from *.train are used (20.0% for test)" in " ".join(
        capsys.readouterr().err.split()
    )
    (tmp_path / "a.dev").unlink()
    assert {document.split for document in documents(corpus(tmp_path))} == {"train", "valid", "test"}


def test_folders_globs_and_lists_of_plain_files_are_one_text(tmp_path):
    write(tmp_path / "old", news__txt="Old news.\n")
    write(tmp_path / "new", novels__txt="A novel.\n", notes__md="Not read.")
    (tmp_path / "new" / "letters.txt.gz").write_bytes(gzip.compress(b"A letter.\n"))
    expected = [Document("letters", ["A letter."]), Document("novels", ["A novel."]), Document("news", ["Old news."])]
    assert list(documents(corpus(tmp_path))) == expected
    assert list(documents(corpus(f"'{tmp_path}/**/*.txt*'"))) == expected
    assert list(documents(corpus(f"'{tmp_path}/n*'"))) == expected[:2]  # a folder that matches is read, too
    assert list(documents(corpus(f"[{tmp_path}/old,{tmp_path}/new/novels.txt]"))) == [expected[2], expected[1]]
    write(tmp_path, **{"a[1]__txt": "Brackets in a name.\n"})
    assert [document.source for document in documents(corpus(f"'{tmp_path}/a[1].txt'"))] == ["a[1]"]


@pytest.mark.parametrize(
    ("path", "group", "error", "message"),
    [
        ("mixed", "local", ConfigError, r"a\.train contains a split, but .*b\.txt .*published_splits=false"),
        ("dev", "local", ConfigError, r"a\.dev, but no training file.*published_splits=false"),
        ("plain", "babylm", ConfigError, r"no \*\.train files.*corpus=local"),
        ("empty", "local", InputError, r"empty: .* end in \.txt, "),
        ("empty", "babylm", InputError, r"empty: .*corpus=babylm_hub"),
        ("nowhere", "local", InputError, "corpus.path=nowhere: .* does not exist"),
        ("'*.txt'", "local", InputError, r"\*\.txt: .* end in "),
        ("[]", "local", ConfigError, "a file, a folder, a glob"),
    ],
)
def test_unclear_and_missing_files_are_refused(tmp_path, monkeypatch, path, group, error, message):
    write(tmp_path / "mixed", a__train="A.\n", b__txt="B.\n")
    write(tmp_path / "dev", a__dev="A.\n")
    write(tmp_path / "plain", a__txt="A.\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        list(documents(corpus(path, group=group)))


def test_a_prepared_text_is_used_without_its_folder(babylm, monkeypatch):
    monkeypatch.chdir(babylm.parent)
    given = corpus(babylm, group="babylm")
    description = describe_source(given, {})
    assert set(description["corpus.path"]) == {
        f"{domain}.{ending}" for domain in ("childes", "simple_wiki") for ending in ("train", "dev", "test")
    }
    config = compose("corpora", ["corpus=babylm", f"corpus.path={babylm}"])
    digest = prepare(config).text.digest
    babylm.rename(babylm.parent / "elsewhere")
    assert describe_source(given, description["corpus.path"]) == description
    assert prepare(config).text.digest == digest
    with pytest.raises(InputError, match="does not exist"):
        describe_source(given, {})
    assert prepare(compose("corpora", ["corpus=babylm", "corpus.path=elsewhere"])).text.digest == digest


def test_a_share_of_documents_is_drawn_apart_from_splits_and_nested(tmp_path):
    write(tmp_path, text__txt="\n\n".join(f"Dogs number {n} sleep.\nThey dream." for n in range(400)))

    def text(name: str, share: float):
        words = [f"corpus.path={tmp_path}/text.txt", f"corpus.name={name}", f"paths.store={tmp_path}/store"]
        words += [f"corpus.share={share}", "corpus.split.valid=0.2"]
        return prepare(compose("corpora", ["corpus=local", *words])).text

    splits = {}
    for share in (0.1, 0.3, 1):
        store = text(f"share-{share}", share)
        begins = store.documents[:-1]
        splits[share] = dict(zip(store.sentences(begins), store.splits.tolist(), strict=True))
    assert splits[0.1].items() <= splits[0.3].items() <= splits[1].items()
    assert len(splits[1]) == 400
    assert 80 < len(splits[0.3]) < 160
    assert 40 < sum(split == SPLITS.index("valid") for split in splits[1].values()) < 120
    for share, now in ((0.1, "0.1"), (1, "None")):
        with pytest.raises(StoreError, match=f"prepared with corpus.share=0.3, but .* {now}."):
            text("share-0.3", share)
    for share in (0, -1, 1.5):
        with pytest.raises(ConfigError, match=rf"corpus.share={share}.*above 0.* at most 1"):
            text("wrong", share)


def test_treebanks_are_split_by_the_names_of_their_files(tmp_path):
    block = "1\tSleep\tsleep\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No\n2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_\n"
    for name in ("xx_a-ud-train-c", "xx_a-ud-train-d", "xx_a-ud-dev", "xx_b-ud-test"):
        write(tmp_path, **{f"{name}__conllu": f"# newdoc\n\n{block}\n{block}\n# newdoc id = 2\n{block}"})
    write(tmp_path, notes__txt="Not of the treebank.")
    read = list(documents(corpus(tmp_path, group="conllu")))
    assert {(document.source, document.split) for document in read} == {
        ("xx_a-ud", "valid"), ("xx_a-ud-c", "train"), ("xx_a-ud-d", "train"), ("xx_b-ud", "test")
    }  # fmt: skip
    assert [document.sentences for document in read] == [["Sleep!"] * 2, ["Sleep!"]] * 4
    options = ["corpus.published_splits=false", "corpus.document_sentences=1"]
    whole = list(documents(corpus(tmp_path, *options, group="conllu")))
    assert [document.split for document in whole] == [None] * 12
    with pytest.raises(ConfigError, match=r"notes.txt: .*\.conllu"):
        list(documents(corpus(f"{tmp_path}/notes.txt", group="conllu")))
    assert [file.format for file in source_files(corpus(tmp_path))] == [".txt"]
