"""Parsers trained on a small treebank of our own: scores, the folder in the store, and refusals."""

import itertools
import json
import random
from pathlib import Path

import pandas as pd
import pytest

from corpora.train_parser.run import PUBLISHED, train_parser
from corpora.train_parser.scores import METRICS
from corpora.train_parser.treebank import SPLITS, Treebank
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, StoreError

DETERMINERS = {"the": "Definite=Def", "a": "Definite=Ind"}
NOUNS = ["dog", "cat", "fox", "bird", "girl"]
VERBS = {"sees": "see", "likes": "like", "doesn't see": "see"}


def sentence(determiners, nouns, verb) -> str:
    """Return a sentence in CoNLL-U: "The dog doesn't see a cat."."""
    first, second = determiners
    negated = verb.startswith("doesn't")
    root = 5 if negated else 3
    rows = [
        (first.capitalize(), first, "DET", "DT", DETERMINERS[first], 2, "det", "_"),
        (nouns[0], nouns[0], "NOUN", "NN", "Number=Sing", root, "nsubj", "_"),
    ]
    if negated:
        rows.append(("does", "do", "AUX", "VBZ", "Tense=Pres", root, "aux", "_"))
        rows.append(("n't", "not", "PART", "RB", "Polarity=Neg", root, "advmod", "_"))
    rows.append((verb.split()[-1], VERBS[verb], "VERB", "VBZ", "Tense=Pres", 0, "root", "_"))
    rows.append((second, second, "DET", "DT", DETERMINERS[second], root + 2, "det", "_"))
    rows.append((nouns[1], nouns[1], "NOUN", "NN", "Number=Sing", root, "obj", "SpaceAfter=No"))
    rows.append((".", ".", "PUNCT", ".", "_", root, "punct", "_"))
    lines = ["\t".join(map(str, (place, *row[:7], "_", row[7]))) for place, row in enumerate(rows, start=1)]
    if negated:
        lines.insert(2, "3-4\tdoesn't" + "\t_" * 8)
    return "\n".join(lines) + "\n\n"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("treebank")
    pairs = list(itertools.product(DETERMINERS, repeat=2)), list(itertools.permutations(NOUNS, 2))
    sentences = [sentence(*parts) for parts in itertools.product(*pairs, VERBS)]
    random.Random(0).shuffle(sentences)
    for split, part in zip(SPLITS, (sentences[:180], sentences[180:210], sentences[210:]), strict=True):
        (folder / f"en_toy-ud-{split}.conllu").write_text("".join(part))
    return folder


def configured(treebank, tmp_path, *overrides):
    return compose("train_parser", [f"treebank={treebank}", f"paths.store={tmp_path}/store", "steps=36", *overrides])


@pytest.mark.slow
def test_a_parser_learns_a_small_treebank_and_is_read_back(treebank, tmp_path, capsys):
    config = configured(treebank, tmp_path)
    train_parser(config)
    printed = capsys.readouterr().out
    folder = tmp_path / "store" / "parsers" / "en_toy-ud"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["scores"]) == {f"{split} {given}" for split in ("dev", "test") for given in ("gold", "raw")}
    for name, values in manifest["scores"].items():
        assert set(values) == set(METRICS)
        assert values["words"] == 1, name  # spaCy cuts does n't as the treebank does
        assert values["las"] > 0.9, name
    las = manifest["scores"]["test raw"]["las"]
    assert f"{100 * las:.2f}" in printed
    assert [path.name for path in folder.parent.iterdir() if not path.name.endswith(".lock")] == ["en_toy-ud"]

    import spacy

    assert [token.lemma_ for token in spacy.load(folder)("The cat doesn't like a dog.")][2:5] == ["do", "not", "like"]
    train_parser(config)  # done already
    assert json.loads((folder / "manifest.json").read_text()) == manifest
    with pytest.raises(StoreError, match="trained with other seed; give name=NAME"):
        train_parser(configured(treebank, tmp_path, "seed=2"))


@pytest.mark.slow
def test_the_same_seed_trains_the_same_parser(treebank, tmp_path):
    weights = []
    for name in ("a", "b"):
        train_parser(configured(treebank, tmp_path, f"name={name}", "steps=6"))
        weights.append((tmp_path / "store" / "parsers" / name / "parser" / "model").read_bytes())
    assert weights[0] == weights[1]


def test_a_treebank_is_found_by_the_names_of_its_files(treebank, tmp_path):
    found = Treebank.of([str(treebank)])
    assert (found.name, found.language) == ("en_toy-ud", "en")
    assert [len(found.trees(split)) for split in SPLITS] == [180, 30, 30]
    files = [str(treebank / f"en_toy-ud-{split}.conllu") for split in SPLITS]
    assert Treebank.of(files) == found
    with pytest.raises(InputError, match=r"needs one \*-dev\.conllu, has no such file"):
        Treebank.of([files[0], files[2]])
    with pytest.raises(InputError, match=r"needs one \*-train\.conllu, has en_toy-ud-train\.conllu, en_toy-ud-train"):
        Treebank.of([str(treebank), files[0]])
    with pytest.raises(InputError, match="no file or folder nowhere"):
        Treebank.of(["nowhere"])


def test_broken_conllu_is_refused_by_file_and_line(treebank, tmp_path):
    for split in SPLITS:
        text = (treebank / f"en_toy-ud-{split}.conllu").read_text()
        (tmp_path / f"xy-{split}.conllu").write_text(text)
    broken = text.splitlines()
    broken[4] = broken[4].replace("\t", " ")
    (tmp_path / "xy-test.conllu").write_text("\n".join(broken))
    with pytest.raises(InputError, match=r"xy-test\.conllu:5: 1 columns"):
        train_parser(configured(tmp_path, tmp_path))
    (tmp_path / "xy-test.conllu").write_text(text)
    with pytest.raises(ConfigError, match="language=null: xy does not say it"):
        train_parser(configured(tmp_path, tmp_path))
    with pytest.raises(ConfigError, match="language=tlh: spaCy has no tokenizer"):
        train_parser(configured(tmp_path, tmp_path, "language=tlh"))


def test_a_treebank_must_be_given():
    with pytest.raises(ConfigError, match="treebank: not set"):
        compose("train_parser", [])
    for treebank in ("null", "[]", "{a:1}"):
        with pytest.raises(ConfigError, match=r"treebank=.*: must be"):
            compose("train_parser", [f"treebank={treebank}"])


def test_published_scores_have_their_sources():
    published = pd.read_csv(PUBLISHED)
    assert published["source"].str.len().gt(10).all()
    assert published["given"].isin(["gold words", "raw text"]).all()
    columns = [metric for metric in METRICS if metric in published]
    assert published[columns].stack().dropna().between(70, 100).all()
