"""Predictions that the evaluation pipelines of the BabyLM challenges write.

    MODEL/REVISION/zero_shot/BACKEND/TASK/DATA/predictions.json   {paradigm: {"predictions": [{"id", "pred"}]}}
    predictions.json.gz (2023, 2024), all of a submission         {"blimp": {paradigm: {"predictions": [...]}}, ...}

A prediction is the sentence that a model prefers. Which sentences are good is in the pairs (`results.pairs`): a file
PARADIGM.jsonl each, with sentence_good and sentence_bad. If it has as many lines as there are predictions, both are in
one order, as in the pipeline. Otherwise (all of BLiMP, of which the challenge has a part) each sentence is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.sources.files import read_lines, read_object
from analysis.sources.published import BLIMP, COLUMNS, Outcomes
from analysis.sources.settings import ResultsConfig
from analysis.sources.sizes import parts_of, pattern_size, seed_of
from pairscale.errors import ConfigError, InputError, first_few

ENDINGS = ("predictions.json", "predictions.json.gz", "preds.json", "preds.json.gz")
_FOLDERS = ("zero_shot", "finetune")  # below MODEL/REVISION


def babylm_outcomes(files: Sequence[Path], settings: ResultsConfig) -> Outcomes:
    """Read the rows of files of predictions.

    Raises ConfigError without pairs, and InputError for other files and predictions of other pairs.
    """
    if settings.pairs is None:
        raise ConfigError(
            "source=babylm: give results.pairs=FOLDER with the pairs, such as evaluation_data/full_eval/blimp_filtered."
        )
    folder = Path(settings.pairs).expanduser()
    if not folder.is_dir():
        raise InputError(f"results.pairs={settings.pairs}: no such folder.")
    benchmark, pairs = settings.benchmark or BLIMP, _Pairs(folder)
    parts, unplaced, seeded = [], [], dict[str, bool]()
    for file in files:
        predictions = _predictions(file, benchmark)
        if predictions is None or not any(pairs.path(paradigm).is_file() for paradigm in predictions):
            continue  # of another task
        try:
            run, has_seed = _run(file, settings)
        except InputError as error:
            unplaced.append(str(error))
            continue
        seeded[run["model"]] = seeded.get(run["model"], False) or has_seed
        parts += [pairs.judged(paradigm, said, run, file) for paradigm, said in predictions.items()]
    if not parts:
        nothing = f"{first_few([str(file) for file in files], 1)}: no predictions of {benchmark}."
        raise InputError(unplaced[0] if unplaced else nothing)
    notes = [*pairs.notes, *(f"Left out: {reason}" for reason in unplaced)]
    rows = pd.concat(parts, ignore_index=True)[list(COLUMNS)]
    return Outcomes(rows, benchmark, "prediction", "predictions of the BabyLM pipeline", seeded, notes)


def _predictions(file: Path, benchmark: str) -> dict[str, list[str]] | None:
    """Return the preferred sentences by paradigm; None if a file has none of the benchmark."""
    data = read_object(file)
    of = data.get(benchmark, data)
    paradigms: dict[str, list[str]] = {}
    for paradigm, entry in of.items() if isinstance(of, dict) else ():
        said = entry.get("predictions") if isinstance(entry, dict) else None
        if not isinstance(said, list):
            return None
        sentences = [one.get("pred") if isinstance(one, dict) else None for one in said]
        if not all(isinstance(one, str) for one in sentences):
            raise InputError(f"{file}: {paradigm}: a prediction must have a sentence as its 'pred'.")
        paradigms[str(paradigm)] = [str(one).strip() for one in sentences]
    return paradigms or None


def _run(file: Path, settings: ResultsConfig) -> tuple[dict[str, Any], bool]:
    """Return model, removed, size and seed of a file, and if the seed is given. Raises InputError without a size."""
    places = [place for place, part in enumerate(file.parts) if part in _FOLDERS and place >= 2]
    model, revision = file.parts[places[-1] - 2 : places[-1]] if places else (file.name.partition(".")[0], "")
    parts = parts_of(file.as_posix(), settings, (revision,))
    if revision in (settings.sizes or {}):
        parts = {**parts, "size": revision}
    size = pattern_size(parts, settings, str(file))
    if size is None:
        reason = f"revision {revision} says no size" if revision else "nothing says its size"
        name = revision or "NAME"
        raise InputError(f"{file}: {reason}. Give results.sizes={{{name}:SIZE}} or results.size=SIZE.")
    run = {"model": parts.get("model") or model, "removed": "", "size": size, "seed": seed_of(parts, str(file))}
    return run, "seed" in parts


class _Pairs:
    """The pairs that predictions are about, each paradigm read once, and `notes` on predictions that are left out."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.notes: list[str] = []
        self._known: dict[str, list[dict[str, str]]] = {}

    def path(self, paradigm: str) -> Path:
        return self.folder / Path(f"{paradigm}.jsonl").name  # a name in a file leads nowhere else

    def judged(self, paradigm: str, said: Sequence[str], run: Mapping[str, Any], file: Path) -> pd.DataFrame:
        """Return rows (published.COLUMNS) of a run's predictions of one paradigm."""
        where = f"{file}: {paradigm}"
        pairs = self._read(paradigm, where)
        if not said:
            raise InputError(f"{where}: its list of predictions is empty, must have one for each pair.")
        if len(pairs) != len(said):
            judged = self._looked_up(pairs, said, where)
        else:
            judged = {place: float(one == pairs[place]["good"]) for place, one in enumerate(said)}
            wrong = [place for place, one in enumerate(said) if one not in (pairs[place]["good"], pairs[place]["bad"])]
            if wrong:
                raise InputError(f"{where}, prediction {wrong[0]}: not a sentence of the pair in results.pairs.")
        return pd.DataFrame({
            **run, "run": "", "paradigm": paradigm, "phenomenon": pairs[0]["phenomenon"],
            "pair": [pairs[place]["pair"] for place in judged], "accuracy": list(judged.values()), "n": 1.0,
            "tests": False, "place": where,
        })  # fmt: skip

    def _read(self, paradigm: str, where: str) -> list[dict[str, str]]:
        if paradigm not in self._known:
            if not self.path(paradigm).is_file():
                raise InputError(f"{where}: results.pairs has no {paradigm}.jsonl.")
            rows: list[dict[str, str]] = []
            for line, row in read_lines(self.path(paradigm)):
                good, bad = row.get("sentence_good"), row.get("sentence_bad")
                if not isinstance(good, str) or not isinstance(bad, str):
                    raise InputError(f"{line}: no sentence_good and sentence_bad.")
                phenomenon, pair = str(row.get("linguistics_term") or ""), str(row.get("pairID", len(rows)))
                rows.append({"good": good.strip(), "bad": bad.strip(), "phenomenon": phenomenon, "pair": pair})
            if not rows:
                raise InputError(f"{self.path(paradigm)}: contains no pairs.")
            self._known[paradigm] = rows
        return self._known[paradigm]

    def _looked_up(self, pairs: Sequence[Mapping[str, str]], said: Sequence[str], where: str) -> dict[int, float]:
        """Return the outcome of each predicted pair, found by its sentence; not of sentences of several pairs."""
        found: dict[str, list[tuple[int, float]]] = {}
        for place, pair in enumerate(pairs):
            found.setdefault(pair["good"], []).append((place, 1.0))
            found.setdefault(pair["bad"], []).append((place, 0.0))
        judged: dict[int, float] = {}
        for one in said:
            if one not in found:
                raise InputError(
                    f"{where}: {len(said)} predictions of other pairs than the {len(pairs)} in results.pairs."
                )
            if len(found[one]) == 1:
                place, right = found[one][0]
                if place in judged:
                    raise InputError(f"{where}: two predictions of pair {pairs[place]['pair']}, must be one.")
                judged[place] = right
        if len(judged) < len(said):
            left = len(said) - len(judged)
            self.notes.append(
                f"{where}: {left} of {len(said)} predictions are left out, because several pairs have their sentence."
            )
        return dict(sorted(judged.items()))
