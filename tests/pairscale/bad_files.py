"""Damaged files of a study, each with the error message that names the damage."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.torch import load_file, save_file

from analysis import accuracies, problems
from corpora.config import TokenizerConfig
from corpora.tokenizers import ListTokenizer
from eval.scores.files import _write, read_items, read_metadata, read_scores, write_table
from eval.scores.schemas import ITEMS, SCORES
from pairscale.errors import RunError
from pairscale.files import sha256_file
from tests.support.simulated_study import SimulatedStudy
from train.models.build import build_model
from train.models.config import LstmConfig
from train.runs.folder import RunFolder, study_runs
from train.runs.model_folder import load_model, save_model
from train.sweeps import requested_runs

DEEP = "[" * 100_000
STUDY = SimulatedStudy(
    models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1,), phenomena={"agreement": (1, 0.6, 0.05)}
)


def analyse(runs: Path) -> None:
    """Read a study as `python -m analysis` does, up to its judgements, and load the model of its first run."""
    for reason in problems(STUDY.name, folder=runs)["reason"]:
        raise RunError(reason)
    accuracies(STUDY.name, benchmark="blimp", method="lp", folder=runs)
    requested_runs(runs, STUDY.name)
    for folder in study_runs(runs, STUDY.name):
        folder.read_progress()
    load_model(first(runs).model)


def first(runs: Path) -> RunFolder:
    """Return the folder of the first run."""
    return RunFolder(sorted((runs / STUDY.name).glob("*/config.yaml"))[0].parent)


def write_study(runs: Path) -> Path:
    """Write a study of two finished, scored runs, the first with its model; return its folder of runs."""
    for folder in STUDY.write(runs)[:1]:
        text = {"name": "word", "kind": "word", "fit_on": "train", "fit_sentences": 1, "character_coverage": 1.0}
        tokenizer = ListTokenizer(TokenizerConfig(vocab_size=None, **text), ["a", "cat", "sleeps", "."])
        config = LstmConfig(name="lstm_tiny", embedding=4, hidden=4, layers=1, dropout=0.0, tied=False)
        save_model(folder.model, build_model(config, len(tokenizer)), config, tokenizer, {"sample_words": 125_000})
        path = folder.scores("blimp") / "lp.parquet"
        rows, metadata = read_scores(path)
        metadata["model"]["digest"] = sha256_file(folder.model.weights)
        write_table(path, rows, SCORES, metadata)
    return runs


def set_in(path: Path, place: str, value: object) -> None:
    """Change one value in a JSON file; `place` is its keys, separated by dots."""
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
    return lambda run: set_in(run.model.description, place, value)


def text(name: str, content: str | bytes):
    def write(run: RunFolder) -> None:
        path = run.path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def config(before: str, after: str):
    def change(run: RunFolder) -> None:
        text = run.config.read_text()
        assert before in text
        run.config.write_text(text.replace(before, after))

    return change


def scores(**columns: object):
    def change(run: RunFolder) -> None:
        path = run.scores("blimp") / "lp.parquet"
        rows, metadata = read_scores(path)
        table = pa.Table.from_pandas(rows[SCORES.names], schema=SCORES, preserve_index=False)
        for name, value in columns.items():
            values = table[name].to_pylist()
            values[0] = value
            kind = pa.string() if isinstance(value, str) else SCORES.field(name).type
            cells = [str(cell) for cell in values] if isinstance(value, str) else values
            table = table.set_column(SCORES.get_field_index(name), name, pa.array(cells, kind))
        _write(path, table, metadata)

    return change


def metadata(value: object):
    """Replace the metadata of a score file by `value`, or update its keys if `value` is a mapping."""

    def change(run: RunFolder) -> None:
        path = run.scores("blimp") / "lp.parquet"
        table = pq.read_table(path)
        content = {"version": 1, **read_metadata(path), **value} if isinstance(value, dict) else None
        text = str(value) if content is None else json.dumps(content)
        pq.write_table(table.replace_schema_metadata({"pairscale": text}), path)

    return change


def items(run: RunFolder) -> None:
    rows, metadata = read_items(run.scores("blimp"))
    rows.loc[0, "good"] = None
    write_table(run.scores("blimp") / "items.parquet", rows, ITEMS, metadata)


def weights(value: float):
    def change(run: RunFolder) -> None:
        tensors = load_file(run.model.weights)
        next(iter(tensors.values())).view(-1)[0] = value
        save_file(tensors, run.model.weights)
        set_in(run.model.description, "digest", sha256_file(run.model.weights))
        metadata({"model": {"name": "m", "digest": sha256_file(run.model.weights)}})(run)

    return change


def cut_short(run: RunFolder) -> None:
    run.model.weights.write_bytes(run.model.weights.read_bytes()[:-10])


def words(change: Callable[[str], str]):
    """Change a word list, and the digest that its description has of it."""

    def write(run: RunFolder) -> None:
        path = run.model.tokenizer / "vocab.txt"
        path.write_text(change(path.read_text()))
        set_in(run.model.tokenizer / "tokenizer.json", "digest", sha256_file(path))

    return write


def grid(content: str):
    return lambda run: text("../grid/a.json", content)(run)


def point(**values: object) -> str:
    one = {"point": "seed=1", "config": {"model": {"name": "m"}, "sample": {"size": "1k"}, "seed": 1}}
    return json.dumps({"version": 1, "command": "x", "benchmark": None, "runs": {"r": one}} | values)


# Name of the damage -> what does it to a run, and what the error names: the file, and the key if one is wrong.
FILES = {
    "manifest.json: nested deeply": (text("manifest.json", DEEP), "as JSON"),
    "manifest.json: a text for a number": (manifest("sample_words", "x"), "$.sample_words: expected int, got str"),
    "manifest.json: a number out of range": (manifest("sample_words", 0), "$.sample_words: expected int >= 1, got 0"),
    "manifest.json: NaN": (manifest("wall_s", math.nan), "$.wall_s: expected"),
    "manifest.json: a number of 5,000 digits": (text("manifest.json", '{"version": ' + "9" * 5000 + "}"), "Exceeds"),
    "config.yaml: no model": (config("model:", "module:"), "missing: model"),
    "config.yaml: anchors without end": (text("config.yaml", "a: &a [*a]"), "aliases (*a) are not supported"),
    "config.yaml: a size that is none": (config("size: 125k", "size: many"), "sample.size=many"),
    "config.yaml: a name leads out": (config("name: lstm_tiny", "name: ../x"), "the name of a folder, without /"),
    "pairscale.json: layers=10**9": (model("config.layers", 10**9), "$.config.layers: expected int <= 1000"),
    "pairscale.json: vocabulary=10**20": (model("vocabulary", 10**20), "$.vocabulary: expected int <="),
    "model.safetensors: cut short": (cut_short, "model.safetensors: this file was cut short or changed"),
    "model.safetensors: NaN": (weights(math.nan), "1 of the 24 weights in"),
    "tokenizer.json: garbage": (text("model/tokenizer/tokenizer.json", b"\xff\x00"), "tokenizer.json: "),
    "vocab.txt: changed, with a new digest": (
        words(lambda text: text.replace("cat", "dog")),
        "has changed since the model was trained with it",
    ),
    "tokenizer: missing": (lambda run: shutil.rmtree(run.model.tokenizer), "tokenizer.json: "),
    "vocab.txt: ids beyond the embedding": (words(lambda text: text + "zebra\n"), "tokenizer has 7 tokens, "),
    "metrics.csv: binary": (text("metrics.csv", bytes(range(256))), "metrics.csv: this file can't be read"),
    "metrics.csv: other columns": (text("metrics.csv", "a,b\n1,2\n"), "missing columns: step, valid_oov_rate"),
    "lp.parquet: NaN score": (scores(good=math.nan), "nan for pair 0 of agreement_1"),
    "lp.parquet: good of text": (scores(good="x"), "column good has the type string"),
    "lp.parquet: metadata no JSON": (metadata("{"), "as JSON"),
    "lp.parquet: policy a text": (metadata({"policy": "x"}), "lp.parquet: $.policy: expected object, got str"),
    "lp.parquet: of another model": (metadata({"model": {"name": "m", "digest": "0"}}), "scores of another model"),
    "items.parquet: a null sentence": (items, "items.parquet: column good is empty in 1 of"),
    "grid: a run that is a number": (grid(point(runs={"r": 3})), "$.runs[...]: expected object, got int"),
    "progress.json: a list": (text("progress.json", "[]"), "progress.json: $: expected object, got array"),
}
