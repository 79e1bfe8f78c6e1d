"""The annotate command: any number of processes, kills and resumes, trees of CoNLL-U, and what it refuses."""

import os
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

import corpora.annotate.processes
import corpora.annotate.run
from corpora.annotate.layer import part_path
from corpora.annotate.run import annotate
from corpora.prepare import corpus_folder, prepare
from corpora.sources.conllu import conllu_sentences
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError, StoreError
from tests.support.annotated import CONLLU
from tests.support.commands import Command, run_command
from tests.support.tiny_parser import spacy_pipeline

BLOCKS = CONLLU.rstrip().split("\n\n")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    return spacy_pipeline(tmp_path_factory.mktemp("spacy") / "model")


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(corpora.annotate.run, "PART_SENTENCES", 7)


def words_of(folder: Path, sentences: int, *overrides: object) -> list[str]:
    """Write a text of our own sentences and return the words of a command line for it."""
    texts = [sentence.text for sentence in conllu_sentences(write(folder, CONLLU))]
    file = folder / "text.txt"
    file.write_text("\n\n".join(f"{texts[n % 5]} {n}" for n in range(sentences)), encoding="utf-8")
    options = ["corpus=local", f"corpus.path={file}", "corpus.split.valid=0.2", f"paths.store={folder}/store"]
    return [*options, *map(str, overrides)]


def write(folder: Path, text: str, name: str = "gold.conllu") -> Path:
    (folder / name).write_text(text.rstrip() + "\n\n", encoding="utf-8")
    return folder / name


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("[!.]*"))}


@pytest.mark.slow
def test_processes_and_missing_parts_change_no_byte(tmp_path, pipeline, small_parts):
    config = compose("annotate", words_of(tmp_path, 40, f"parser.model={pipeline}", "processes=1"))
    layer = annotate(config)
    assert len(layer) == 40
    assert [tree.sentence for tree in layer.trees(range(40))] == list(layer.text.sentences(range(40)))
    written = files_of(layer.folder)
    assert len(written) == 8
    for processes, removed in ((1, ["part-00001.parquet", "part-00005.parquet"]), (2, list(written))):
        for name in {*removed, "manifest.json"}:
            (layer.folder / name).unlink()
        annotate(replace(config, processes=processes))
        assert files_of(layer.folder) == written


def test_a_finished_layer_is_not_parsed_again(tmp_path, pipeline, monkeypatch):
    config = compose("annotate", words_of(tmp_path, 9, f"parser.model={pipeline}", "processes=1"))
    first = annotate(config)
    monkeypatch.setattr(corpora.annotate.run, "load_parser", None)
    assert annotate(config).digest == first.digest


@pytest.mark.slow
def test_a_killed_command_goes_on_with_the_same_bytes(tmp_path, pipeline):
    words = words_of(tmp_path, 14_000, f"parser.model={pipeline}", "processes=2")
    folder = corpus_folder(compose("annotate", words)) / "annotation-spacy"
    process = Command("corpora.annotate", *words)
    while process.code is None and not list(folder.glob("part-*")):
        time.sleep(0.01)
    children = [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    process.kill(signal.SIGKILL)
    process.wait()
    killed = files_of(folder)
    assert 1 < len(killed) < 5
    assert "manifest.json" not in killed
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)  # they end with their parent
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    assert run_command("corpora.annotate", *words).returncode == 0
    resumed = files_of(folder)
    assert resumed.items() >= killed.items()
    for path in folder.iterdir():
        path.unlink()
    assert run_command("corpora.annotate", *words, "processes=1").returncode == 0
    assert files_of(folder) == resumed


def test_a_killed_process_raises_an_error(tmp_path, pipeline, small_parts, monkeypatch):
    config = compose("annotate", words_of(tmp_path, 40, f"parser.model={pipeline}", "processes=2"))
    monkeypatch.setattr(corpora.annotate.processes, "_call", os._exit)
    with pytest.raises(RunError, match="One of 2 processes was killed"):
        annotate(config)


def test_a_dry_run_says_what_is_there_and_writes_nothing(tmp_path, pipeline, small_parts, capsys):
    config = compose("annotate", words_of(tmp_path, 40, f"parser.model={pipeline}", "processes=1"))
    dry = replace(config, dry_run=True)
    annotate(dry)
    assert re.search(r"to be prepared: .*local/text\nto be parsed: .*local/annotation-spacy\n", capsys.readouterr().out)
    layer = annotate(config)
    (layer.folder / "manifest.json").unlink()
    part_path(layer.folder, 2).unlink()
    before = files_of(layer.folder)
    capsys.readouterr()
    annotate(dry)
    assert re.search(r"5 of 6 parts: .*\n.* \d+ words .* about .* words/s", capsys.readouterr().out)
    assert files_of(layer.folder) == before


def test_parts_of_another_model_are_not_mixed(tmp_path, pipeline, small_parts):
    words = words_of(tmp_path, 40, f"parser.model={pipeline}", "processes=1")
    layer = annotate(compose("annotate", words))
    other = spacy_pipeline(tmp_path / "other", updates=1)
    with pytest.raises(StoreError, match=r"made with model=.*Choose another parser.name"):
        annotate(compose("annotate", [*words, f"parser.model={other}"]))
    (layer.folder / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"made with model=.*Choose another parser.name"):
        annotate(compose("annotate", [*words, f"parser.model={other}", "dry_run=true"]))
    assert annotate(compose("annotate", [*words, f"parser.model={other}", "parser.name=other"])).name == "other"


def treebank(folder: Path, text: str, *overrides: str):
    write(folder, text, "mine-train.conllu")
    write(folder, BLOCKS[-1], "mine-dev.conllu")
    words = ["corpus=conllu", f"corpus.path={folder}", "parser=conllu", f"paths.store={folder}/store", "processes=1"]
    return compose("annotate", [*words, *overrides])


def test_a_treebank_brings_its_own_trees(tmp_path):
    layer = annotate(treebank(tmp_path, "\n\n".join(BLOCKS[:-1])))
    assert [tree.relations[0] for tree in layer.trees(range(5))] == ["nsubj", "det", "obj", "nsubj", "nsubj"]
    assert layer.manifest["words"] == 3 + 9 + 5 + 5 + 3
    sizes = layer.text.manifest["splits"]
    assert (sizes["train"]["documents"], sizes["valid"]["sentences"]) == (2, 1)
    assert layer.text.domains == ["mine"]


def test_a_share_of_a_treebank_has_the_trees_of_its_documents(tmp_path):
    texts = [f"# newdoc\n{BLOCKS[n % 5].replace('sleep', f'sleep{n}')}" for n in range(60)]
    config = treebank(tmp_path, "\n\n".join(texts), "corpus.share=0.4")
    layer = annotate(config)
    assert 10 < len(layer) < 45
    for tree in layer.trees(range(len(layer))):
        assert "".join(tree.words) == "".join(tree.sentence.split())


def test_trees_of_another_text_name_file_and_line(tmp_path):
    words = words_of(tmp_path, 6, "parser=conllu", f"parser.path={tmp_path}/gold.conllu", "processes=1")
    with pytest.raises(InputError, match=r'gold.conllu:1: .*"The fox .*\.", .* "The fox .*\. 0"'):
        annotate(compose("annotate", words))
    text = prepare(compose("annotate", words)).text
    lines = [f"# text = {sentence}\n1\t{sentence}\t_\tX\t_\t_\t0\troot\t_\t_" for sentence in text.sentences(range(6))]
    write(tmp_path, "\n\n".join(lines[:5]))
    with pytest.raises(InputError, match=r"gold.conllu: .* 5 sentences"):
        annotate(compose("annotate", words))
    write(tmp_path, "\n\n".join(lines))
    assert [tree.sentence for tree in annotate(compose("annotate", words)).trees([5])] == [text.sentence(5)]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("6\tnsubj:pass", "6\tnsubj:pass\t_", r":4: .* 11 columns"),
        ("3\tthat", "4\tthat", r":5: the id .* is 4"),
        ("3\tthat", "x\tthat", r":5: .*'x' is not a valid ID"),
        ("text = The fox", "text = The dog", r":1: \"# text = The dog .*\" does not match the words \"The fox"),
        ("2-3\tdon't", "2-9\tdon't", r":28: the last multi-word token lacks 4"),
        ("SpaceAfter=No\n9\t.\t.\tPUNCT", "SpaceAfter=No\n9\t.\t.\t_", r":11: this word has no upos"),
        ("2\tdet\t_\t_", "12\tdet\t_\t_", r":3: head 12"),
        ("2\tdet\t_\t_", "0\troot\t_\t_", r":1: this sentence has 2 roots"),
        ("NOUN\tNN\tNumber=Sing\t6", "NOUN\tNN\tNumber=Sing\t1", r":[34]: word [12] is among its own heads"),
    ],
)  # fmt: skip
def test_broken_conllu_is_refused_with_file_and_line(tmp_path, before, after, message):
    assert before in CONLLU
    with pytest.raises(InputError, match=r"mine-train.conllu.*" + message):
        annotate(treebank(tmp_path, CONLLU.replace(before, after, 1)))


def test_broken_input_ends_the_command_with_one_line(tmp_path):
    file = write(tmp_path, CONLLU.replace("3\tthat", "4\tthat"), "broken.conllu")
    words = ["corpus=conllu", f"corpus.path={file}", "parser=conllu", f"paths.store={tmp_path}/store"]
    done = run_command("corpora.annotate", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "broken.conllu:5: the id" in done.stderr


def test_only_a_treebank_has_trees_of_its_own(tmp_path):
    words = words_of(tmp_path, 6, "parser=conllu")
    with pytest.raises(ConfigError, match=r"parser.path: "):
        annotate(compose("annotate", words))
    with pytest.raises(InputError, match=r"parser.path=.*none.conllu: this file does not exist"):
        annotate(compose("annotate", [*words, f"parser.path={tmp_path}/none.conllu"]))


@pytest.mark.slow
def test_errors_of_a_model_reach_the_command_from_its_processes(tmp_path, pipeline, small_parts):
    folder = spacy_pipeline(tmp_path / "without", ("parser", "morphologizer"), updates=0)
    config = compose("annotate", words_of(tmp_path, 40, f"parser.model={folder}", "processes=2"))
    with pytest.raises(ConfigError, match=r"has no lemmatizer \(it has parser, morphologizer"):
        annotate(config)


def test_a_missing_model_is_refused_before_the_text_is_prepared(tmp_path):
    config = compose("annotate", words_of(tmp_path, 6, f"parser.model={tmp_path}/none"))
    with pytest.raises(InputError, match=r"parser.model=.*none"):
        annotate(config)
    assert not (tmp_path / "store").exists()
