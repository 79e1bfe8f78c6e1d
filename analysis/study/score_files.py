"""Score files of minimal pairs: whether they can be compared, and the judgements and accuracies that follow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.config import COUNT, FAULTY_PAIRS, LEAVE_OUT
from analysis.formats import rows_of
from analysis.study.run_folders import RUN_COLUMNS, Studies
from eval.benchmarks.known_items import REASONS, faulty_pairs
from eval.scores.accuracy import TIE_WORTH, outcome, repeats_of, tied
from eval.scores.files import ITEMS, judged_pairs, read_items, read_score_table
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
    *SCORE_COLUMNS[4:], "faulty",
)  # fmt: skip

_TAKEN = {*PAIR_COLUMNS, "field", "file"}  # names that a user's own column can't have in the table of pairs
_KEY = ["paradigm", "pair_id"]
_KEY_SCHEMA = pa.schema([ITEMS.field(name) for name in _KEY])
_AGAIN = "Remove the file and score the run again."


def has_own_pairs(benchmark: str) -> bool:
    """Return True if each run was scored on generated pairs of its own sample's words."""
    return bool(re.search(r"\+run-k\d+", benchmark))


def score_files(found: Studies, benchmark: str | None, method: str | None, snapshots: bool = False) -> pd.DataFrame:
    """Return one row per score file of the finished models, or of their snapshots, in the order of the runs.

    `benchmark` is the name of a benchmark or of a folder of scores, and None stands for all. Where a run lacks `method`
    and has the one that stands for it in masked models, that one is taken.

    Returns:
        The columns of `found.runs` and `found.files`, digest (of the benchmark), settings (of the scores, as text by
        name), and moment (of a snapshot, whose run and sample_words are those of `analysis.trajectories`).

    Raises RunError as `analysis.accuracies` and `analysis.trajectories` do.
    """
    files = found.files
    if benchmark is not None:
        files = files[files["benchmark"].eq(benchmark) | files["benchmark"].str.split("+").str[0].eq(benchmark)]
    if method is not None:
        has_method = files["method"].eq(method).groupby([files["row"], files["benchmark"]]).transform("any")
        files = files[files["method"].where(has_method, files["method"].replace(STANDS_FOR)).eq(method)]
    if files.empty:
        known = "; ".join(sorted(set(found.files["benchmark"] + " by " + found.files["method"]))) or "none"
        wanted = " ".join(filter(None, [method, "scores of", benchmark or "minimal pairs"]))
        raise RunError(f"{found}: no run has {wanted}. There are: {known}. Score the runs with python -m eval.")
    files = files.join(found.runs.assign(own=found.details["digest"]), on="row").reset_index(drop=True)
    about = pd.DataFrame([found.metadata_of(path) for path in files["path"]])
    settings = [flatten(one.policy | one.parameters) for one in rows_of(about)]
    files["settings"] = pd.Series([{name: written(value) for name, value in one.items()} for one in settings])
    files["digest"], files["scored"] = (about[name].str.get("digest") for name in ("benchmark", "model"))
    is_other = files["own"].notna() & files["own"].ne(files["scored"]) & ~files["is_snapshot"]
    for file in rows_of(files[is_other]):
        problem = f"these are scores of another model ({file.scored[:8]}, not {file.own[:8]})"
        raise RunError(f"{file.path}: {problem}. {_AGAIN}")
    check_alike(found, files)
    if snapshots:
        about = about.reindex(columns=["moment", "words_seen"])
        files["moment"], files["sample_words"] = about["moment"], about["words_seen"].astype("Int64")
        files = files.assign(run=files["run"] + "@" + files["moment"].astype("str"), unit="words seen")
    files = files[files["is_snapshot"] == snapshots]
    for path in files.loc[files["sample_words"].isna() & snapshots, "path"]:
        raise RunError(f"{path}: doesn't say how many words the model had seen. {_AGAIN}")
    return files


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


def pairs_of(file: Any) -> pd.DataFrame:
    """Return the pairs of a row of `score_files` that its method judges.

    Their columns: paradigm, pair_id, phenomenon, good, bad, field, the user's own, and faulty ("" or what is wrong).
    """
    items, _ = read_items(file.path.parent)
    items = items[judged_pairs(file.method, items)].reset_index(drop=True)
    own = items[[name for name in items if name not in ITEMS.names]].apply(_numbers)
    own.columns = [f"item_{name}" if name in _TAKEN else name for name in own]
    faulty = faulty_pairs(file.benchmark.partition("+")[0], items).set_index(_KEY)["reason"].map(REASONS)
    table = items[[*_KEY, "phenomenon", "good", "bad", "field"]].join(own)
    return table.assign(faulty=faulty.reindex(pd.MultiIndex.from_frame(items[_KEY])).fillna("").to_numpy())


def _numbers(cells: pd.Series) -> pd.Series:
    """Return a column of text as numbers if each cell that isn't empty is a number."""
    numbers = pd.to_numeric(cells, errors="coerce")
    return numbers if numbers.notna().equals(cells.notna()) else cells


def by_pairs(files: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield the rows of `score_files` that have scores of the same pairs, after the table of `pairs_of`."""
    flagged = files["method"].where((files["method"] + "_method").isin(ITEMS.names), "")
    for _, of_pairs in files.groupby([files["digest"], flagged], sort=False, dropna=False):
        yield pairs_of(next(rows_of(of_pairs))), of_pairs


def read_judgements(pairs: pd.DataFrame, files: pd.DataFrame) -> Iterator[tuple[int, list[pa.Table]]]:
    """Yield the label of each row of `files` and its scores: SCORE_COLUMNS, in the order of the pairs that it judges.

    There is a table for each template or trial, where a method has them. Raises RunError for a damaged file, and for
    one that doesn't have just these pairs.
    """
    keys = pa.Table.from_pandas(pairs, _KEY_SCHEMA, preserve_index=False)
    for label, file in zip(files.index, rows_of(files), strict=True):
        scores, _ = read_score_table(file.path, [*_KEY, *SCORE_COLUMNS])
        parts = [scores]
        if min(scores[name].null_count for name in ("template", "trial")) < len(scores):
            repeats = repeats_of(scores.select(["template", "trial"]).to_pandas())
            parts = [scores.filter(pa.array(rows)) for rows in repeats.values()]
        for place, part in enumerate(parts):
            if not part.select(_KEY).equals(keys):
                wanted, there = (pd.MultiIndex.from_frame(table.select(_KEY).to_pandas()) for table in (keys, part))
                order = there.get_indexer(wanted) if there.is_unique else np.array([-1])
                if len(there) != len(wanted) or order.min() < 0:
                    problem = f"has {len(there):,} rows that are not the {len(wanted):,} pairs of {file.benchmark}"
                    raise RunError(f"{file.path}: {problem} that {file.method} judges. {_AGAIN}")
                parts[place] = part.take(order)
        yield label, [part.select(SCORE_COLUMNS) for part in parts]


def joined(files: pd.DataFrame, tables: Iterable[tuple[int, pd.DataFrame]]) -> pd.DataFrame:
    """Return tables as one, in the order of `files`; `file` is the label of a row there, whose columns follow."""
    ordered = [of.assign(file=file) for file, of in sorted(tables, key=itemgetter(0))]
    return pd.concat(ordered or [pd.DataFrame({"file": []}, dtype=int)], ignore_index=True).join(files, on="file")


def count_correct(files: pd.DataFrame, ties: str, faulty: str, unknown_words: str = COUNT) -> pd.DataFrame:
    """Return one row per row of `files` and paradigm, with COUNT_COLUMNS and the columns of `files`.

    The counts of a method with templates or trials are means over these. Of generated pairs of each run's own words,
    only the paradigms are kept that all runs have. Pairs that are faulty, or contain an unknown word in any file, are
    counted or left out. Raises ConfigError for other values of the options, and RunError if no paradigm is left.
    """
    check_choice("ties", ties, TIE_WORTH)
    check_choice("faulty_pairs", faulty, FAULTY_PAIRS)
    check_choice("unknown_words", unknown_words, FAULTY_PAIRS)
    if files.empty:
        return files
    tables = []
    for pairs, of_pairs in by_pairs(files):
        codes, _ = pd.factorize(pairs["paradigm"])
        paradigms = pairs[["phenomenon", "paradigm"]].drop_duplicates("paradigm", ignore_index=True)
        kept = pairs["faulty"].eq("").to_numpy() | (faulty == COUNT)
        if unknown_words == LEAVE_OUT:
            for _, parts in read_judgements(pairs, of_pairs):
                kept &= ~np.any([_values(part, ties)[-1] for part in parts], axis=0)
        for file, parts in read_judgements(pairs, of_pairs):
            counts = [[np.bincount(codes, kept * value) for value in _values(part, ties)] for part in parts]
            tables.append((file, paradigms.assign(**dict(zip(COUNT_COLUMNS, np.mean(counts, axis=0), strict=True)))))
    table = joined(files, tables)
    table = table[table["pairs"] > 0]
    groups = ["benchmark", "method"]
    having = table.groupby([*groups, "paradigm"])["file"].transform("nunique")
    is_shared = having == table.groupby(groups)["file"].transform("nunique")
    shared = table[is_shared | ~table["benchmark"].map(has_own_pairs)]
    if lost := sorted(set(table["benchmark"]) - set(shared["benchmark"])):
        raise RunError(f"{lost[0]}: no paradigm has pairs in all runs, so they can't be compared.")
    shared = shared.assign(accuracy=shared["correct"] / shared["pairs"]).astype({"pairs": "Int64"})
    return shared.reset_index(drop=True)


def _values(scores: pa.Table, ties: str) -> list[Any]:
    """Return what each pair adds to COUNT_COLUMNS."""
    good, bad, *unknown = (scores[name].to_numpy() for name in ("good", "bad", "good_unk", "bad_unk"))
    return [np.ones(len(good)), outcome(good, bad, ties), tied(good, bad), np.greater(unknown, 0).any(axis=0)]
