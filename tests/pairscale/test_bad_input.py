"""Bad input of every kind: one line on stderr that names the file or the key, exit code 2, no traceback.

Files that are read back are damaged one at a time in a copy of one finished run, and read by the command that meets
them first; values are given on the command line. `python -m tests.pairscale.test_bad_input` prints the table
"input -> line".
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import shutil
import string
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import sentencepiece
from tokenizers import Regex
from tokenizers.normalizers import Replace
from tokenizers.pre_tokenizers import Split

from corpora.config import TokenizerConfig
from corpora.tokenizers import PieceTokenizer, load_tokenizer
from eval.benchmarks.load import load_benchmark
from eval.methods.templates import templates_of
from eval.questionnaire.forms import read_texts
from eval.scorers.tokens import HubTokens
from pairscale.command.compose import compose
from pairscale.command.errors import one_line_errors
from pairscale.command.main import main
from tests.support.bad_files import DEEP, FILES, analyse, first, write_study
from tests.support.small_pretrained import byte_level
from train.loop.state import newest_checkpoint
from train.models.build import build_model
from train.models.config import LstmConfig
from train.runs.folder import RunFolder

TRAIN = {
    "epochs=inf": (["recipe.budget.epochs=inf"], "recipe.budget.epochs=inf: must be"),
    "epochs=nan": (["recipe.budget.epochs=nan"], "recipe.budget.epochs=nan: must be"),
    "sample.seed=-3": (["sample.seed=-3"], "sample.seed=-3: must be"),
    "split.seed=-1": (["corpus.split.seed=-1"], "corpus.split.seed=-1: must be"),
    "corpus.seed=-1": (["corpus.seed=-1"], "corpus.seed=-1: must be"),
    "model.seed=-1": (["model.seed=-1"], "model.seed=-1: must be"),
    "recipe.seed=-1": (["recipe.seed=-1"], "recipe.seed=-1: must be"),
    "scoring.seed=-1": (["scoring.seed=-1"], "scoring.seed=-1: must be"),
    "a seed of 40 digits": (["model.seed=" + "9" * 40], "model.seed="),
    "a number of 5,000 digits": (["seed=" + "9" * 5000], "seed: its number has more than 4,300 digits"),
    "sample.size of 5,000 digits": (["sample.size=" + "9" * 5000 + "k"], "must be a whole number above 0"),
    "snapshots=10**9": (["trainer.snapshots=1000000000"], "trainer.snapshots="),
    "threads=10**20": (["trainer.threads=" + "1" + "0" * 20], "trainer.threads="),
    "context_tokens=10**9": (
        ["policy.context=eos", "policy.context_tokens=1000000000"],
        "context_tokens=",
    ),
    "context_tokens=-1": (["policy.context_tokens=-1"], "policy.context_tokens=-1: must be"),
    "hidden=10**12": (["model.hidden=1000000000000"], "model.hidden="),
    "layers=10**6": (["model.layers=1000000"], "model.layers=1000000: must be"),
    "layers=10**9": (["model.layers=1000000000"], "model.layers="),
    "a tokenizer of 10**20 pieces": (["tokenizer.vocab_size=1" + "0" * 20], "vocab_size="),
    "per_paradigm=10**9": (["benchmark=toy", "benchmark.per_paradigm=1000000000"], "benchmark.per_paradigm=1"),
    "min_lr=-1": (["recipe=adam_cosine", "recipe.min_lr=-1"], "recipe.min_lr=-1: must be"),
    "clip=inf": (["recipe.clip=inf"], "recipe.clip=inf: must be"),
    "pen_lp alpha NaN": (["method.pen_lp.alpha=nan"], "alpha=nan: must be"),
    "pen_lp alpha 1e99": (["method.pen_lp.alpha=1e99"], "alpha="),
    "model.name with ..": (["model.name=../../x"], "model.name=../../x: names a folder; must consist of letters"),
    "tokenizer.name with /": (["tokenizer.name=a/b"], "tokenizer.name=a/b: names a folder; must consist of letters"),
    "corpus.name with ..": (["corpus.name=.."], "corpus.name=..: names a folder"),
    "markup: a study [/x]": (["study='[/x]'"], "study=[/x]: names a folder"),
    "markup: a model :cat:": (["model.name=':cat:'"], "model.name=:cat:: names a folder"),
    "a study with $( )": (["study='a$(b)'"], "study=a$(b): names a folder"),
    "a study with +": (["study=a+b"], "study=a+b: names a folder"),
    "a study with a newline": (["study='a\nb'"], "study=a b: names a folder"),
    "a study of 300 characters": (["study=" + "x" * 300], "xxx: names a folder"),
}


def templates(path: str) -> None:
    templates_of("in_template_lp", "in_template", path, "en")


def form(path: str) -> None:
    read_texts(dataclasses.replace(compose("questionnaire", ["benchmark=toy"]).questionnaire, texts=path), "en")


TEXTS = {
    f"{what}: {kind}": (read, content, expected)
    for what, read in {"templates": templates, "questionnaire.texts": form}.items()
    for kind, (content, expected) in {
        "nested deeply": (DEEP, "YAML (line 1: nested more than 50 deep)"),
        "anchors without end": ("a: &a [*a]", "line 1: aliases (*a) are not read; write the value out"),
        "half a character": ('templates: ["\\ud800 {sentence}"]', "YAML ("),
    }.items()
}


def command(overrides: list[str], runs: Path, run=lambda config: None) -> tuple[object, str]:
    """Return the exit code and stderr of `python -m eval` with `run` for its work."""
    argv, errors = sys.argv, io.StringIO()
    here = [] if any(one.startswith("paths.runs=") for one in overrides) else [f"paths.runs={runs}"]
    study = [] if any(one.startswith("study=") for one in overrides) else ["study=mine"]
    sys.argv = ["eval", "model=lstm_tiny", "corpus=toy", *study, *here, *overrides]
    try:
        with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
            code: object = None
            try:
                main("eval", run)
            except SystemExit as end:
                code = end.code
    finally:
        sys.argv = argv
    return code, errors.getvalue()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("bad_input"))


def lines_of(work) -> tuple[object, str]:
    """Return the exit code and stderr of a command that does `work`."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), one_line_errors("pairscale"):
            work()
    except SystemExit as end:
        return end.code, errors.getvalue()
    return 0, errors.getvalue()


def read_damaged(name: str, study: Path, place: Path) -> tuple[object, str]:
    runs = Path(shutil.copytree(study, place / "runs"))
    FILES[name][0](first(runs))
    return lines_of(lambda: analyse(runs))


def text_of_users(name: str, place: Path) -> tuple[object, str]:
    read, content, _ = TEXTS[name]
    path = place / "mine.yaml"
    path.write_text(content)
    return lines_of(lambda: read(str(path)))


def check(code: object, printed: str, expected: str) -> None:
    assert code == 2, printed
    assert printed.count("\n") == 1, printed
    assert expected in printed
    assert "fault of pairscale" not in printed


def test_the_undamaged_study_is_read(study, tmp_path):
    assert lines_of(lambda: analyse(study)) == (0, "")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_message_of_one_line(name, study, tmp_path):
    check(*read_damaged(name, study, tmp_path), FILES[name][1])


@pytest.mark.parametrize("name", TRAIN)
def test_a_wrong_value_is_a_message_of_one_line(name, tmp_path):
    check(*command(TRAIN[name][0], tmp_path), TRAIN[name][1])


def test_a_folder_that_cannot_be_created_is_a_message_of_one_line(tmp_path):
    code, printed = command(["paths.runs=/proc/x"], tmp_path, lambda config: RunFolder.of(config).update_manifest())
    check(code, printed, "no folder can be created there")


def test_a_model_too_large_for_any_memory_is_refused(tmp_path):
    """Each width is allowed, but together they need hundreds of TB."""
    config = LstmConfig(name="large", embedding=8, hidden=100_000, layers=1000, dropout=0.0, tied=False)
    check(*lines_of(lambda: build_model(config, 50_000)), "weights over 50,000 tokens take")


@pytest.mark.parametrize("name", TEXTS)
def test_a_wrong_text_of_the_user_is_a_message_of_one_line(name, tmp_path):
    check(*text_of_users(name, tmp_path), TEXTS[name][2])


def normalizer_of_a_hub_model(place: Path) -> None:
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.normalizer = Replace(Regex(r"\p{L}"), "")
    HubTokens(tokenizer, "m", len(tokenizer))


def normalizer_of_pieces(place: Path) -> None:
    rules = "".join(f"{ord(letter):X}\t\n" for letter in string.ascii_letters)
    (place / "rules.tsv").write_text(rules)
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["1 2 3", "2 3 1"]), model_writer=trained, vocab_size=8, model_type="char",
        normalization_rule_tsv=str(place / "rules.tsv"), minloglevel=2,
        unk_id=1, bos_id=-1, eos_id=0, eos_piece="<eos>",
    )  # fmt: skip
    values = {"name": "bpe", "kind": "bpe", "fit_on": "train", "fit_sentences": 1, "character_coverage": 1.0}
    PieceTokenizer(TokenizerConfig(vocab_size=8, **values), trained.getvalue()).save(place / "tokenizer")
    load_tokenizer(place / "tokenizer")


def pattern_without_end(place: Path) -> None:
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.pre_tokenizer = Split(Regex("(a+)+$"), "isolated")
    list(HubTokens(tokenizer, "m", len(tokenizer)).encode(["a" * 40 + " d"]))


def checkpoint(name: str, data: bytes):
    def resume(place: Path) -> None:
        run = RunFolder(place / "run")
        run.checkpoint_folder.mkdir(parents=True)
        (run.checkpoint_folder / name).write_bytes(data)
        newest_checkpoint(run)

    return resume


def markup(name: str):
    """Return a function that reads a file of pairs whose name and paradigm are markup in a terminal."""

    def read(place: Path) -> None:
        (place / f"{name.replace('/', '')}.csv").write_text(f"good,bad,paradigm\na cat,,{name}\n")
        overrides = ["benchmark=local", "benchmark.name=mine", f"benchmark.path='{place}/{name.replace('/', '')}.csv'"]
        load_benchmark(compose("eval", overrides).benchmark)

    return read


# Name -> action in a folder, exit code, and part of the line. A run continues without a damaged checkpoint.
WORKS = {
    "tokenizer of the hub: a normalizer removes letters": (
        normalizer_of_a_hub_model, 2, "reads no letter of a plain sentence"
    ),
    "model.spm: its normalizer removes letters": (normalizer_of_pieces, 2, "its normalizer removes letters"),
    "tokenizer of the hub: a pattern without end": (pattern_without_end, 2, "a pattern of its tokenizer.json gives up"),
    "checkpoint: bytes changed": (
        checkpoint("5-" + "0" * 16 + ".ckpt", b"x"), 0, "its SHA-256 begins with 2d711642b726b044 (kept as *.damaged)"
    ),
    "checkpoint: empty": (checkpoint("5-" + "0" * 16 + ".ckpt", b""), 0, "starting again from the beginning"),
    "pairs: markup [/x]": (markup("[/x]"), 2, "[x].csv"),
    "pairs: markup [bold]x[/bold]": (markup("[bold]x[/bold]"), 2, "[bold]x[bold].csv"),
    "pairs: markup :cat:": (markup(":cat:"), 2, ":cat:.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKS)
def test_a_bad_tokenizer_checkpoint_or_markup_is_a_message_of_one_line(name, tmp_path):
    work, expected_code, expected = WORKS[name]
    code, printed = lines_of(lambda: work(tmp_path))
    assert (code, printed.count("\n")) == (expected_code, 1), printed
    assert expected in printed
    assert "fault of pairscale" not in printed


def test_any_other_error_is_a_message_of_one_line_and_a_traceback_file(tmp_path, monkeypatch):
    """`python -m train.lmplz`, which has no configuration, does the same."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, printed = lines_of(lambda: [][1])
    assert (code, printed.count("\n")) == (1, 1)
    (log,) = tmp_path.glob("pairscale-*.log")
    assert f"unexpected IndexError: list index out of range (a fault of pairscale; the traceback is in {log}" in printed
    assert "Traceback (most recent call last)" in log.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        study_ = write_study(Path(folder, "runs"))
        codes: list[object] = []
        for number, name_ in enumerate([*FILES, *TEXTS, *TRAIN, *WORKS]):
            place = Path(folder, str(number))
            place.mkdir()
            if name_ in FILES:
                code_, line = read_damaged(name_, study_, place)
            elif name_ in WORKS:
                code_, line = lines_of(partial(WORKS[name_][0], place))
            else:
                code_, line = text_of_users(name_, place) if name_ in TEXTS else command(TRAIN[name_][0], place)
            codes.append(code_)
            message = line.strip().replace(folder, "...") if line.count("\n") < 2 else line.strip().splitlines()[-1]
            print(f"{name_}\n    [{code_}] {message[:300]}")
        print(f"{len(codes)} bad inputs; exit codes: {Counter(codes)}")
