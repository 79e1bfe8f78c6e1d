"""Score files of minimal pairs: which there are, whether they can be compared, and the accuracies that follow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analysis.study.run_folders import RUN_COLUMNS, Studies
from eval.benchmarks.known_items import REASONS, faulty_pairs
from eval.config import is_of_pairs
from eval.scores.accuracy import outcome, repeats_of, tied
from eval.scores.files import ITEMS, ITEMS_FILE, TOKENS_FILE, judged_pairs, read_items, read_metadata, read_score_table
from pairscale.errors import RunError
from pairscale.sizes import written
from train.runs.axes import flatten

COUNT, LEAVE_OUT = FAULTY_PAIRS = ("count", "leave_out")  # what happens to pairs that are known to be faulty
OF_MASKED = {"lp": "pll"}  # a method -> the one that stands for it in masked models (Salazar et al. 2020)
SCORE_COLUMNS = (
    "template", "trial", "good", "bad", "good_tokens", "bad_tokens", "good_words", "bad_words", "good_unk", "bad_unk",
)  # fmt: skip
FILE_COLUMNS = ("benchmark", "phenomenon", "paradigm", "method")
PAIR_COLUMNS = (
    *RUN_COLUMNS, *FILE_COLUMNS, "pair_id", "template", "trial", "good", "bad", "good_score", "bad_score", "correct",
    "good_tokens", "bad_tokens", "good_words", "bad_words", "good_unk", "bad_unk", "faulty",
)  # fmt: skip
TAKEN = {*PAIR_COLUMNS, "field", "row"}  # names that a user's own column can't have in the table of pairs

_KEY = ["paradigm", "pair_id"]
_OWN_PAIRS = re.compile(r"\+run-k\d+")
_AGAIN = "Remove the file and score the run again."
Key = tuple[str, str]  # study and run


@dataclass(frozen=True)
class ScoreFile:
    """The scores of one run, or of a snapshot of it, on one benchmark by one method; `row`: the run's in a table."""

    row: int
    path: Path
    metadata: dict[str, Any]

    @property
    def benchmark(self) -> str:
        return self.path.parent.name

    @property
    def method(self) -> str:
        return self.path.stem.partition("@")[0]

    @property
    def digest(self) -> str:
        return str(self.metadata["benchmark"]["digest"])

    @property
    def settings(self) -> dict[str, str]:
        """The scoring settings and the method's parameters, as text."""
        settings = flatten(self.metadata["policy"] | self.metadata["parameters"])
        return {name: written(value) for name, value in settings.items()}

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table of this file with the columns row, benchmark and method."""
        return table.assign(row=self.row, benchmark=self.benchmark, method=self.method)


def has_own_pairs(benchmark: str) -> bool:
    """Return True if each run was scored on generated pairs of its own sample's words."""
    return bool(_OWN_PAIRS.search(benchmark))


def methods_of_runs(found: Studies) -> dict[Key, dict[str, list[str]]]:
    """Return the methods by which each run was scored on each benchmark of pairs, without those of snapshots."""
    return {
        key: {benchmark: [path.stem for path in paths if "@" not in path.stem] for benchmark, paths in files.items()}
        for key, files in _paths(found).items()
    }


def _paths(found: Studies) -> dict[Key, dict[str, list[Path]]]:
    """Return the score files of each run by benchmark."""
    paths: dict[Key, dict[str, list[Path]]] = {}
    for key, folder in found.folders.items():
        paths[key] = {}
        for scores in sorted(folder.scores("").glob("*")):
            files = [path for path in sorted(scores.glob("*.parquet")) if path.name not in (ITEMS_FILE, TOKENS_FILE)]
            if files and is_of_pairs(scores.name):
                paths[key][scores.name] = files
    return paths


def score_files(found: Studies, benchmark: str | None, method: str | None, snapshots: bool = False) -> list[ScoreFile]:
    """Return the score files of the finished models, or of their snapshots, in the order of the runs.

    `benchmark` is the name of a benchmark or of a folder of scores, and None stands for all. Where a run lacks `method`
    and has the one that stands for it in masked models, that one is taken.

    Raises:
        RunError: without such scores of finished models, for scores of other weights than the run's, and if runs were
            scored on different versions of a benchmark, or under different settings with one tokenizer.
    """
    files, paths = [], _paths(found)
    for row, (key, of_run) in enumerate(paths.items()):
        own = found.folders[key].model_digest()
        for label, of_label in of_run.items():
            if benchmark not in (None, label, label.partition("+")[0]):
                continue
            methods = [path.stem.partition("@")[0] for path in of_label]
            wanted = method if method in methods else OF_MASKED.get(str(method))
            for path, name in zip(of_label, methods, strict=True):
                if method is None or name == wanted:
                    file = ScoreFile(row, path, read_metadata(path))
                    _check_model(file, own)
                    files.append(file)
    if not files:
        raise _no_scores(found, paths, benchmark, method)
    _check_versions(found, files)
    _check_settings(found, files)
    return [file for file in files if ("@" in file.path.stem) is snapshots]


def _check_model(file: ScoreFile, own: str | None) -> None:
    scored = file.metadata["model"]["digest"]
    if own is not None and scored != own and "@" not in file.path.stem:
        raise RunError(
            f"{file.path}: these are scores of another model (digest {scored[:8]}) than the run's ({own[:8]}). {_AGAIN}"
        )


def _no_scores(
    found: Studies, paths: Mapping[Key, Mapping[str, Sequence[Path]]], benchmark: str | None, method: str | None
) -> RunError:
    there: dict[str, set[str]] = {}
    for of_run in paths.values():
        for label, of_label in of_run.items():
            there.setdefault(label, set()).update(path.stem.partition("@")[0] for path in of_label)
    listed = "; ".join(f"{label} by {', '.join(sorted(methods))}" for label, methods in sorted(there.items()))
    wanted = " ".join(filter(None, [method, "scores", f"of {benchmark}" if benchmark else "of minimal pairs"]))
    remedy = f"There are scores of {listed}." if listed else f"Score its runs: python -m eval {found} benchmark=NAME"
    return RunError(f"{found}: no run has {wanted}. {remedy}")


def _check_versions(found: Studies, files: Sequence[ScoreFile]) -> None:
    """Raise RunError if runs were scored on different versions of a benchmark."""
    first: dict[str, ScoreFile] = {}
    for file in files:
        other = first.setdefault(file.benchmark, file)
        if other.digest != file.digest and not has_own_pairs(file.benchmark):
            versions = " and ".join(f"{one.digest[:8]} in {_run(found, one)}" for one in (other, file))
            problem = f"runs were scored on different versions of {file.benchmark} ({versions})"
            raise RunError(f"{found}: {problem}. Score the runs of one version again.")


def _check_settings(found: Studies, files: Sequence[ScoreFile]) -> None:
    """Raise RunError if runs of one tokenizer were scored under different settings."""
    first: dict[tuple[str, ...], ScoreFile] = {}
    for file in files:
        run = found.runs.loc[file.row]
        tokenizer = str(run["curve"] if pd.isna(run["tokenizer"]) else run["tokenizer"])
        other = first.setdefault((file.benchmark, file.method, tokenizer), file)
        differing = sorted(name for name, value in file.settings.items() if other.settings.get(name) != value)
        differing += sorted(other.settings.keys() - file.settings.keys())
        if differing:
            values = [f"{one.settings.get(differing[0], 'null')} in {_run(found, one)}" for one in (other, file)]
            problem = f"runs were scored under different settings ({differing[0]} is {' and '.join(values)})"
            raise RunError(f"{found}: {file.method} scores of {file.benchmark}: {problem}. Score one of them again.")


def _run(found: Studies, file: ScoreFile) -> str:
    run = found.runs.loc[file.row]
    return f"{run['study']}/{run['run']}" if len(found.names) > 1 else str(run["run"])


class Items:
    """The minimal pairs of one version of a benchmark that a method judges.

    Attributes:
        table: a row per pair: paradigm, pair_id, phenomenon, good, bad, field, faulty ("" or what is wrong with the
            pair), and the user's own columns.
        paradigms: a row per paradigm, with its phenomenon.
        codes: the row in `paradigms` of each pair.
    """

    def __init__(self, file: ScoreFile):
        """Read the pairs beside a score file. Raises RunError for a damaged file and for a pair that is named twice."""
        folder = file.path.parent
        items, _ = read_items(folder)
        items = items[judged_pairs(file.method, items)].reset_index(drop=True)
        self.index = pd.MultiIndex.from_frame(items[_KEY])
        if self.index.has_duplicates:
            twice = self.index[self.index.duplicated()][0]
            raise RunError(f"{folder / ITEMS_FILE}: has two pairs {twice[1]} of {twice[0]}. Score the run again.")
        faulty = faulty_pairs(file.benchmark.partition("+")[0], items)
        reasons = {tuple(key): REASONS[reason] for *key, reason in faulty[[*_KEY, "reason"]].to_numpy().tolist()}
        own = items[[name for name in items if name not in ITEMS.names]].apply(_numbers)
        own.columns = [f"item_{name}" if name in TAKEN else name for name in own]
        self.table = items[[*_KEY, "phenomenon", "good", "bad", "field"]].join(own)
        self.table["faulty"] = [reasons.get(key, "") for key in self.index]
        self.codes, _ = pd.factorize(items["paradigm"])
        self.paradigms = items[["phenomenon", "paradigm"]].drop_duplicates("paradigm", ignore_index=True)
        self._keys = [pa.array(items[name], pa.string()) for name in _KEY]

    def judgements(self, file: ScoreFile) -> list[pa.Table]:
        """Read scores in the order of `table`: one table, or one for each template or trial (SCORE_COLUMNS).

        Raises RunError for a damaged file, and for one that doesn't have the pairs that the method judges.
        """
        scores, _ = read_score_table(file.path, [*_KEY, *SCORE_COLUMNS])
        parts = [scores]
        if min(scores[name].null_count for name in ("template", "trial")) < len(scores):
            repeats = repeats_of(scores.select(["template", "trial"]).to_pandas())
            parts = [scores.filter(pa.array(rows)) for rows in repeats.values()]
        return [self._in_order(part, file).select(SCORE_COLUMNS) for part in parts]

    def _in_order(self, part: pa.Table, file: ScoreFile) -> pa.Table:
        if all(part[name].equals(pa.chunked_array([keys])) for name, keys in zip(_KEY, self._keys, strict=True)):
            return part
        order = self.index.get_indexer(pd.MultiIndex.from_frame(part.select(_KEY).to_pandas()))
        if len(order) != len(self.index) or (np.sort(order) != np.arange(len(order))).any():
            problem = f"has {len(order):,} rows that are not the {len(self.index):,} pairs of {file.benchmark}"
            raise RunError(f"{file.path}: {problem} that {file.method} judges. {_AGAIN}")
        return part.take(np.argsort(order))


def _numbers(cells: pd.Series) -> pd.Series:
    """Return a column of text as numbers if each cell that isn't empty is a number."""
    numbers = pd.to_numeric(cells, errors="coerce")
    return numbers if numbers.notna().equals(cells.notna()) else cells


def with_items(files: Sequence[ScoreFile]) -> Iterator[tuple[ScoreFile, Items]]:
    """Yield score files with their pairs, which are read once for all files of a version and a kind of method."""
    known: dict[tuple[str, str], Items] = {}
    for file in files:
        flagged = file.method if f"{file.method}_method" in ITEMS.names else ""
        if (key := (file.digest, flagged)) not in known:
            known[key] = Items(file)
        yield file, known[key]


def count_correct(files: Sequence[ScoreFile], ties: str, faulty: str, unknown_words: str = COUNT) -> pd.DataFrame:
    """Return one row per file (its place in `files`) and paradigm, with counts of its pairs.

    The counts are pairs, correct, ties and pairs_with_unk; of a method with templates or trials, means over these. Of
    generated pairs of each run's own words, only the paradigms are kept that all runs have. Pairs that are faulty, or
    contain an unknown word in any file, are counted or left out.
    """
    tables, known = [], list(with_items(files))
    unknown_in_any = _unknown_in_any(known) if unknown_words == LEAVE_OUT else {}
    for number, (file, items) in enumerate(known):
        kept = (items.table["faulty"] == "").to_numpy() | (faulty == COUNT)
        kept &= ~unknown_in_any.get(id(items), np.zeros(len(kept), dtype=bool))
        parts = items.judgements(file)
        counts = np.zeros((4, len(items.paradigms)))
        for part in parts:
            good, bad, *unknown = (part[name].to_numpy() for name in ("good", "bad", "good_unk", "bad_unk"))
            values = [kept, outcome(good, bad, ties), tied(good, bad), (unknown[0] > 0) | (unknown[1] > 0)]
            counts += [np.bincount(items.codes, kept * value, len(items.paradigms)) for value in values]
        names = ("pairs", "correct", "ties", "pairs_with_unk")
        table = items.paradigms.assign(**dict(zip(names, counts / len(parts), strict=True)), file=number)
        tables.append(file.named(table[table["pairs"] > 0]))
    return _shared_paradigms(pd.concat(tables, ignore_index=True)) if tables else pd.DataFrame()


def _unknown_in_any(known: Sequence[tuple[ScoreFile, Items]]) -> dict[int, npt.NDArray[np.bool_]]:
    """Return which pairs contain an unknown word in any file, by the identity of their items."""
    found: dict[int, npt.NDArray[np.bool_]] = {}
    for file, items in known:
        for part in items.judgements(file):
            unknown = (part["good_unk"].to_numpy() > 0) | (part["bad_unk"].to_numpy() > 0)
            found[id(items)] = found.get(id(items), np.zeros(len(unknown), dtype=bool)) | unknown
    return found


def _shared_paradigms(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out paradigms of generated pairs that some runs lack. Raises RunError if none is left."""
    own = table["benchmark"].map(has_own_pairs)
    files = table.groupby(["benchmark", "method"])["file"].transform("nunique")
    having = table.groupby(["benchmark", "method", "paradigm"])["file"].transform("nunique")
    kept = table[~own | (having == files)]
    lost = sorted(set(table["benchmark"]) - set(kept["benchmark"]))
    if lost:
        raise RunError(f"{lost[0]}: no paradigm has pairs in all runs, so they can't be compared.")
    return kept


def joined(found: Studies, tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Return tables of score files as one, with the columns of their runs in front of `columns`."""
    if not tables:
        return pd.DataFrame(columns=[*RUN_COLUMNS, *columns])
    table = pd.concat(tables, ignore_index=True)
    of_runs = found.runs[list(RUN_COLUMNS)].iloc[table.pop("row")].reset_index(drop=True)
    return pd.concat([of_runs, table.reset_index(drop=True)], axis=1).reindex(columns=[*RUN_COLUMNS, *columns])
