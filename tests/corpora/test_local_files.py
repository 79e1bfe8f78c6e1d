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


WIKI_DOCUMENTS = [["A fox is an animal.", "It runs."], ["It barks."], ["He is Dr. No."]]


def test_babylm_is_read_as_it_is_downloaded(babylm):
    """A line is running text; empty lines and headings begin documents; domain and split are in the name."""
    expected = [
        document
        for split in ("valid", "test", "train")  # in the order of the folders: dev, test, train_10M
        for document in (
            Document("childes", ["*MOT:\tlook at that . what is it ?", "*CHI:\ta dog ."], split),
            *(Document("simple_wiki", sentences, split) for sentences in WIKI_DOCUMENTS),
        )
    ]
    assert list(documents(corpus(babylm, group="babylm"))) == expected
    flat = babylm.parent / "flat"
    write(flat, **{file.name: file.read_text() for file in babylm.glob("*/*") if "MACOSX" not in str(file)})
    assert sorted(map(str, documents(corpus(flat, group="babylm")))) == sorted(map(str, expected))
    parts = f"[{babylm}/train_10M,{babylm}/dev,{babylm}/test]"
    assert list(documents(corpus(parts, group="babylm"))) == expected[8:] + expected[:8]
    for file in flat.iterdir():
        file.rename(f"{file}.txt")
    assert sorted(map(str, documents(corpus(flat, group="babylm")))) == sorted(map(str, expected))


def test_a_long_file_without_empty_lines_is_cut_into_documents(tmp_path):
    write(tmp_path, open_subtitles__train="Who is it? It's me.\n" * 130)
    sizes = [len(document.sentences) for document in documents(corpus(tmp_path, group="babylm"))]
    assert sizes == [100, 100, 60]


def test_the_two_sizes_of_babylm_are_not_read_together(babylm):
    write(babylm / "train_100M", childes__train=CHILDES)
    with pytest.raises(
        ConfigError, match=r"train_100M/childes\.train and .*train_10M/childes\.train must have different"
    ):
        source_files(corpus(babylm, group="babylm"))


def test_a_missing_split_is_drawn_from_train_and_said(tmp_path, capsys):
    write(tmp_path, a__train="".join(f"No {number}.\n\n" for number in range(400)), a__dev="Yes.\n")
    with_dev = list(documents(corpus(tmp_path, "corpus.split.valid=0.2", "corpus.split.test=0.2")))
    counts = {split: sum(document.split == split for document in with_dev) for split in ("train", "valid", "test")}
    assert counts["valid"] == 1
    assert 50 < counts["test"] < 110  # a fifth of 400, give or take 3.75 standard deviations
    assert "corpus local: no files of test; documents of *.train are drawn, 20.0% for test" in one_line(capsys)
    (tmp_path / "a.dev").unlink()
    assert {document.split for document in documents(corpus(tmp_path))} == {"train", "valid", "test"}
    assert "no files of valid and test; documents of *.train are drawn, 2.0% for valid and 2.0% for test" in one_line(
        capsys
    )


def one_line(capsys) -> str:
    return " ".join(capsys.readouterr().err.split())


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


def test_published_splits_can_be_read_as_one_text(babylm):
    read = list(documents(corpus(babylm, "corpus.published_splits=false")))
    assert {document.split for document in read} == {None}
    assert {document.source for document in read} == {"childes", "simple_wiki"}


def test_unclear_and_missing_files_are_refused_in_one_line(tmp_path):
    write(tmp_path / "mixed", a__train="A.\n", b__txt="B.\n")
    write(tmp_path / "dev", a__dev="A.\n")
    write(tmp_path / "plain", a__txt="A.\n")
    (tmp_path / "empty").mkdir()
    for path, error, message, group in (
        (
            "mixed",
            ConfigError,
            r"a\.train is of a split and .*b\.txt of none; .* corpus\.published_splits=false",
            "local",
        ),
        ("dev", ConfigError, r"no file of train next to .*a\.dev", "local"),
        ("plain", ConfigError, r"no \*\.train files, as of BabyLM's text data; see corpus=local", "babylm"),
        ("empty", InputError, r"no file that ends in \.txt, .*\.test in .*empty$", "local"),
        ("empty", InputError, r"in .*empty; a copy of its data set of the hub is corpus=babylm_hub", "babylm"),
        ("nowhere", InputError, r"no file or folder .*nowhere", "local"),
        ("'*.txt'", InputError, r"no file that ends in .*\*\.txt", "local"),
        ("[]", ConfigError, r"must be a file, a folder, a glob, or a list of them", "local"),
    ):
        where = path if path == "[]" else path.replace("'*", f"'{tmp_path}/*") if "*" in path else tmp_path / path
        with pytest.raises(error, match=message) as caught:
            list(documents(corpus(where, group=group)))
        assert "\n" not in str(caught.value)


def test_a_prepared_text_is_used_without_its_folder(babylm, monkeypatch, capsys):
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
    assert "corpus babylm: the text prepared from 6 files is used (corpus.path: no file or folder" in one_line(capsys)
    with pytest.raises(InputError, match="no file or folder"):
        describe_source(given, {})
    assert prepare(compose("corpora", ["corpus=babylm", "corpus.path=elsewhere"])).text.digest == digest


def test_a_share_of_documents_is_drawn_apart_from_splits_and_nested(tmp_path):
    write(tmp_path, text__txt="\n\n".join(f"Dogs number {n} sleep.\nThey dream." for n in range(400)))

    def text(name: str, share: float):
        words = [
            f"corpus.path={tmp_path}/text.txt",
            f"corpus.name={name}",
            f"corpus.share={share}",
            f"paths.store={tmp_path}/store",
        ]
        return prepare(compose("corpora", ["corpus=local", *words, "corpus.split.valid=0.2"])).text

    splits = {}
    for share in (0.1, 0.3, 1):
        store = text(f"share-{share}", share)
        begins = store.documents[:-1]
        splits[share] = dict(zip(store.sentences(begins), store.splits.tolist(), strict=True))
    assert splits[0.1].items() <= splits[0.3].items() <= splits[1].items()
    assert len(splits[1]) == 400
    assert 80 < len(splits[0.3]) < 160
    assert 40 < sum(split == SPLITS.index("valid") for split in splits[1].values()) < 120
    for share in (0.1, 1):
        with pytest.raises(
            StoreError, match=rf"prepared with corpus.share=0.3, now {'None' if share == 1 else share}; give"
        ):
            text("share-0.3", share)


@pytest.mark.parametrize("share", [0, -1, 1.5])
def test_a_share_is_above_0_and_at_most_1(tmp_path, share):
    with pytest.raises(ConfigError, match=rf"corpus.share={share}.*: must be .*above 0.* at most 1"):
        corpus(tmp_path, f"corpus.share={share}")


def test_treebanks_are_split_by_the_names_of_their_files(tmp_path):
    block = "1\tSleep\tsleep\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No\n2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_\n"
    for name in ("xx_a-ud-train-c", "xx_a-ud-train-d", "xx_a-ud-dev", "xx_b-ud-test", "notes"):
        if name != "notes":
            write(tmp_path, **{f"{name}__conllu": f"# newdoc\n\n{block}\n{block}\n# newdoc id = 2\n{block}"})
        write(tmp_path, **{f"{name}__txt": "Not of the treebank."})
    read = list(documents(corpus(tmp_path, group="conllu")))
    assert {(document.source, document.split) for document in read} == {
        ("xx_a-ud", "valid"), ("xx_a-ud-c", "train"), ("xx_a-ud-d", "train"), ("xx_b-ud", "test")
    }  # fmt: skip
    assert [document.sentences for document in read] == [["Sleep!"] * 2, ["Sleep!"]] * 4
    whole = list(
        documents(corpus(tmp_path, "corpus.published_splits=false", "corpus.document_sentences=1", group="conllu"))
    )
    assert [document.split for document in whole] == [None] * 12
    with pytest.raises(ConfigError, match=r"notes.txt: must end in .conllu; all but"):
        list(documents(corpus(f"{tmp_path}/notes.txt", group="conllu")))
    (tmp_path / "notes.txt").unlink()
    assert all(file.format == ".txt" for file in source_files(corpus(tmp_path)))
