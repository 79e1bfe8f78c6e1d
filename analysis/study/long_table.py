"""Make the long table of a study from its run folders and score files. Only this module of the analysis reads scores.

    from analysis import accuracies
    accuracies("mine").groupby(["curve", "sample_words"])["accuracy"].mean()

docs/guides/table.md explains every column. The functions raise ConfigError if no study is chosen, and RunError if a
study doesn't exist or has no finished run.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.config import COUNT, LEAVE_OUT
from analysis.formats import rows_of
from analysis.study.run_folders import PROBLEM_COLUMNS, RUN_COLUMNS, Studies, read_studies
from eval.benchmarks import known_items
from eval.methods.method import methods
from eval.scores.accuracy import outcomes, repeats_of, tie_rule, tied
from eval.scores.files import judged_pairs, read_items, read_score_table, read_unavailable
from eval.scores.names import benchmark_name
from eval.scores.schemas import ITEMS
from pairscale.command.schemas import nearest
from pairscale.errors import RunError, check_choice, first_few
from pairscale.sizes import written
from train.runs.labels import flatten
from train.sweeps import requested_runs

STANDS_FOR = {"pll": "lp"}  # method of masked models -> method that it replaces (Salazar et al. 2020)
FILE_COLUMNS = ("benchmark", "phenomenon", "paradigm", "method")
COUNT_COLUMNS = ["pairs", "correct", "ties", "pairs_with_unk"]
SCORE_COLUMNS = [
    "template", "trial", "good", "bad", "good_tokens", "bad_tokens", "good_words", "bad_words", "good_unk", "bad_unk",
    "rival", "rivals",
]  # fmt: skip
ACCURACY_COLUMNS = (*RUN_COLUMNS, *FILE_COLUMNS, "pairs", "correct", "accuracy", "ties", "pairs_with_unk")
PAIR_COLUMNS = (
    *RUN_COLUMNS, *FILE_COLUMNS, "pair_id", "template", "trial", "good", "bad", "good_score", "bad_score", "correct",
    *SCORE_COLUMNS[4:], "faulty",
)  # fmt: skip

_OWN_PAIRS = "+run-k"  # marks benchmarks whose pairs are generated from the words of each run's sample
_TAKEN = {*PAIR_COLUMNS, "field", "file"}  # names that a user's own columns can't have in the table of pairs
_KEY = ["paradigm", "pair_id"]
_KEY_SCHEMA = pa.schema([ITEMS.field(name) for name in _KEY])
_ABOUT = ["policy", "parameters", "benchmark", "model", "moment", "words_seen"]  # metadata keys of a score file
_AGAIN = "Remove the file and score the run again."


def runs(*studies: str | Studies, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row per finished run, with RUN_COLUMNS and FURTHER_COLUMNS.

    Args:
        studies: Names of studies ("a+b" means two studies). To read the folders only once for several tables, pass the
            result of `read_studies`.
        folder: The folder of all studies (`paths.runs`).

    Returns:
        A table in which `sample_words` has the unit in the column `unit`, `valid_ppl` is the perplexity per reference
        word, and `wall_s` is the training time in seconds.
    """
    return read_studies(studies, folder).runs


def accuracies(
    *studies: str | Studies,
    benchmark: str | None = None,
    method: str | None = None,
    ties: str | None = None,
    faulty_pairs: str = COUNT,
    unknown_words: str = COUNT,
    snapshots: bool = False,
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and paradigm, with ACCURACY_COLUMNS. `accuracy` is from 0 to 1.

    Args:
        studies, folder: The same as for `runs`.
        benchmark: The benchmark to read, such as "blimp" (default: all).
        method: The judgment method to read, such as "lp" (default: all). Masked models don't have the log-probability
            of a sentence, so "lp" reads their "pll" instead, and the column `method` has the value "pll".
        ties: What a pair with two equal scores counts as: "wrong" (0), "right" (1), "half" (.5, or 1/k for a choice if
            k options share the best score), or "random:SEED", which draws with these probabilities. By default, the
            benchmark decides.
        faulty_pairs: Whether to "count" pairs with known faults, as in published results, or to "leave_out" these.
        unknown_words: Whether to "count" all pairs, or to "leave_out" those with a word that any run doesn't know.
        snapshots: Whether to return the table of `trajectories` instead.

    Raises:
        ConfigError: If the value of `ties`, `faulty_pairs` or `unknown_words` is unknown.
        RunError: If there are no such scores, if a file is damaged, or if scores can't be compared. Scores can't be
            compared if they are for weights other than the run's, or for different versions of a benchmark. The same is
            true if models with the same tokenizer were scored with different settings.
    """
    files = _score_files(read_studies(studies, folder), benchmark, method, snapshots)
    table = _count_correct(files, ties, faulty_pairs, unknown_words)
    return table.reindex(columns=[*ACCURACY_COLUMNS, *(["moment"] if snapshots else [])])


def trajectories(*studies: str | Studies, **options: Any) -> pd.DataFrame:
    """Return the accuracies of models at several moments of their training (column `moment`).

    The arguments and errors are the same as for `accuracies`. `sample_words` counts the words that the model had seen,
    including repeats, and `run` is RUN@MOMENT. The points of one training run depend on each other, so don't fit them
    together with other curves. The table is empty if no snapshot was scored.
    """
    return accuracies(*studies, snapshots=True, **options)


def pairs(
    *studies: str | Studies,
    benchmark: str | None = None,
    method: str | None = None,
    runs: Collection[str] | None = None,
    folder: str | Path = "runs",
) -> pd.DataFrame:
    """Return one row per run, benchmark, method and minimal pair, with PAIR_COLUMNS and the columns of your own pairs.

    A method with several templates or trials has one row for each of them. `good_score` and `bad_score` are the
    method's scores of the two sentences, such as log-probabilities in nats. If the name of one of your columns is
    already taken, the column is renamed to item_NAME.

    Args:
        studies, benchmark, method, folder: The same as for `accuracies`, which raises the same errors.
        runs: The names of the runs to read (default: all).
    """
    files = _score_files(read_studies(studies, folder), benchmark, method)
    files = files if runs is None else files[files["run"].isin(list(runs))]
    tables, names = {}, {"good": "good_score", "bad": "bad_score"}
    for items, of_items in _by_pairs(files):
        for file, parts in _read_judgements(items, of_items):
            scores = pd.concat([items.join(part.to_pandas().rename(columns=names)) for part in parts])
            tables[file] = scores.assign(correct=scores["good_score"] > scores["bad_score"])
    table = _join_tables(files[[*RUN_COLUMNS, "benchmark", "method"]], tables)
    others = {*PAIR_COLUMNS, "file", "ties", "unk_wrong"}
    own = [name for name in table if name not in others and table[name].notna().any()]
    return table.reindex(columns=[*PAIR_COLUMNS, *own]).reset_index(drop=True)


def problems(*studies: str | Studies, folder: str | Path = "runs") -> pd.DataFrame:
    """Return one row (study, run, status, reason) per run that is missing from other tables or lacks some scores.

    `status` is "missing" (a sweep requested the run, but it has no folder), "unfinished", "failed", "damaged", "shared"
    (an earlier run is the same model) or "unscored" (it lacks scores that other runs have).
    """
    found = read_studies(studies, folder)
    known = {*found.runs["run"], *found.problems["run"]}
    rows = [
        (study, request.point, "missing", "")
        for study in found.names
        for run, request in requested_runs(found.folder, study).items()
        if run not in known
    ]
    files = found.files[~found.files["is_snapshot"]]
    masked = files[files["method"].isin(STANDS_FOR)]  # only masked models have this method, and they have no other
    for (benchmark, method), of in files.groupby(["benchmark", files["method"].replace(STANDS_FOR)], sort=False):
        scored = {*of["row"], *masked.loc[masked["benchmark"] == benchmark, "row"]}
        unscored = rows_of(found.runs.drop(index=list(scored)))
        rows += [(run.study, run.run, "unscored", f"no {method} scores on {benchmark}") for run in unscored]
    return pd.concat([found.problems, pd.DataFrame(rows, columns=list(PROBLEM_COLUMNS))], ignore_index=True)


def notes(
    *studies: str | Studies, benchmark: str | None = None, method: str | None = None, folder: str | Path = "runs"
) -> list[str]:
    """Return notes for readers of the accuracies. The arguments are the same as for `accuracies`.

    The notes report different methods and settings, missing seeds, faulty pairs and checkpoints of a single training
    run.
    """
    found = read_studies(studies, folder)
    files, sentences = _score_files(found, benchmark, method), [*found.notes, *_uneven_seeds(found.runs)]
    if method is not None and (listed := _list_differences(files["method"], files["curve"])):
        sentences.append(
            f"Curves were scored with different methods: {listed}. Masked models don't have the log-probability of a "
            "sentence (lp). Their pll is the sum of the log-probabilities of tokens given all other tokens. Compare "
            "levels of accuracy with care."
        )
    for _, compared in files.groupby(["benchmark", "method"]):
        for name, values in _settings_of(compared).items():
            if listed := _list_differences(values, files["curve"]):
                sentences.append(
                    f"Curves were scored with different settings ({name}): {listed}. Compare their levels with care."
                )
    for file in rows_of(files.drop_duplicates("benchmark")):
        note = known_items.faulty_note(file.benchmark.partition("+")[0], _pairs_of(file))
        if _OWN_PAIRS in file.benchmark:
            paths = files.loc[files["benchmark"] == file.benchmark, "path"]
            lacking = ChainMap(*(read_unavailable(path.parent) for path in paths))
            note = "each run was scored on pairs of its own words, so only paradigms that all runs have are compared"
            note += "".join(f". Some runs lack the paradigm {name} ({why})" for name, why in sorted(lacking.items()))
        if note:
            sentences.append(f"{benchmark_name(file.benchmark)}: {note.removesuffix('.')}.")
    return list(dict.fromkeys(sentences))


def _uneven_seeds(runs: pd.DataFrame) -> list[str]:
    """List the sizes at which a curve lacks some of its seeds, unless every size has one run."""
    sentences = []
    for curve, of in runs[runs["baseline"].eq("") & runs["seed"].notna()].groupby("curve"):
        there = set(zip(of["size"], of["seed"], strict=True))
        wanted = product(of["size"].unique(), sorted(of["seed"].unique()))
        missing = [f"seed {seed} at {size}" for size, seed in wanted if (size, seed) not in there]
        if missing and of["size"].duplicated().any():
            sentences.append(f"{curve} has no finished run for {first_few(missing)}.")
    return sentences


def _score_files(found: Studies, benchmark: str | None, method: str | None, snapshots: bool = False) -> pd.DataFrame:
    """Return one row per score file of the finished models, or of their snapshots, in the order of the runs.

    `benchmark` is the name of a benchmark or of a folder of scores, and None reads all. If a masked model lacks
    `method`, the method that replaces it is read. Raises the same RunErrors as `accuracies`.

    Returns:
        The columns of `found.runs` and `found.files`, the benchmark's digest, the scoring settings (a dictionary of
        texts), and the moment of a snapshot. The run and sample_words of a snapshot are the same as in `trajectories`.
    """
    files = found.files
    if benchmark is not None:
        files = files[[benchmark in (label, label.partition("+")[0]) for label in files["benchmark"]]]
    if method is not None:
        has_method = files["method"].eq(method).groupby([files["row"], files["benchmark"]]).transform("any")
        files = files[files["method"].where(has_method, files["method"].replace(STANDS_FOR)).eq(method)]
    if files.empty:
        known = "; ".join(sorted(set(found.files["benchmark"] + " by " + found.files["method"]))) or "none"
        is_known = method is None or method in methods()
        remedy = "Score the runs with python -m eval." if is_known else nearest(str(method), set(found.files["method"]))
        raise RunError(
            f"{found}: no run has {method or 'any'} scores on {benchmark or 'minimal pairs'}. {remedy} Scores found: "
            f"{known}."
        )
    of_runs = found.runs.assign(weights=found.details["digest"])
    files = files[files["is_snapshot"] == snapshots].join(of_runs, on="row").reset_index(drop=True)
    about = pd.DataFrame([found.metadata_of(path) for path in files["path"]], columns=_ABOUT)
    settings = [flatten(one.policy | one.parameters) for one in rows_of(about)]
    for one in settings:
        if one.get("unigrams.of") == "sample":  # each run counts unigrams in its own sample
            del one["unigrams.digest"]
    files["settings"] = pd.Series([{name: written(value) for name, value in one.items()} for one in settings])
    files["digest"] = about["benchmark"].str.get("digest")
    if snapshots:
        names, words = files["run"] + "@" + about["moment"].astype("str"), about["words_seen"].astype("Int64")
        files = files.assign(run=names, sample_words=words, unit="words seen", moment=about["moment"])
        for path in files.loc[words.isna(), "path"]:
            raise RunError(f"{path}: this file doesn't record how many words the model had seen. {_AGAIN}")
    else:
        files["scored"] = about["model"].str.get("digest")
        for one in rows_of(files[files["weights"].notna() & files["weights"].ne(files["scored"])]):
            problem = f"these are scores of another model (digest {one.scored[:8]}, not {one.weights[:8]})"
            raise RunError(f"{one.path}: {problem}. {_AGAIN}")
    check_alike(found, files)
    return files


def check_alike(found: object, files: pd.DataFrame) -> None:
    """Raise RunError if runs were scored on different versions of a benchmark, or with different settings.

    Settings may differ between models with different tokenizers.

    Args:
        found: The studies, for the message.
        files: One row per score file, with the columns study, run, curve, tokenizer, benchmark, method, digest (of the
            benchmark) and settings (a dictionary of texts).
    """
    names, tokenizers = files["study"] + "/" + files["run"], files["tokenizer"].astype(object).fillna(files["curve"])
    digests = files["digest"].str[:8].mask(files["benchmark"].str.contains(_OWN_PAIRS, regex=False))
    compared = _settings_of(files).add_prefix("settings of ").assign(versions=digests)
    for what, values in compared.items():
        same = [files["benchmark"], *([] if what == "versions" else [files["method"], tokenizers])]
        for (benchmark, *_), of_group in values.groupby(same):
            if listed := _list_differences(of_group.drop_duplicates(), names):
                problem = f"runs were scored on {benchmark} with different {what} ({listed})"
                raise RunError(f"{found}: {problem}. Score one of these groups again.")


def _settings_of(files: pd.DataFrame) -> pd.DataFrame:
    """Return the scoring settings and method parameters as text, one row per file."""
    return pd.DataFrame(files["settings"].tolist(), files.index).fillna("null").sort_index(axis=1)


def _list_differences(values: pd.Series, names: pd.Series) -> str:
    """List the names with each value, such as "lp for a | b; pll for c". Return "" if all have the same value."""
    having = names.groupby(values).agg(lambda of: " | ".join(sorted(set(of))))
    return "; ".join(f"{value} for {of}" for value, of in having.items()) if len(having) > 1 else ""


def _pairs_of(file: Any) -> pd.DataFrame:
    """Return the pairs that the method of a score file (a row of `_score_files`) judges.

    The columns are paradigm, pair_id, phenomenon, good, bad, field, those of choices, the user's own columns, and
    faulty (what is wrong with the pair, or "").
    """
    items, _ = read_items(file.path.parent)
    items = items[judged_pairs(file.method, items)].reset_index(drop=True)
    own = items.drop(columns=ITEMS.names).rename(columns=lambda name: f"item_{name}" if name in _TAKEN else name)
    numbers = own.apply(pd.to_numeric, errors="coerce")
    own = own.assign(**numbers.loc[:, numbers.notna().eq(own.notna()).all()])
    faulty = known_items.faulty_pairs(file.benchmark.partition("+")[0], items).set_index(_KEY)["reason"]
    names = [*_KEY, "phenomenon", "good", "bad", "field", "options", "contexts", "gold", "ties", "unk_wrong"]
    table = items[names].join(own)
    return table.join(faulty.map(known_items.REASONS).rename("faulty"), on=_KEY).fillna({"faulty": ""})


def _by_pairs(files: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield each table of `_pairs_of` with the rows of `_score_files` that have scores of these pairs."""
    flagged = files["method"].where((files["method"] + "_method").isin(ITEMS.names), "")
    for _, of_items in files.groupby([files["digest"], flagged], sort=False, dropna=False):
        yield _pairs_of(next(rows_of(of_items))), of_items


def _read_judgements(items: pd.DataFrame, files: pd.DataFrame) -> Iterator[tuple[int, list[pa.Table]]]:
    """Yield the label of each row of `files` and its scores (SCORE_COLUMNS), in the order of the pairs.

    A method with templates or trials has a table for each of them. Raises RunError if a file is damaged, or if its
    pairs aren't exactly these.
    """
    keys = pa.Table.from_pandas(items, _KEY_SCHEMA, preserve_index=False)
    for label, file in zip(files.index, rows_of(files), strict=True):
        scores, _ = read_score_table(file.path, [*_KEY, *SCORE_COLUMNS])
        parts = [scores]
        if min(scores[name].null_count for name in ("template", "trial")) < len(scores):
            repeats = repeats_of(scores.select(["template", "trial"]).to_pandas())
            parts = [scores.filter(pa.array(rows)) for rows in repeats.values()]
        for place, part in enumerate(parts):
            if not part.select(_KEY).equals(keys):
                wanted, there = (pd.MultiIndex.from_frame(table.select(_KEY).to_pandas()) for table in (keys, part))
                if not (there.is_unique and there.sort_values().equals(wanted.sort_values())):
                    problem = f"this file doesn't contain exactly the {len(wanted):,} pairs of {file.benchmark}"
                    raise RunError(f"{file.path}: {problem} that {file.method} judges. {_AGAIN}")
                parts[place] = part.take(there.get_indexer(wanted))
        yield label, [part.select(SCORE_COLUMNS) for part in parts]


def _join_tables(files: pd.DataFrame, tables: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of all rows of `files`. `file` is the label of a row, followed by the row's columns."""
    ordered = {file: tables[file] for file in files.index} or {0: pd.DataFrame()}
    table: pd.DataFrame = pd.concat(ordered, names=["file"])
    return table.reset_index("file").join(files, on="file")


def _count_correct(files: pd.DataFrame, ties: str | None, faulty: str, unknown_words: str) -> pd.DataFrame:
    """Return one row per row of `files` and paradigm, with COUNT_COLUMNS and the columns of `files`.

    The counts of a method with templates or trials are means over these. If each run was scored on pairs of its own
    words, only the paradigms that all runs have are kept. Faulty pairs, and pairs with a word that any file marks as
    unknown, are counted or left out. Raises ConfigError if an option has an unknown value, and RunError if no paradigm
    is left.
    """
    check_choice("ties", (ties or "wrong").partition(":")[0], ("wrong", "half", "right", "random"))
    check_choice("faulty_pairs", faulty, (COUNT, LEAVE_OUT))
    check_choice("unknown_words", unknown_words, (COUNT, LEAVE_OUT))
    if files.empty:
        return files
    tables = {}
    for items, of_items in _by_pairs(files):
        codes, _ = pd.factorize(items["paradigm"])
        paradigms = items.drop_duplicates("paradigm").set_index(["phenomenon", "paradigm"]).index
        kept = items["faulty"].eq("").to_numpy() | (faulty == COUNT)
        if unknown_words == LEAVE_OUT:
            for _, parts in _read_judgements(items, of_items):
                kept &= ~np.any([_values(items, part, ties)[-1] for part in parts], axis=0)
        for file, parts in _read_judgements(items, of_items):
            counts = [[np.bincount(codes, kept * value) for value in _values(items, part, ties)] for part in parts]
            tables[file] = pd.DataFrame(np.mean(counts, axis=0).T, paradigms, COUNT_COLUMNS)
    table, groups = _join_tables(files, tables).query("pairs > 0").reset_index(), ["benchmark", "method"]
    having = table.groupby([*groups, "paradigm"])["file"].transform("nunique")
    is_shared = having == table.groupby(groups)["file"].transform("nunique")
    shared = table[is_shared | ~table["benchmark"].str.contains(_OWN_PAIRS, regex=False)]
    if lost := sorted(set(table["benchmark"]) - set(shared["benchmark"])):
        raise RunError(f"{lost[0]}: no paradigm has pairs in all runs. Compare fewer runs at a time.")
    shared = shared.assign(accuracy=shared["correct"] / shared["pairs"])
    return shared.astype({"pairs": "Int64"}).reset_index(drop=True)


def _values(items: pd.DataFrame, scores: pa.Table, ties: str | None) -> list[Any]:
    """Return what each pair adds to each of COUNT_COLUMNS."""
    names = ("good", "bad", "good_unk", "bad_unk", "rivals")
    table = {name: scores[name].to_numpy() for name in names}
    table |= {name: items[name] for name in (*_KEY, "ties", "unk_wrong")}
    unknown = np.greater([table["good_unk"], table["bad_unk"]], 0).any(axis=0)
    return [np.ones(len(scores)), outcomes(table, ties), tied(table["good"], table["bad"]), unknown]


def tie_and_chance(found: Studies, benchmark: str, ties: str | None = None) -> tuple[str, float]:
    """Return what a tie counts as (eval.scores.accuracy.tie_rule), and the accuracy of guessing.

    `benchmark` is the name of a folder of scores.

    Guessing is right in half of the pairs, and in 1/n of the choices among n. The mean is over paradigms.
    """
    path = found.files.loc[found.files["benchmark"] == benchmark, "path"].iloc[0]
    items, _ = read_items(path.parent)
    options = items["options"].str.len().fillna(2.0)
    return tie_rule(items, ties), float((1 / options).groupby(items["paradigm"]).mean().mean())
