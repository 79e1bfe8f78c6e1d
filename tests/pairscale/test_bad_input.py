"""Bad input of every kind: one line on stderr that names the file or the key, exit code 2, no traceback.

Files that are read back are damaged one at a time in a copy of one finished run, and read by the command that meets
them first; values are given on the command line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import shutil
import string
import sys
from pathlib import Path

import pytest
import sentencepiece

from corpora.config import TokenizerConfig
from corpora.tokenizers import PieceTokenizer, load_tokenizer
from eval.benchmarks.load import load_benchmark
from eval.methods.templates import templates_of
from eval.questionnaire.forms import read_texts
from pairscale.command.compose import compose
from pairscale.command.errors import one_line_errors
from pairscale.command.main import main
from tests.pairscale.bad_files import DEEP, FILES, analyse, first, write_study
from train.models.build import build_model
from train.models.config import LstmConfig
from train.runs.folder import RunFolder

VALUES = {
    "epochs=inf": (["recipe.budget.epochs=inf"], "recipe.budget.epochs=inf: "),
    "epochs=nan": (["recipe.budget.epochs=nan"], "recipe.budget.epochs=nan: "),
    "a seed of 40 digits": (["model.seed=" + "9" * 40], "model.seed="),
    "a number of 5,000 digits": (["seed=" + "9" * 5000], "4,300 digits"),
    "sample.size of 5,000 digits": (["sample.size=" + "9" * 5000 + "k"], "must be a whole number above 0"),
    "snapshots=10**9": (["trainer.snapshots=1000000000"], "trainer.snapshots="),
    "hidden=10**12": (["model.hidden=1000000000000"], "model.hidden="),
    "a tokenizer of 10**20 pieces": (["tokenizer.vocab_size=1" + "0" * 20], "vocab_size="),
    "pen_lp alpha NaN": (["method.pen_lp.alpha=nan"], "alpha=nan: "),
    "model.name with ..": (
        ["model.name=../../x"],
        "this is used as the name of a folder. Use letters",
    ),
    "corpus.name with ..": (["corpus.name=.."], "corpus.name=..: this is used as the name of a folder"),
    "markup: a study [/x]": (["study='[/x]'"], "study=[/x]: this is used as the name of a folder"),
    "a study with $( )": (["study='a$(b)'"], "study=a$(b): this is used as the name of a folder"),
    "a study with a newline": (["study='a\nb'"], "study=a b: this is used as the name of a folder"),
    "a study of 300 characters": (["study=" + "x" * 300], "xxx: this is used as the name of a folder"),
}


READERS = {
    "templates": lambda path: templates_of("in_template_lp", "in_template", path, "en"),
    "questionnaire.texts": lambda path: read_texts(
        dataclasses.replace(compose("questionnaire", ["benchmark=toy"]).questionnaire, texts=path), "en"
    ),
}
TEXTS = {
    "nested deeply": (DEEP, "nested more than 50"),
    "anchors without end": ("a: &a [*a]", "line 1: aliases (*a) are not supported"),
    "half a character": ('templates: ["\\ud800 {sentence}"]', "YAML ("),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("bad_input"))


def lines_of(work) -> tuple[object, str]:
    """Return the exit code and stderr of a command that does `work`."""
    errors = io.StringIO()
    code: object = 0
    with contextlib.redirect_stderr(errors):
        try:
            with one_line_errors("pairscale"):
                work()
        except SystemExit as end:
            code = end.code
    return code, errors.getvalue()


def check(code: object, printed: str, expected: str) -> None:
    assert code == 2, printed
    assert printed.count("\n") == 1, printed
    assert expected in printed
    assert "bug in pairscale" not in printed


def test_the_undamaged_study_is_read(study):
    assert lines_of(lambda: analyse(study)) == (0, "")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_message_of_one_line(name, study, tmp_path):
    damage, expected = FILES[name]
    runs = Path(shutil.copytree(study, tmp_path / "runs"))
    damage(first(runs))
    check(*lines_of(lambda: analyse(runs)), expected)


def command(monkeypatch, *overrides, work=lambda config: None):
    monkeypatch.setattr(sys, "argv", ["eval", "model=lstm_tiny", "corpus=toy", *overrides])
    return lines_of(lambda: main("eval", work))


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_value_is_a_message_of_one_line(name, tmp_path, monkeypatch):
    words, expected = VALUES[name]
    study = [] if "study" in words[0] else ["study=mine"]
    check(*command(monkeypatch, *study, f"paths.runs={tmp_path}", *words), expected)


def test_a_folder_that_cannot_be_created_is_a_message_of_one_line(monkeypatch):
    def write(config):
        RunFolder.of(config).update_manifest()

    check(*command(monkeypatch, "study=mine", "paths.runs=/proc/x", work=write), "this folder cannot be created")


def test_a_model_too_large_for_any_memory_is_refused(tmp_path):
    """Each width is allowed, but together they need hundreds of TB."""
    config = LstmConfig(name="large", embedding=8, hidden=100_000, layers=1000, dropout=0.0, tied=False)
    check(*lines_of(lambda: build_model(config, 50_000)), "with a vocabulary of 50,000, its")


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("reader", READERS)
def test_a_wrong_text_of_the_user_is_a_message_of_one_line(reader, name, tmp_path):
    content, expected = TEXTS[name]
    (tmp_path / "mine.yaml").write_text(content)
    check(*lines_of(lambda: READERS[reader](str(tmp_path / "mine.yaml"))), expected)


def test_a_tokenizer_whose_normalizer_removes_letters_is_a_message_of_one_line(tmp_path):
    (tmp_path / "rules.tsv").write_text("".join(f"{ord(letter):X}\t\n" for letter in string.ascii_letters))
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["1 2 3", "2 3 1"]), model_writer=trained, vocab_size=8, model_type="char",
        normalization_rule_tsv=str(tmp_path / "rules.tsv"), minloglevel=2,
        unk_id=1, bos_id=-1, eos_id=0, eos_piece="<eos>",
    )  # fmt: skip
    values = {"name": "bpe", "kind": "bpe", "fit_on": "train", "fit_sentences": 1, "character_coverage": 1.0}
    PieceTokenizer(TokenizerConfig(vocab_size=8, **values), trained.getvalue()).save(tmp_path / "tokenizer")
    check(*lines_of(lambda: load_tokenizer(tmp_path / "tokenizer")), "its normalizer removes letters")


@pytest.mark.parametrize("name", ["[bold]x[bold]", ":cat:"])
def test_names_that_are_markup_in_a_terminal_are_printed_as_they_are(name, tmp_path):
    (tmp_path / f"{name}.csv").write_text(f"good,bad,paradigm\na cat,,{name}\n")
    overrides = ["benchmark=local", "benchmark.name=mine", f"benchmark.path='{tmp_path}/{name}.csv'"]
    check(*lines_of(lambda: load_benchmark(compose("eval", overrides).benchmark)), f"{name}.csv")
