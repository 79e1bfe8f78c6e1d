"""Predictions that the evaluation pipelines of the BabyLM challenges write.

    MODEL/REVISION/zero_shot/BACKEND/TASK/DATA/predictions.json   {paradigm: {"predictions": [{"id", "pred"}]}}
    predictions.json.gz (2023, 2024), all of a submission         {"blimp": {paradigm: {"predictions": [...]}}, ...}

A prediction is the sentence that a model prefers. Which sentences are good is in the pairs (`results.pairs`): a file
PARADIGM.jsonl each, with sentence_good and sentence_bad. If it has as many lines as there are predictions, both are in
one order, as in the pipeline. Otherwise (all of BLiMP, of which the challenge has a part) each sentence is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.sources.rows import COLUMNS, check_cells, read_object, run_of
from analysis.sources.settings import ResultsConfig
from eval.benchmarks.files import file_rows
from pairscale.errors import ConfigError, InputError, first_few

ENDINGS = ("predictions.json", "predictions.json.gz", "preds.json", "preds.json.gz")


def babylm_rows(files: Sequence[Path], settings: ResultsConfig) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of files of predictions (rows.COLUMNS), and notes.

    Raises ConfigError without pairs, and InputError for other files and predictions of other pairs.
    """
    if settings.pairs is None:
        raise ConfigError(
            "source=babylm: give results.pairs=FOLDER with the pairs, such as evaluation_data/full_eval/blimp_filtered."
        )
    folder = Path(settings.pairs).expanduser()
    if not folder.is_dir():
        raise InputError(f"results.pairs={settings.pairs}: no such folder.")
    read_pairs = cache(_read_pairs)
    parts, notes, unplaced = [], [], []
    for file in files:
        data = read_object(file)
        entries = data.get(str(settings.benchmark), data)
        # By .name, a paradigm in a file leads to no other folder.
        pairs = {paradigm: folder / Path(f"{paradigm}.jsonl").name for paradigm in entries}
        if not any(place.is_file() for place in pairs.values()):
            continue  # of another task
        path = file.as_posix()
        placed = re.search(r"([^/]+)/([^/]+)/zero_shot/", path)
        model, revision = placed.groups() if placed else (file.name.partition(".")[0], "")
        try:
            run = run_of(file, model, revision, (revision, path), settings)
        except InputError as error:
            unplaced.append(str(error))
            continue
        for paradigm, said in _predictions(file, entries).items():
            rows, left_out = _judged(read_pairs(pairs[paradigm]), said, f"{file}: {paradigm}")
            parts.append(rows.assign(**run, paradigm=paradigm))
            notes += left_out
    if not parts:
        nothing = f"{first_few([str(file) for file in files], 1)}: no predictions of {settings.benchmark}."
        raise InputError(unplaced[0] if unplaced else nothing)
    rows = pd.concat(parts, ignore_index=True).assign(run="", method="prediction", n=1.0, tests=False)
    notes += [f"Left out: {reason}" for reason in unplaced]
    notes.append("The accuracies were read from predictions of the BabyLM pipeline, not from run folders.")
    return rows[COLUMNS], notes


def _predictions(file: Path, entries: Mapping[str, Any]) -> dict[str, pd.Series]:
    """Return the preferred sentences of each paradigm."""
    try:
        said = {paradigm: [one["pred"].strip() for one in of["predictions"]] for paradigm, of in entries.items()}
    except (AttributeError, KeyError, TypeError):
        said = {}
    if not said or not all(said.values()):
        raise InputError(f"{file}: each paradigm must have 'predictions', and each of these a sentence as its 'pred'.")
    return {paradigm: pd.Series(sentences, name="prediction", dtype=object) for paradigm, sentences in said.items()}


def _read_pairs(file: Path) -> pd.DataFrame:
    """Return the pairs of a paradigm: good, bad, phenomenon and pair."""
    rows: list[tuple[str, ...]] = []
    for where, row in file_rows(file):
        good, bad = row.get("sentence_good"), row.get("sentence_bad")
        if not isinstance(good, str) or not isinstance(bad, str):
            raise InputError(f"{where}: no sentence_good and sentence_bad.")
        rows.append((good.strip(), bad.strip(), row.get("linguistics_term") or "", str(row.get("pairID", len(rows)))))
    return pd.DataFrame(rows, columns=["good", "bad", "phenomenon", "pair"])


def _judged(pairs: pd.DataFrame, said: pd.Series, where: str) -> tuple[pd.DataFrame, list[str]]:
    """Return pair, phenomenon, accuracy and place of predictions of one paradigm, and a note on those left out."""
    sides = [pairs.assign(prediction=pairs[side], accuracy=right) for side, right in (("good", 1.0), ("bad", 0.0))]
    if len(pairs) == len(said):
        known = (said == pairs["good"]) | (said == pairs["bad"])
        judged = pairs.assign(accuracy=(said == pairs["good"]).astype(float))
    else:
        by_sentence = pd.concat(sides).reset_index()
        known = said.isin(by_sentence["prediction"])
        judged = by_sentence.drop_duplicates("prediction", keep=False).merge(said).sort_values("index")
    check_cells(said, known, pd.Series(where, said.index), "a sentence of its pair in results.pairs")
    left_out = len(said) - len(judged)
    because = f"{where}: {left_out} of {len(said)} predictions are left out, because several pairs have their sentence."
    return judged.assign(place=where), [because] if left_out else []
