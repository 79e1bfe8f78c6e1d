"""The source `babylm`: predictions that the evaluation pipelines of the BabyLM challenges write.

    MODEL/REVISION/zero_shot/BACKEND/TASK/DATA/predictions.json   {paradigm: {"predictions": [{"id", "pred"}]}}
    predictions.json.gz (2023, 2024), all of a submission         {"blimp": {paradigm: {"predictions": [...]}}, ...}

A prediction is the sentence that a model prefers: which sentences are good is said by the pairs (`results.pairs`), a
file PARADIGM.jsonl each, with sentence_good and sentence_bad. With as many lines as predictions, they are in one order,
as in the pipeline; else (the whole of BLiMP, of which the challenge has a part) each sentence is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.study.collect import Study
from analysis.study.sources.config import ResultsConfig
from analysis.study.sources.json_files import read_lines, read_object
from analysis.study.sources.outcomes import BLIMP, COLUMNS, Outcomes, outcome_judgements, study_of
from analysis.study.sources.paths import given_paths, study_name
from analysis.study.sources.sizes import fixed_size, named_size, parts_of, pattern_size, seed_of, size_of
from analysis.study.sources.source import source
from pairscale.errors import ConfigError, InputError, first_few

METHOD = "prediction"
_UNREAD = ("results.full", "results.metric", "results.n", "results.percent")
_FOLDERS = ("zero_shot", "finetune")  # below MODEL/REVISION
_ENDINGS = ("predictions.json", "predictions.json.gz", "preds.json", "preds.json.gz")


@source("babylm", judge=outcome_judgements, keys=("path", "results"), unread=_UNREAD)
def from_babylm(config: AnalysisConfig) -> list[Study]:
    """Read the study of the predictions at `config.path`.

    Raises ConfigError without a path or pairs, InputError for other files, and for predictions that are not of the
    pairs.
    """
    files = given_paths(config.path, "babylm", _ENDINGS)
    if config.results.pairs is None:
        raise ConfigError(
            "source=babylm: give results.pairs=FOLDER, the pairs (evaluation_data/full_eval/blimp_filtered)"
        )
    folder = Path(config.results.pairs).expanduser()
    if not folder.is_dir():
        raise InputError(f"results.pairs={config.results.pairs}: no such folder")
    benchmark = config.results.benchmark or BLIMP
    pairs = _Pairs(folder)
    parts, problems = [], []
    seeds: dict[str, bool] = {}
    for file in files:
        of = _predictions(file, benchmark)
        if of is None or not any(pairs.has(paradigm) for paradigm in of):
            continue  # of another task
        try:
            run, seeded = _run(file, config.results)
        except InputError as error:
            problems.append({"run": str(file), "status": "unplaced", "reason": str(error)})
            continue
        seeds[run["model"]] = seeds.get(run["model"], False) or seeded
        parts += [pairs.judged(paradigm, said, run, file) for paradigm, said in of.items()]
    if not parts:
        reasons = "; ".join(problem["reason"] for problem in problems[:1])
        raise InputError(reasons or f"{first_few([str(file) for file in files], 1)}: no predictions of {benchmark}")
    rows = pd.concat(parts, ignore_index=True)[[*COLUMNS]]
    name = study_name(config.study, files[0], config.path)
    origin = "predictions of the BabyLM pipeline"
    outcomes = Outcomes(rows, benchmark, METHOD, origin, seeds, notes=pairs.notes, problems=problems)
    return [study_of(name, outcomes, config)]


def _predictions(file: Path, benchmark: str) -> dict[str, list[str]] | None:
    """Return predictions by paradigm; None if a file has none of the benchmark."""
    data = read_object(file)
    of = data.get(benchmark, data)
    paradigms: dict[str, list[str]] = {}
    for paradigm, entry in of.items() if isinstance(of, dict) else ():
        said = entry.get("predictions") if isinstance(entry, dict) else None
        if not isinstance(said, list):
            return None
        paradigms[str(paradigm)] = [_sentence(one, f"{file}: {paradigm}") for one in said]
    return paradigms or None


def _sentence(prediction: Any, where: str) -> str:
    said = prediction.get("pred") if isinstance(prediction, dict) else None
    if not isinstance(said, str):
        raise InputError(f"{where}: a prediction must have a sentence as its 'pred'")
    return said.strip()


def _folder(file: Path) -> int | None:
    """Return the place of zero_shot among the parts of a path, below the model and its revision."""
    places = [place for place, part in enumerate(file.parts) if part in _FOLDERS and place >= 2]
    return places[-1] if places else None


def _run(file: Path, settings: ResultsConfig) -> tuple[dict[str, Any], bool]:
    """Return model, removed, size and seed of a file, and if the seed is given. Raises InputError without a size."""
    place = _folder(file)
    model, revision = (file.parts[place - 2 : place]) if place is not None else (file.name.partition(".")[0], "")
    parts = parts_of(file.as_posix(), settings, (revision,))
    size = fixed_size(settings)
    if size is None and named_size(revision, settings):
        size = size_of(revision, settings, str(file))
    size = pattern_size(parts, settings, file) if size is None else size
    if size is None:
        said = f"revision {revision} says no size" if revision else "nothing says its size"
        raise InputError(f"{file}: {said}; give results.sizes={{{revision or 'NAME'}:SIZE}} or results.size=SIZE")
    run = {"model": parts.get("model") or model, "removed": "", "size": size, "seed": seed_of(parts, file)}
    return run, "seed" in parts


class _Pairs:
    """The pairs that predictions are about, read once a paradigm; `notes` on predictions that were left out."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.notes: list[str] = []
        self._known: dict[str, list[dict[str, str]]] = {}

    def has(self, paradigm: str) -> bool:
        """True if there are pairs of a paradigm."""
        return self._path(paradigm).is_file()

    def judged(self, paradigm: str, said: Sequence[str], run: Mapping[str, Any], file: Path) -> pd.DataFrame:
        """Return rows (outcomes.COLUMNS) of a run's predictions of one paradigm."""
        pairs = self._of(paradigm, file)
        if not said:
            raise InputError(f"{file}: {paradigm}: its list of predictions is empty, must have one for each pair")
        if len(pairs) == len(said):
            judged = [(place, self._right(pair, one, f"{file}: {paradigm}, prediction {place}"))
                      for place, (pair, one) in enumerate(zip(pairs, said, strict=True))]  # fmt: skip
        else:
            judged = self._looked_up(paradigm, pairs, said, file)
        return pd.DataFrame({
            **run, "paradigm": paradigm, "phenomenon": pairs[0]["phenomenon"],
            "pair": [pairs[place]["pair"] for place, _ in judged], "accuracy": [right for _, right in judged], "n": 1.0,
            "tests": False, "place": f"{file}: {paradigm}",
        })  # fmt: skip

    def _of(self, paradigm: str, file: Path) -> list[dict[str, str]]:
        if paradigm not in self._known:
            path = self._path(paradigm)
            if not path.is_file():
                raise InputError(f"{file}: predictions of {paradigm}, but results.pairs has no {paradigm}.jsonl")
            rows: list[dict[str, str]] = []
            for where, row in read_lines(path):
                if not isinstance(row.get("sentence_good"), str) or not isinstance(row.get("sentence_bad"), str):
                    raise InputError(f"{where}: no sentence_good and sentence_bad")
                good, bad = row["sentence_good"].strip(), row["sentence_bad"].strip()
                phenomenon, pair = str(row.get("linguistics_term") or ""), str(row.get("pairID", len(rows)))
                rows.append({"good": good, "bad": bad, "phenomenon": phenomenon, "pair": pair})
            if not rows:
                raise InputError(f"{path}: holds no pairs")
            self._known[paradigm] = rows
        return self._known[paradigm]

    def _path(self, paradigm: str) -> Path:
        return self.folder / Path(f"{paradigm}.jsonl").name  # a name in a file leads nowhere else

    @staticmethod
    def _right(pair: Mapping[str, str], said: str, where: str) -> float:
        if said not in (pair["good"], pair["bad"]):
            raise InputError(f"{where}: not one of the two sentences of the pair in results.pairs")
        return float(said == pair["good"])

    def _looked_up(
        self, paradigm: str, pairs: Sequence[Mapping[str, str]], said: Sequence[str], file: Path
    ) -> list[tuple[int, float]]:
        """Return the pair and the outcome of each prediction by its sentence, of sentences of one pair only."""
        found: dict[str, list[tuple[int, float]]] = {}
        for place, pair in enumerate(pairs):
            found.setdefault(pair["good"], []).append((place, 1.0))
            found.setdefault(pair["bad"], []).append((place, 0.0))
        judged: dict[int, float] = {}
        for one in said:
            if one not in found:
                raise InputError(
                    f"{file}: {paradigm}: {len(said)} predictions of other pairs than the {len(pairs)} in results.pairs"
                )
            if len(found[one]) == 1:
                place, right = found[one][0]
                if place in judged:
                    raise InputError(f"{file}: {paradigm}: two predictions of pair {pairs[place]['pair']}, must be one")
                judged[place] = right
        if len(judged) < len(said):
            self.notes.append(
                f"{file.name}, {paradigm}: {len(said) - len(judged)} of {len(said)} predictions are left out, as "
                "several pairs have their sentence."
            )
        return sorted(judged.items())
