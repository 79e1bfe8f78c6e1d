"""Bad input of every kind: one line on stderr that names the file or the key, exit code 2, no traceback.

Files that are read back are damaged one at a time in a copy of one finished run, and read by the command that meets
them first; values are given on the command line. `python -m tests.test_bad_input` prints the table "input -> line".
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import conf
from corpora.config import TokenizerConfig
from corpora.files import sha256_file
from corpora.tokenizers import ListTokenizer
from eval.scores import ITEMS, SCORES, read_items, read_metadata, read_scores, write_table
from tests.made_up_study import MadeUpStudy
from train.config import LstmConfig
from train.export import load_model, save_model
from train.models import build_model
from train.runs import RunFolder

DEEP = "[" * 100_000
STUDY = MadeUpStudy(models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1,), phenomena={"agreement": (1, 0.6, 0.05)})


def analyse(runs: Path) -> None:
    """Read a study as `python -m analysis` does, up to its judgements, and the model of its first run."""
    from analysis.collect import collect
    from analysis.judgements import judgements
    from corpora.errors import RunError

    study = collect(runs, STUDY.name)
    for reason in study.problems["reason"]:
        raise RunError(reason)
    judgements(study, "blimp", "lp", "wrong")
    conf.asked_runs(runs, STUDY.name)
    for folder in study.folders.values():
        folder.read_progress()
    load_model(first(runs))


def first(runs: Path) -> RunFolder:
    return RunFolder(sorted((runs / STUDY.name).glob("*/config.yaml"))[0].parent)


def finished(runs: Path) -> Path:
    """Write a study of two runs that are done and scored; the first has its model."""
    for folder in STUDY.write(runs)[:1]:
        text = {"name": "word", "kind": "word", "fit_on": "train", "fit_sentences": 1, "character_coverage": 1.0}
        tokenizer = ListTokenizer(TokenizerConfig(vocab_size=None, **text), ["a", "cat", "sleeps", "."])
        config = LstmConfig(name="lstm_tiny", embedding=4, hidden=4, layers=1, dropout=0.0, tied=False)
        save_model(folder, build_model(config, len(tokenizer)), config, tokenizer, {"sample_words": 125_000})
        path = folder.scores("blimp") / "lp.parquet"
        rows, metadata = read_scores(path)
        metadata["model"]["digest"] = sha256_file(folder.weights)
        write_table(path, rows, SCORES, metadata)
    return runs


def set_in(path: Path, place: str, value: object) -> None:
    """Change one value in a JSON file; `place`: keys with dots between."""
    data = json.loads(path.read_text())
    inner = data
    *keys, last = place.split(".")
    for key in keys:
        inner = inner[key]
    inner[last] = value
    path.write_text(json.dumps(data))


def manifest(place: str, value: object):
    return lambda run: set_in(run.manifest, place, value)


def model(place: str, value: object):
    return lambda run: set_in(run.model, place, value)


def text(name: str, content: str | bytes):
    def write(run: RunFolder) -> None:
        path = run.path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def config(before: str, after: str):
    def change(run: RunFolder) -> None:
        there = run.config.read_text()
        assert before in there
        run.config.write_text(there.replace(before, after))

    return change


def scores(**columns: object):
    def change(run: RunFolder) -> None:
        path = run.scores("blimp") / "lp.parquet"
        rows, metadata = read_scores(path)
        import pyarrow as pa

        table = pa.Table.from_pandas(rows[SCORES.names], schema=SCORES, preserve_index=False)
        for name, value in columns.items():
            values = table[name].to_pylist()
            values[0] = value
            kind = pa.string() if isinstance(value, str) else SCORES.field(name).type
            cells = [str(cell) for cell in values] if isinstance(value, str) else values
            table = table.set_column(SCORES.get_field_index(name), name, pa.array(cells, kind))
        from eval.scores import _write

        _write(path, table, metadata)

    return change


def metadata(value: object):
    """Put `value` in the place of a score file's metadata; a mapping: change these keys of it."""

    def change(run: RunFolder) -> None:
        import pyarrow.parquet as pq

        path = run.scores("blimp") / "lp.parquet"
        table = pq.read_table(path)
        described = {"version": 1, **read_metadata(path), **value} if isinstance(value, dict) else None
        text = str(value) if described is None else json.dumps(described)
        pq.write_table(table.replace_schema_metadata({"pairscale": text}), path)

    return change


def items(run: RunFolder) -> None:
    rows, described = read_items(run.scores("blimp"))
    rows.loc[0, "good"] = None
    write_table(run.scores("blimp") / "items.parquet", rows, ITEMS, described)


def weights(value: float):
    def change(run: RunFolder) -> None:
        tensors = load_file(run.weights)
        next(iter(tensors.values())).view(-1)[0] = value
        save_file(tensors, run.weights)
        set_in(run.model, "digest", sha256_file(run.weights))
        metadata({"model": {"name": "m", "digest": sha256_file(run.weights)}})(run)

    return change


def cut_short(run: RunFolder) -> None:
    run.weights.write_bytes(run.weights.read_bytes()[:-10])


def vocabulary(run: RunFolder) -> None:
    path = run.tokenizer / "vocab.txt"
    path.write_text(path.read_text().replace("cat", "dog"))
    set_in(run.tokenizer / "tokenizer.json", "digest", sha256_file(path))


def grid(content: str):
    return lambda run: text("../grid/a.json", content)(run)


def point(**values: object) -> str:
    one = {"point": "seed=1", "config": {"model": {"name": "m"}, "sample": {"size": "1k"}, "seed": 1}}
    return json.dumps({"version": 1, "command": "x", "benchmark": None, "runs": {"r": one}} | values)


FILES = {
    "manifest.json: nested deeply": (text("manifest.json", DEEP), "manifest.json: not readable as JSON (nested too"),
    "manifest.json: corpus a text": (manifest("corpus", "x"), "$.corpus: expected object, got str"),
    "manifest.json: git a number": (manifest("git", 3), "$.git: expected object | null, got int"),
    "manifest.json: sample_words a text": (manifest("sample_words", "x"), "$.sample_words: expected int, got str"),
    "manifest.json: sample_words 0": (manifest("sample_words", 0), "$.sample_words: expected int >= 1, got 0"),
    "manifest.json: sample_words negative": (manifest("sample_words", -5), "expected int >= 1, got -5"),
    "manifest.json: parameters a list": (manifest("parameters", []), "$.parameters: expected int, got array"),
    "manifest.json: wall_s a text": (manifest("wall_s", "long"), "$.wall_s: expected float, got str"),
    "manifest.json: wall_s NaN": (manifest("wall_s", math.nan), "$.wall_s: expected"),
    "manifest.json: overlap 7": (manifest("corpus.sample.overlap", 7), "$.corpus.sample.overlap: expected float <= 1"),
    "manifest.json: a number of 5,000 digits": (
        text("manifest.json", '{"version": ' + "9" * 5000 + "}"),
        "Exceeds the",
    ),
    "config.yaml: no model": (config("model:", "module:"), "config.yaml: $: without model"),
    "config.yaml: model null": (text("config.yaml", "model: null\nsample: {}\nseed: 1"), "$.model: expected object"),
    "config.yaml: nested deeply": (text("config.yaml", DEEP), "nested more than 50 deep"),
    "config.yaml: anchors without end": (text("config.yaml", "a: &a [*a]"), "aliases (*a) are not read"),
    "config.yaml: a seed of text": (config("seed: 1", "seed: x"), "$.seed: expected int, got str"),
    "config.yaml: a size that is none": (
        config("size: 125k", "size: many"),
        "sample.size=many: must be a whole",
    ),
    "config.yaml: model.name leads out": (config("name: lstm_tiny", "name: ../x"), "a name of a folder, without /"),
    "config.yaml: tokenizer.name leads out": (config("name: unigram", "name: .."), "a name of a folder, without /"),
    "model.json: nested deeply": (text("model.json", DEEP), "model.json: not readable as JSON (nested too deeply)"),
    "model.json: layers=10**6": (model("config.layers", 10**6), "model.layers=1000000: must be from 1 to 1000"),
    "model.json: layers=10**9": (model("config.layers", 10**9), "model.layers=1e+09: must be from 1 to 1000"),
    "model.json: hidden=10**12": (model("config.hidden", 10**12), "model.hidden=1e+12: must be from 1 to 100000"),
    "model.json: hidden a text": (model("config.hidden", "x"), "$.config.hidden: expected int, got str"),
    "model.json: vocabulary=10**20": (model("vocabulary", 10**20), "$.vocabulary: expected int <="),
    "model.safetensors: cut short": (cut_short, "model.safetensors: its SHA-256"),
    "model.safetensors: NaN": (weights(math.nan), "1 of 24 weights that are NaN or infinite"),
    "model.safetensors: infinite": (weights(math.inf), "1 of 24 weights that are NaN or infinite"),
    "tokenizer.json: garbage": (text("tokenizer/tokenizer.json", b"\xff\x00"), "tokenizer.json: not readable as JSON"),
    "tokenizer.json: nested deeply": (text("tokenizer/tokenizer.json", DEEP), "tokenizer.json: not readable as JSON"),
    "vocab.txt: missing": (lambda run: (run.tokenizer / "vocab.txt").unlink(), "vocab.txt: cannot be read"),
    "vocab.txt: changed, with a new digest": (vocabulary, "is not the one that the model was trained with"),
    "metrics.csv: empty": (text("metrics.csv", ""), "metrics.csv: not readable (without the columns step"),
    "metrics.csv: binary": (text("metrics.csv", bytes(range(256))), "metrics.csv: not readable"),
    "metrics.csv: NUL": (text("metrics.csv", b"\0\1\2"), "metrics.csv: not readable"),
    "metrics.csv: other columns": (text("metrics.csv", "a,b\n1,2\n"), "without the columns step, valid_oov_rate"),
    "lp.parquet: NaN score": (scores(good=math.nan), "good is nan for pair 0 of agreement_1"),
    "lp.parquet: infinite score": (scores(bad=-math.inf), "bad is -inf for pair 0 of agreement_1"),
    "lp.parquet: null score": (scores(good=None), "good is missing for pair 0 of agreement_1"),
    "lp.parquet: null good_lp": (scores(good_lp=None), "good_lp is missing for pair 0"),
    "lp.parquet: good of text": (scores(good="x"), "column good is string, must be double"),
    "lp.parquet: metadata a list": (metadata("[]"), "lp.parquet: $: expected object, got array"),
    "lp.parquet: metadata no JSON": (metadata("{"), "lp.parquet: not readable as JSON"),
    "lp.parquet: metadata nested deeply": (metadata(DEEP), "not readable as JSON (nested too deeply)"),
    "lp.parquet: policy a text": (metadata({"policy": "x"}), "lp.parquet: $.policy: expected object, got str"),
    "lp.parquet: benchmark a text": (metadata({"benchmark": "x"}), "$.benchmark: expected object, got str"),
    "lp.parquet: of another model": (metadata({"model": {"name": "m", "digest": "0"}}), "scores of another model"),
    "items.parquet: a null sentence": (items, "items.parquet: 1 of its"),
    "grid: nested deeply": (grid(DEEP), "a.json: not readable as JSON (nested too deeply)"),
    "grid: a run that is a number": (grid(point(runs={"r": 3})), "$.runs[...]: expected object, got int"),
    "grid: command a list": (grid(point(command=[])), "$.command: expected str, got array"),
    "progress.json: a list": (text("progress.json", "[]"), "progress.json: $: expected object, got array"),
    "progress.json: text for a number": (text("progress.json", '{"words": "x"}'), "$.words: expected float | null"),
}
TRAIN = {
    "epochs=inf": (["recipe.budget.epochs=inf"], "recipe.budget.epochs=inf: must be from 0"),
    "epochs=nan": (["recipe.budget.epochs=nan"], "recipe.budget.epochs=nan: must be from 0"),
    "sample.seed=-3": (["sample.seed=-3"], "sample.seed=-3: must be a whole number from 0"),
    "split.seed=-1": (["corpus.split.seed=-1"], "corpus.split.seed=-1: must be a whole number from 0"),
    "corpus.seed=-1": (["corpus.seed=-1"], "corpus.seed=-1: must be a whole number"),
    "model.seed=-1": (["model.seed=-1"], "model.seed=-1: must be a whole number"),
    "recipe.seed=-1": (["recipe.seed=-1"], "recipe.seed=-1: must be a whole number"),
    "scoring.seed=-1": (["scoring.seed=-1"], "scoring.seed=-1: must be a whole number"),
    "a seed of 40 digits": (["model.seed=" + "9" * 40], "model.seed=1e+40: must be a whole number"),
    "a number of 5,000 digits": (["seed=" + "9" * 5000], "a number has more than 4,300 digits"),
    "sample.size of 5,000 digits": (["sample.size=" + "9" * 5000 + "k"], "must be a whole number above 0"),
    "snapshots=10**9": (["trainer.snapshots=1000000000"], "trainer.snapshots=1e+09: must be from 1 to 1000"),
    "threads=10**20": (["trainer.threads=" + "1" + "0" * 20], "trainer.threads=1e+20: must be from 1 to 4096"),
    "context_tokens=10**9": (
        ["policy.context=eos", "policy.context_tokens=1000000000"],
        "context_tokens=1e+09: must",
    ),
    "context_tokens=-1": (["policy.context_tokens=-1"], "policy.context_tokens=-1: must be from 1"),
    "hidden=10**12": (["model.hidden=1000000000000"], "model.hidden=1e+12: must be from 1 to 100000"),
    "layers=10**6": (["model.layers=1000000"], "model.layers=1000000: must be from 1 to 1000"),
    "layers=10**9": (["model.layers=1000000000"], "model.layers=1e+09: must be from 1 to 1000"),
    "a tokenizer of 10**20 pieces": (["tokenizer.vocab_size=1" + "0" * 20], "vocab_size=1e+20: must be from 1 to"),
    "per_paradigm=10**9": (["benchmark=toy", "benchmark.per_paradigm=1000000000"], "benchmark.per_paradigm=1"),
    "min_lr=-1": (["recipe=adam_cosine", "recipe.min_lr=-1"], "recipe.min_lr=-1: must be from 0"),
    "clip=inf": (["recipe.clip=inf"], "recipe.clip=inf: must be above 0"),
    "pen_lp alpha NaN": (["method.pen_lp.alpha=nan"], "alpha=nan: must be from 0 to 10"),
    "pen_lp alpha 1e99": (["method.pen_lp.alpha=1e99"], "alpha=1e+99: must be from 0 to 10"),
    "model.name with ..": (["model.name=../../x"], "model.name=../../x: names a folder; must be letters"),
    "tokenizer.name with /": (["tokenizer.name=a/b"], "tokenizer.name=a/b: names a folder; must be letters"),
    "corpus.name with ..": (["corpus.name=.."], "corpus.name=..: names a folder"),
    "a study with $( )": (["study='a$(b)'"], "study=a$(b): names a folder"),
    "a study with +": (["study=a+b"], "study=a+b: names a folder"),
    "a study with a newline": (["study='a\nb'"], "study=a b: names a folder"),
    "a study of 300 characters": (["study=" + "x" * 300], "xxx: names a folder"),
    "hydra.run.dir=/proc/x": (["hydra.run.dir=/proc/x"], "/proc/x: no folder can be made there"),
    "paths.runs=/proc/x": (["paths.runs=/proc/x"], "/proc/x: no folder can be made there"),
}


def command(overrides: list[str], runs: Path, run=lambda config: None) -> tuple[object, str]:
    """Exit code of `python -m train`, whose work is `run`, and what it writes to stderr."""
    argv, errors = sys.argv, io.StringIO()
    here = [] if any(one.startswith("paths.runs=") for one in overrides) else [f"paths.runs={runs}"]
    study = [] if any(one.startswith("study=") for one in overrides) else ["study=mine"]
    sys.argv = ["train", "model=lstm_tiny", "corpus=toy", *study, *here, *overrides]
    try:
        with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
            code: object = None
            try:
                conf.main("train", run)
            except SystemExit as end:
                code = end.code
    finally:
        sys.argv = argv
    return code, errors.getvalue()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("bad_input"))


def damaged(name: str, study: Path, place: Path) -> tuple[object, str]:
    runs = Path(shutil.copytree(study, place / "runs"))
    FILES[name][0](first(runs))
    return command([], place / "other", lambda config: analyse(runs))


def check(code: object, printed: str, expected: str) -> None:
    assert code == 2, printed
    assert printed.count("\n") == 1, printed
    assert expected in printed
    assert "fault of pairscale" not in printed


def test_the_study_itself_is_read(study, tmp_path):
    assert command([], tmp_path, lambda config: analyse(study)) == (0, "")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file(name, study, tmp_path):
    check(*damaged(name, study, tmp_path), FILES[name][1])


@pytest.mark.parametrize("name", TRAIN)
def test_a_value(name, tmp_path):
    check(*command(TRAIN[name][0], tmp_path), TRAIN[name][1])


def test_weights_that_no_memory_holds(tmp_path):
    """Each width is allowed, and together they take hundreds of TB."""
    config = LstmConfig(name="large", embedding=8, hidden=100_000, layers=1000, dropout=0.0, tied=False)
    code, printed = command([], tmp_path, lambda _: build_model(config, 50_000))
    check(code, printed, "weights over 50,000 tokens take")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        study_ = finished(Path(folder, "runs"))
        for number, name_ in enumerate([*FILES, *TRAIN]):
            place = Path(folder, str(number))
            place.mkdir()
            code_, line = damaged(name_, study_, place) if name_ in FILES else command(TRAIN[name_][0], place)
            kept = line.strip().replace(folder, "...") if line.count("\n") < 2 else line.strip().splitlines()[-1]
            print(f"{name_}\n    [{code_}] {kept[:300]}")
