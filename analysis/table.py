"""The long table of a study: its runs, their accuracies by paradigm, and their scores of single pairs.

    python -m analysis.table study=NAME what=accuracies output=FILE

From Python, each function reads run folders and score files, and returns a tidy DataFrame without a report:

    from analysis import accuracies
    accuracies("mine").groupby(["curve", "sample_words"])["accuracy"].mean()

docs/guides/table.md explains every column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.study.combine import names_of
from eval.config import is_of_pairs
from eval.scores.accuracy import TIE_WORTH, outcome, tied
from eval.scores.files import ITEMS_FILE, TOKENS_FILE, read_items, read_metadata, read_score_table
from pairscale.command.main import main
from pairscale.errors import ConfigError, check_choice
from pairscale.files import atomic_path
from pairscale.tables import write_csv
from train.runs.axes import labels
from train.runs.folder import DONE, RunFolder, study_runs
from train.runs.metrics import exported_validation

RUN_COLUMNS = (
    "study", "run", "curve", "model", "size", "sample_words", "seed", "tokenizer", "corpus", "nested", "sample",
    "overlap", "words_seen", "tokens", "parameters", "valid_ppl", "valid_pseudo_ppl", "valid_oov_rate", "words_per_s",
    "wall_s",
)  # fmt: skip
_OF_RUN = list(RUN_COLUMNS[:7])
_OF_FILE = ["benchmark", "phenomenon", "paradigm", "method"]
ACCURACY_COLUMNS = (*_OF_RUN, *_OF_FILE, "pairs", "correct", "accuracy", "ties", "pairs_with_unk")
PAIR_COLUMNS = (
    *_OF_RUN, *_OF_FILE, "pair_id", "template", "trial", "good", "bad", "good_score", "bad_score", "correct",
)  # fmt: skip
_KEY = ["paradigm", "pair_id"]


def runs(*studies: str, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row per finished run, with the columns of RUN_COLUMNS.

    Args:
        studies: names of studies, which are folders in `folder`.
        folder: where studies are (`paths.runs`).

    Returns:
        `curve` is the model's name, with whatever else differs between the runs besides size and seed. `sample_words`
        counts distinct training words and `words_seen` counts words with repeats. `sample` is the digest of the
        training sample: runs with equal digests read the same sentences. `valid_ppl` is per reference word. `overlap`
        is the share of text that two samples of this size have in common. `wall_s` counts seconds of training. A
        model that was not trained here has few values; `tokens` counts the tokens of its training, if known.

    Raises:
        ConfigError: without the name of a study.
        RunError: for a study without a folder, or a run with damaged files.
    """
    table = pd.DataFrame([run.row for run in _finished(studies, folder)], columns=list(RUN_COLUMNS))
    return _counted(table, "words_seen", "tokens", "parameters")


def accuracies(
    *studies: str,
    benchmark: str | None = None,
    method: str | None = None,
    ties: str = "wrong",
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and paradigm, with the columns of ACCURACY_COLUMNS.

    Args:
        studies: names of studies, which are folders in `folder`.
        benchmark: only this one, such as "blimp". Default: all.
        method: only this one, such as "lp". Default: all.
        ties: what a pair with two equal scores counts as: "wrong" (0), "half" (.5) or "right" (1).
        folder: where studies are (`paths.runs`).

    Returns:
        `accuracy` is `correct` divided by `pairs`. If a method has several templates or trials, each pair counts with
        its mean over them. `benchmark` is the name of the folder of scores, which also names scoring settings that
        differ from the default ones. `pairs_with_unk` counts pairs with an unknown word in either sentence.

    Raises:
        ConfigError: without the name of a study, or for another value of `ties`.
        RunError: for a study without a folder, or damaged files.
    """
    check_choice("ties", ties, TIE_WORTH)
    tables = []
    for file in _score_files(studies, folder, benchmark, method):
        scores = file.read(["paradigm", "template", "trial", "good", "bad", "good_unk", "bad_unk"])
        judged = pd.DataFrame({"paradigm": scores["paradigm"], "pairs": 1})
        judged["correct"] = outcome(scores["good"], scores["bad"], ties)
        judged["ties"] = tied(scores["good"], scores["bad"])
        judged["pairs_with_unk"] = scores["good_unk"].gt(0) | scores["bad_unk"].gt(0)
        repeats = max(1, scores["template"].nunique(), scores["trial"].nunique())
        table = judged.groupby("paradigm", as_index=False).sum()
        table[["pairs", "correct", "ties", "pairs_with_unk"]] /= repeats
        table["accuracy"] = table["correct"] / table["pairs"]
        table["phenomenon"] = table["paradigm"].map(file.items.groupby("paradigm")["phenomenon"].first())
        tables.append(file.with_origin(table))
    return _counted(_joined(tables, ACCURACY_COLUMNS), "pairs")


def pairs(
    *studies: str, benchmark: str | None = None, method: str | None = None, folder: str | Path = "runs"
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and minimal pair, with the columns of PAIR_COLUMNS.

    A method with several templates or trials has a row for each of them.

    Args:
        studies, benchmark, method, folder: see `accuracies`.

    Returns:
        `good` and `bad` are the sentences. `good_score` and `bad_score` are the method's scores of them, such as
        log-probabilities in nats. `correct` is True if the good sentence has the higher score.

    Raises:
        ConfigError: without the name of a study.
        RunError: for a study without a folder, or damaged files.
    """
    tables = []
    for file in _score_files(studies, folder, benchmark, method):
        scores = file.read([*_KEY, "template", "trial", "good", "bad"])
        scores = scores.rename(columns={"good": "good_score", "bad": "bad_score"})
        table = scores.merge(file.items[[*_KEY, "phenomenon", "good", "bad"]], on=_KEY, validate="many_to_one")
        table["correct"] = table["good_score"] > table["bad_score"]
        tables.append(file.with_origin(table))
    return _counted(_joined(tables, PAIR_COLUMNS))


@dataclass(frozen=True)
class _Run:
    """A finished run with its row of `runs`."""

    folder: RunFolder
    row: dict[str, Any]


@dataclass(frozen=True)
class _ScoreFile:
    """The scores of one run on one benchmark by one method, and the pairs of the benchmark."""

    run: _Run
    path: Path
    items: pd.DataFrame

    def read(self, columns: list[str]) -> pd.DataFrame:
        table: pd.DataFrame = read_score_table(self.path)[0].select(columns).to_pandas()
        return table

    def with_origin(self, table: pd.DataFrame) -> pd.DataFrame:
        origin = {name: self.run.row.get(name) for name in _OF_RUN}
        return table.assign(**origin, benchmark=self.path.parent.name, method=self.path.stem)


def _finished(studies: Sequence[str], folder: str | Path) -> list[_Run]:
    if not studies:
        raise ConfigError('Give the name of at least one study, as in accuracies("demo").')
    found = {}
    for study in studies:
        for run in study_runs(folder, study):
            manifest = run.read_manifest()
            if manifest.get("status") == DONE:
                found[study, run.path.name] = run, run.read_config(), manifest
    curves = _curves({key: (config, manifest.get("tokens")) for key, (_, config, manifest) in found.items()})
    return [
        _Run(run, {"study": key[0], "curve": curves[key], **_row(run, config, manifest)})
        for key, (run, config, manifest) in found.items()
    ]


def _row(run: RunFolder, config: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a finished run, but for its study and curve."""
    of_run = {"run": run.path.name, "model": _model_name(config)}
    if _comes_trained(config):
        return of_run | {name: manifest.get(name) for name in ("tokens", "parameters")}
    sample = manifest.get("corpus", {}).get("sample", {})
    validation = exported_validation(run.metrics, (config.get("recipe") or {}).get("export", "last"))
    measured = ("sample_words", "words_seen", "tokens", "parameters", "words_per_s", "wall_s")
    return {
        **of_run,
        "size": config["sample"]["size"],
        "seed": config["seed"],
        "tokenizer": config["tokenizer"]["name"],
        "corpus": config["corpus"]["name"],
        "nested": config["sample"].get("nested", False),
        "sample": sample.get("digest"),
        "overlap": sample.get("overlap"),
        **{name: manifest.get(name) for name in measured},
        **validation,
    }


def _comes_trained(config: dict[str, Any]) -> bool:
    return "path" in config["model"] or "checkpoint" in config["model"]


def _model_name(config: dict[str, Any]) -> str:
    """Return the model's name; for a model that comes trained, the last part of its path."""
    model = config["model"]
    path = model.get("path") or model.get("checkpoint")
    return Path(path).name if path else str(model["name"])


def _curves(found: dict[tuple[str, str], tuple[dict[str, Any], int | None]]) -> dict[tuple[str, str], str]:
    """Return the name of each run's curve, from its configuration and the tokens of its training.

    Models that come trained are told apart by what they are loaded with. Checkpoints whose tokens are known lie on one
    curve, whatever their revisions.
    """
    trained, others = {}, {}
    for key, (config, tokens) in found.items():
        run = "/".join(key)
        if not _comes_trained(config):
            trained[run] = config
            continue
        loaded = ("path", "dtype", "begin", "load_in_4bit", *(() if tokens else ("revision",)))
        model = {name: config["model"].get(name) for name in loaded} | {"name": _model_name(config)}
        others[run] = {"model": model, "sample": {"size": "1"}}  # `labels` reads a size
    names, pretrained = labels(trained)[0], labels(others)[0]
    taken = set(names.values())
    names |= {run: f"{name}, pretrained" if name in taken else name for run, name in pretrained.items()}
    return {key: names["/".join(key)] for key in found}


def _score_files(
    studies: Sequence[str], folder: str | Path, benchmark: str | None, method: str | None
) -> Iterator[_ScoreFile]:
    """Yield the score files of minimal pairs of the exported models, without those of snapshots."""
    known: dict[str, pd.DataFrame] = {}  # by digest: most runs of a study are scored on the same pairs
    for run in _finished(studies, folder):
        for scores in sorted(run.folder.scores("").glob("*")):
            if not is_of_pairs(scores.name) or benchmark not in (None, scores.name, scores.name.partition("+")[0]):
                continue
            files = [path for path in sorted(scores.glob("*.parquet")) if path.name not in (ITEMS_FILE, TOKENS_FILE)]
            files = [path for path in files if "@" not in path.stem and method in (None, path.stem)]
            if files:
                digest = read_metadata(scores / ITEMS_FILE)["benchmark"]["digest"]
                if digest not in known:
                    known[digest] = read_items(scores)[0]
                yield from (_ScoreFile(run, path, known[digest]) for path in files)


def _counted(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return a table whose counts are whole numbers, some of which may be missing."""
    return table.astype(dict.fromkeys(("sample_words", "seed", *columns), "Int64"))


def _joined(tables: list[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    empty = pd.DataFrame(columns=list(columns))
    return pd.concat(tables, ignore_index=True)[list(columns)] if tables else empty


TABLES = ("accuracies", "pairs", "runs")


def run(config: AnalysisConfig) -> None:
    """Write the table `config.what` of `config.study` as CSV or Parquet to `config.output`.

    Raises ConfigError without a study or an output, or for an unknown table or ending.
    """
    check_choice("what", config.what, TABLES)
    if config.study is None or config.output is None:
        raise ConfigError("Give study=NAME and output=FILE, a name that ends in .csv or .parquet.")
    if config.what != "accuracies" and config.ties != "wrong":
        raise ConfigError(f"ties={config.ties}: only what=accuracies counts ties; leave it out.")
    path = Path(config.output)
    if path.suffix not in (".csv", ".parquet"):
        raise ConfigError(f"output={config.output}: the name must end in .csv or .parquet.")
    studies = names_of(config.study, config.paths.runs)
    if config.what == "runs":
        table = runs(*studies, folder=config.paths.runs)
    elif config.what == "pairs":
        table = pairs(*studies, folder=config.paths.runs)
    else:
        table = accuracies(*studies, ties=config.ties, folder=config.paths.runs)
    if path.suffix == ".csv":
        write_csv(path, table)
    else:
        with atomic_path(path) as temporary:
            table.to_parquet(temporary, index=False)
    print(f"{len(table):,} rows in {path}")


if __name__ == "__main__":
    main("table", run)
