"""Read the predictions that the evaluation pipelines of the BabyLM challenges write.

    MODEL/REVISION/zero_shot/BACKEND/TASK/DATA/predictions.json   {paradigm: {"predictions": [{"id", "pred"}]}}
    predictions.json.gz (2023, 2024), all of a submission         {"blimp": {paradigm: {"predictions": [...]}}, ...}

A prediction is the sentence that a model prefers. The pairs (`results.pairs`) define which sentences are good. They are
in one file PARADIGM.jsonl per paradigm, with sentence_good and sentence_bad, in the order of the predictions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from analysis.sources.published import check_cells
from analysis.sources.settings import ResultsConfig
from corpora.sources.lines import opened
from eval.benchmarks.files import file_rows
from pairscale.errors import ConfigError, InputError
from pairscale.schema import checked, parse_json

ENDINGS = ("predictions.json", "predictions.json.gz", "preds.json", "preds.json.gz")
_REMEDY = "use predictions from BabyLM's pipeline"


class _Prediction(msgspec.Struct):
    pred: str


class _Predictions(msgspec.Struct):
    predictions: list[_Prediction]


def babylm_rows(files: Sequence[Path], settings: ResultsConfig) -> pd.DataFrame:
    """Return the rows of outcomes (published.py) from files of predictions.

    Raises ConfigError if there are no pairs, and InputError if a file has another format or predictions about
    other pairs.
    """
    folder = Path(settings.pairs or "").expanduser()
    if settings.pairs is None or not folder.is_dir():
        raise ConfigError(
            f"results.pairs={settings.pairs}: this is not a folder. Set it to the folder of the pairs, such as "
            "evaluation_data/.../blimp_filtered."
        )
    parts = []
    for file in files:
        with opened(file) as stream:
            data = parse_json(stream.read(), dict[str, Any], file, InputError, _REMEDY)
        entries = checked(data.get(str(settings.benchmark), data), dict[str, Any], file, InputError, _REMEDY)
        # With .name, a paradigm's name can't lead to another folder.
        pairs = {paradigm: folder / Path(f"{paradigm}.jsonl").name for paradigm in entries}
        if not any(place.is_file() for place in pairs.values()):
            continue  # predictions of another task
        placed = re.search(r"([^/]+)/([^/]+)/zero_shot/", file.as_posix())
        model, revision = placed.groups() if placed else (file.name.partition(".")[0], "")
        run = settings.run_of(f"{revision} {file.as_posix()}", model, revision)
        for paradigm, entry in checked(entries, dict[str, _Predictions], file, InputError, _REMEDY).items():
            place = f"{file}: {paradigm}"
            rows = _judge(pairs[paradigm], [one.pred.strip() for one in entry.predictions], place)
            parts.append(rows.assign(**run, paradigm=paradigm))
    if not parts:
        problem = f"there are no predictions for the pairs in results.pairs={settings.pairs}"
        raise InputError(f"{files[0]}: {problem}. Correct results.pairs.")
    return pd.concat(parts, ignore_index=True).assign(method="prediction", n=1)


def _judge(file: Path, said: Sequence[str], where: str) -> pd.DataFrame:
    """Return pair_id, accuracy and place of each prediction of a paradigm, using the paradigm's pairs."""
    pairs = pd.DataFrame([row.cells for row in file_rows(file)])
    pairs = pairs.reindex(columns=["sentence_good", "sentence_bad", "pairID"])
    if len(pairs) != len(said):
        problem = f"there are {len(said)} predictions, but {file} has {len(pairs)} pairs"
        raise InputError(f"{where}: {problem}. Use the pairs that the model was evaluated on.")
    ids = pairs["pairID"].fillna(pairs.index.to_series()).astype(str)
    rows = pd.DataFrame({"prediction": said, "pair_id": ids, "place": where})
    is_good, is_bad = (pairs[side].astype(str).str.strip() == said for side in ("sentence_good", "sentence_bad"))
    check_cells(rows["prediction"], is_good | is_bad, rows["place"], "a sentence of its pair in results.pairs")
    return rows.assign(accuracy=is_good)
