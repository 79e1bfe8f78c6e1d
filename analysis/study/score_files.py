"""Score files of minimal pairs: which there are, whether they can be compared, and the accuracies that follow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analysis.config import COUNT, FAULTY_PAIRS, LEAVE_OUT
from analysis.formats import rows_of
from analysis.study.run_folders import RUN_COLUMNS, Studies
from eval.benchmarks.known_items import REASONS, faulty_pairs
from eval.config import is_of_pairs
from eval.scores.accuracy import TIE_WORTH, outcome, repeats_of, tied
from eval.scores.files import ITEMS, ITEMS_FILE, TOKENS_FILE, judged_pairs, read_items, read_metadata, read_score_table
from pairscale.errors import RunError, check_choice
from pairscale.sizes import written
from train.runs.axes import flatten

STANDS_FOR = {"pll": "lp"}  # the method of masked models -> the one that it stands for (Salazar et al. 2020)
SCORE_COLUMNS = (
    "template", "trial", "good", "bad", "good_tokens", "bad_tokens", "good_words", "bad_words", "good_unk", "bad_unk",
)  # fmt: skip
FILE_COLUMNS = ("benchmark", "phenomenon", "paradigm", "method")
COUNT_COLUMNS = ("pairs", "correct", "ties", "pairs_with_unk")
PAIR_COLUMNS = (
    *RUN_COLUMNS, *FILE_COLUMNS, "pair_id", "template", "trial", "good", "bad", "good_score", "bad_score", "correct",
    "good_tokens", "bad_tokens", "good_words", "bad_words", "good_unk", "bad_unk", "faulty",
)  # fmt: skip

_TAKEN = {*PAIR_COLUMNS, "field", "file"}  # names that a user's own column can't have in the table of pairs
_KEY = ["paradigm", "pair_id"]
_AGAIN = "Remove the file and score the run again."


def has_own_pairs(benchmark: str) -> bool:
    """Return True if each run was scored on generated pairs of its own sample's words."""
    return bool(re.search(r"\+run-k\d+", benchmark))


def list_files(found: Studies) -> pd.DataFrame:
    """Return the score files of pairs in the order of the runs: row of a run, benchmark, method, path, is_snapshot."""
    rows = [
        (row, path.parent.name, path.stem.partition("@")[0], path, "@" in path.stem)
        for row, folder in enumerate(found.folders.values())
        for path in sorted(folder.scores("").glob("*/*.parquet"))
        if path.name not in (ITEMS_FILE, TOKENS_FILE) and is_of_pairs(path.parent.name)
    ]
    return pd.DataFrame(rows, columns=["row", "benchmark", "method", "path", "is_snapshot"]).astype(
        {"is_snapshot": bool}
    )


def score_files(found: Studies, benchmark: str | None, method: str | None, snapshots: bool = False) -> pd.DataFrame:
    """Return one row per score file of the finished models, or of their snapshots, in the order of the runs.

    `benchmark` is the name of a benchmark or of a folder of scores, and None stands for all. Where a run lacks `method`
    and has the one that stands for it in masked models, that one is taken.

    Returns:
        The columns of `found.runs` and `list_files`, digest (of the benchmark), settings (of the scores, as text by
        name), and of a snapshot its moment and the words that it has seen.

    Raises:
        RunError: without such scores of finished models, for scores of other weights than the run's, and if runs were
            scored on different versions of a benchmark, or under different settings with one tokenizer.
    """
    there = files = list_files(found)
    if benchmark is not None:
        files = files[files["benchmark"].eq(benchmark) | files["benchmark"].str.split("+").str[0].eq(benchmark)]
    if method is not None:
        has_method = files["method"].eq(method).groupby([files["row"], files["benchmark"]]).transform("any")
        files = files[files["method"].where(has_method, files["method"].replace(STANDS_FOR)).eq(method)]
    if files.empty:
        listed = there.groupby("benchmark")["method"].agg(lambda methods: ", ".join(sorted(set(methods))))
        known = "; ".join(f"{label} by {methods}" for label, methods in listed.items())
        wanted = " ".join(filter(None, [method, "scores of", benchmark or "minimal pairs"]))
        remedy = f"There are scores of {known}." if known else f"Score its runs: python -m eval {found} benchmark=NAME"
        raise RunError(f"{found}: no run has {wanted}. {remedy}")
    files = pd.concat([found.runs.loc[files["row"]].reset_index(drop=True), files.reset_index(drop=True)], axis=1)
    about = pd.DataFrame([read_metadata(path) for path in files["path"]])
    settings = [flatten(one.policy | one.parameters) for one in rows_of(about)]
    files["settings"] = pd.Series([{name: written(value) for name, value in one.items()} for one in settings])
    files["digest"], files["scored"] = (about[name].str.get("digest") for name in ("benchmark", "model"))
    files[["moment", "seen"]] = about.reindex(columns=["moment", "words_seen"])
    for file in rows_of(files[~files["is_snapshot"]]):
        own = found.folders[file.study, file.run].model_digest()
        if own not in (None, file.scored):
            problem = f"these are scores of another model ({file.scored[:8]}, not {own[:8]})"
            raise RunError(f"{file.path}: {problem}. {_AGAIN}")
    check_alike(found, files)
    return files[files["is_snapshot"] == snapshots]


def settings_of(files: pd.DataFrame) -> pd.DataFrame:
    """Return the scoring settings and the parameters of methods, one row per file, as text."""
    return pd.DataFrame(files["settings"].tolist(), files.index).fillna("null").sort_index(axis=1)


def check_alike(found: object, files: pd.DataFrame) -> None:
    """Raise RunError for different versions of a benchmark, and for different settings with one tokenizer.

    Args:
        found: the studies, as readers know them.
        files: study, run, curve, tokenizer, benchmark, method, digest and settings, as of `score_files`.
    """
    tokenizers = files["tokenizer"].fillna(files["curve"])
    versions = files["digest"].str[:8].mask(files["benchmark"].map(has_own_pairs))
    compared = [("versions of it", versions, [files["benchmark"]])]
    for name, values in settings_of(files).items():
        compared.append((f"settings of {name}", values, [files["benchmark"], files["method"], tokenizers]))
    for what, values, groups in compared:
        for (benchmark, *_), of_group in values.groupby(groups):
            different = of_group.drop_duplicates().dropna()
            if len(different) > 1:
                runs = files.loc[different.index, "study"] + "/" + files.loc[different.index, "run"]
                listed = " and ".join(f"{value} in {run}" for value, run in zip(different, runs, strict=True))
                problem = f"runs were scored on {benchmark} with different {what} ({listed})"
                raise RunError(f"{found}: {problem}. Score the runs of one of them again.")


class Items:
    """The minimal pairs of one version of a benchmark that a method judges.

    Attributes:
        table: a row per pair: paradigm, pair_id, phenomenon, good, bad, field, faulty ("" or what is wrong with the
            pair), and the user's own columns.
        paradigms: a row per paradigm, with its phenomenon.
        codes: the row in `paradigms` of each pair.
        are_faulty, have_unknown: of each pair; unknown words in any run, once `count_correct` has searched for them.
    """

    def __init__(self, file: Any):
        """Read the pairs of a row of `score_files`. Raises RunError for damage and for a pair that is named twice."""
        folder = file.path.parent
        items, _ = read_items(folder)
        items = items[judged_pairs(file.method, items)].reset_index(drop=True)
        self.index = pd.MultiIndex.from_frame(items[_KEY])
        if self.index.has_duplicates:
            twice = self.index[self.index.duplicated()][0]
            raise RunError(f"{folder / ITEMS_FILE}: has two pairs {twice[1]} of {twice[0]}. Score the run again.")
        faulty = faulty_pairs(file.benchmark.partition("+")[0], items).set_index(_KEY)["reason"].map(REASONS)
        own = items[[name for name in items if name not in ITEMS.names]].apply(_numbers)
        own.columns = [f"item_{name}" if name in _TAKEN else name for name in own]
        self.table = items[[*_KEY, "phenomenon", "good", "bad", "field"]].join(own)
        self.table["faulty"] = faulty.reindex(self.index).fillna("").to_numpy()
        self.are_faulty = self.table["faulty"].ne("").to_numpy()
        self.have_unknown = np.zeros(len(items), dtype=bool)
        self.codes, _ = pd.factorize(items["paradigm"])
        self.paradigms = items[["phenomenon", "paradigm"]].drop_duplicates("paradigm", ignore_index=True)
        self._keys = [pa.chunked_array([pa.array(items[name], pa.string())]) for name in _KEY]

    def judgements(self, file: Any) -> list[pa.Table]:
        """Read scores in the order of `table`: one table, or one for each template or trial (SCORE_COLUMNS).

        Raises RunError for a damaged file, and for one that doesn't have the pairs that the method judges.
        """
        scores, _ = read_score_table(file.path, [*_KEY, *SCORE_COLUMNS])
        parts = [scores]
        if min(scores[name].null_count for name in ("template", "trial")) < len(scores):
            repeats = repeats_of(scores.select(["template", "trial"]).to_pandas())
            parts = [scores.filter(pa.array(rows)) for rows in repeats.values()]
        return [self._in_order(part, file).select(SCORE_COLUMNS) for part in parts]

    def _in_order(self, part: pa.Table, file: Any) -> pa.Table:
        if all(part[name].equals(keys) for name, keys in zip(_KEY, self._keys, strict=True)):
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


def with_items(files: pd.DataFrame) -> Iterator[tuple[Any, Items]]:
    """Yield rows of `score_files` with their pairs, read once for all files of a version and a kind of method."""
    known: dict[tuple[Any, ...], Items] = {}
    for file in files.itertuples():
        flagged = file.method if f"{file.method}_method" in ITEMS.names else ""
        if (key := (file.digest, flagged)) not in known:
            known[key] = Items(file)
        yield file, known[key]


def count_correct(files: pd.DataFrame, ties: str, faulty: str, unknown_words: str = COUNT) -> pd.DataFrame:
    """Return one row per row of `files` and paradigm, with COUNT_COLUMNS and the columns of `files`.

    The counts of a method with templates or trials are means over these. Of generated pairs of each run's own words,
    only the paradigms are kept that all runs have. Pairs that are faulty, or contain an unknown word in any file, are
    counted or left out. Raises ConfigError for other values of the options, and RunError if no paradigm is left.
    """
    check_choice("ties", ties, TIE_WORTH)
    check_choice("faulty_pairs", faulty, FAULTY_PAIRS)
    check_choice("unknown_words", unknown_words, FAULTY_PAIRS)
    known, tables = list(with_items(files)), []
    for file, items in known if unknown_words == LEAVE_OUT else ():
        for part in items.judgements(file):
            items.have_unknown |= _have_unknown(part)
    for file, items in known:
        kept = ~items.have_unknown & (~items.are_faulty | (faulty == COUNT))
        parts = items.judgements(file)
        counts = np.zeros((len(COUNT_COLUMNS), len(items.paradigms)))
        for part in parts:
            good, bad = part["good"].to_numpy(), part["bad"].to_numpy()
            values = [kept, outcome(good, bad, ties), tied(good, bad), _have_unknown(part)]
            counts += [np.bincount(items.codes, kept * value, len(items.paradigms)) for value in values]
        means = pd.DataFrame(counts.T / len(parts), columns=list(COUNT_COLUMNS))
        tables.append(pd.concat([items.paradigms, means], axis=1).assign(file=file.Index))
    table = joined(files, tables)
    if table.empty:
        return table
    table = table[table["pairs"] > 0]
    groups = ["benchmark", "method"]
    having = table.groupby([*groups, "paradigm"])["file"].transform("nunique")
    is_shared = having == table.groupby(groups)["file"].transform("nunique")
    shared = table[is_shared | ~table["benchmark"].map(has_own_pairs)]
    if lost := sorted(set(table["benchmark"]) - set(shared["benchmark"])):
        raise RunError(f"{lost[0]}: no paradigm has pairs in all runs, so they can't be compared.")
    return shared.astype({"pairs": "Int64"}).reset_index(drop=True)


def _have_unknown(part: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which pairs contain an unknown word in either sentence."""
    either: npt.NDArray[np.bool_] = (part["good_unk"].to_numpy() > 0) | (part["bad_unk"].to_numpy() > 0)
    return either


def joined(files: pd.DataFrame, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables as one, each row with the columns of the row in `files` that its `file` names."""
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"file": []}, dtype=int)
    columns = [name for name in files if name not in table]
    return pd.concat([files.loc[table["file"], columns].reset_index(drop=True), table], axis=1)
