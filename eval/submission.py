"""Collect a run's results in the form of a BabyLM submission, which is one JSON file (collate_preds.py of 2026).

    blimp, blimp_supplement, ewok, entity_tracking, comps, glue
                         subtask -> predictions: id (SUBTASK_0, SUBTASK_1, ...) and pred, in the order of the data
    reading              the same with pred and prev_pred: the surprisal of a word and of the word before it, in nats
    aoa                  results: the surprisal of each word in each context, at each checkpoint
    fast_eval_results    task -> one entry per checkpoint: subtask -> accuracy, as a proportion

A submission's tasks for word forms (wug_adj, wug_past) are not supported.
"""

import json
import math
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from eval.scores.accuracy import outcomes
from eval.scores.files import read_items, read_scores, read_words, score_path, with_phenomena
from pairscale.errors import InputError
from train.runs.folder import RunFolder

GLUE = ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc")
READING_DATA, READING_TEXT = "full_eval/reading/reading_data.csv", "reading_data"
AGES_DATA, AGES_TEXT = "full_eval/aoa/cdi_childes.json", "contexts"
# For each track, the words seen at the checkpoints that it asks for.
CHECKPOINTS = {
    track: {f"chck_{number}M": number * 10**6 for number in (*range(1, 10), *range(10, 101, 10), *more)}
    for track, more in {"strict-small": (), "strict": range(200, 1001, 100)}.items()
}
NEAR = 0.04  # a checkpoint's number of words may differ by this share from the number that is asked for
FEWEST_CONTEXTS = 20  # words with fewer contexts are left out
_KEY = ["paradigm", "pair_id"]


class Task(NamedTuple):
    """A zero-shot task."""

    name: str  # its key in a submission
    title: str
    benchmark: str  # its file in conf/benchmark
    full: str  # its folder in the evaluation data
    fast: str | None  # the folder with the subset for checkpoints; None: there is none
    items: int  # number of items in the official data, and in their subset
    fast_items: int = 0


TASKS = (
    Task("blimp", "BLiMP", "babylm_blimp", "blimp_filtered", "blimp_fast", 59_875, 13_400),
    Task("blimp_supplement", "Supplement", "blimp_supplement", "supplement_filtered", "supplement_fast", 5_218, 250),
    Task("ewok", "EWoK", "ewok", "ewok_filtered", "ewok_fast", 7_618, 1_100),
    Task("entity_tracking", "Entities", "entity_tracking", "entity_tracking", "entity_tracking_fast", 9_483, 3_152),
    Task("comps", "COMPS", "comps", "comps", None, 91_028),
)


def revision_of(track: str, words: int) -> str | None:
    """Return the name of the checkpoint after so many words, or None if the track doesn't ask for this number."""
    return next((name for name, asked in CHECKPOINTS[track].items() if abs(words - asked) < NEAR * asked), None)


def judged(task: str, folder: Path, step: int | None, ties: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Return a model's judgements on a task, or None if there are no scores.

    Args:
        task: The name of a Task.
        folder: The folder of its scores.
        step: The step of a snapshot. None: the exported model.
        ties: How a tie counts. This must not be "half", because a submission names one sentence per item.

    Returns:
        One row per item in the order of the data, with the columns subtask, pred (the chosen text) and right,
        and the metadata of the scores. Raises RunError if a file is damaged.
    """
    paths = [score_path(folder, method, step) for method in ("lp", "pll")]
    if not (there := [path for path in paths if path.exists()]):
        return None
    items, _ = read_items(folder)
    scores, metadata = read_scores(there[0])
    scores = with_phenomena(scores, items)
    scores["right"] = outcomes(scores, ties)
    rows = items.merge(scores[[*_KEY, "right", "rival"]], on=_KEY, how="left", validate="one_to_one")
    columns = [rows[name] for name in ("good", "bad", "options", "contexts", "gold", "rival")]
    preds, golds = (
        [_chosen(task, *row) for row in zip(*columns, right, strict=True)] for right in (rows["right"], [1] * len(rows))
    )
    rows = rows.assign(subtask=rows["paradigm"].map(lambda name: _subtask(task, name)), pred=preds)
    # The pipeline compares texts, so a pair of two equal sentences is right.
    return rows[["subtask", "pred"]].assign(right=np.equal(preds, golds)), metadata


def _subtask(task: str, paradigm: str) -> str:
    """Return the name of a paradigm in a submission."""
    if task == "entity_tracking":  # a file and a number of operations
        return "{}_{}_ops".format(*paradigm.rsplit("/", 1))
    return paradigm.removeprefix("comps_").replace("-", "_") if task == "comps" else paradigm


def _chosen(
    task: str, good: str, bad: str, options: Any, contexts: Any, gold: float, rival: float, right: float
) -> str:
    """Return the text that a submission gives for the chosen side of a pair, or for the chosen option."""
    if options is None:
        return good if right else bad
    place = int(gold if right else rival)
    # Options are compared after a context. A submission repeats this context only if the options are the same.
    before = {"comps": contexts[place], "ewok": " "}.get(task, "")
    return f"{before}{options[place]}"


def accuracies_of(rows: pd.DataFrame) -> dict[str, float]:
    """Return the accuracy on each subtask, as a proportion. Their mean is the accuracy on the task."""
    return {str(name): float(share) for name, share in rows.groupby("subtask")["right"].mean().items()}


def collated(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the predictions of a task (subtask and pred, in the order of the data) as in a submission."""
    return {
        str(name): {"predictions": [{"id": f"{name}_{number}", "pred": pred} for number, pred in enumerate(preds)]}
        for name, preds in rows.groupby("subtask", sort=False)["pred"]
    }


def finetuned(run: RunFolder, seed: int) -> pd.DataFrame:
    """Return the predictions of fine-tuning (subtask, pred, right) for the tasks of GLUE that are finished."""
    found = [pd.DataFrame({"subtask": [], "pred": [], "right": []})]
    for task in GLUE:
        folder = run.finetuned(task, seed)
        if folder.done:
            rows = pd.read_csv(folder.path / "predictions.csv", dtype=str)
            preds = [int(label) if label.isdecimal() else label for label in rows["predicted"]]
            found.append(pd.DataFrame({"subtask": task, "pred": preds, "right": rows["predicted"] == rows["label"]}))
    return pd.concat(found[1:] or found, ignore_index=True)


def reading(data: Path, surprisals: Path) -> dict[str, Any] | None:
    """Return the surprisals of the words in reading_data.csv as in a submission, or None if a file is missing.

    Args:
        data: The folder of the evaluation data.
        surprisals: The file that `python -m eval.surprisal` wrote for the texts of `python -m analysis.reading`.
    """
    table = data / READING_DATA
    if not (table.exists() and surprisals.exists()):
        return None
    words, _ = read_words(surprisals)
    texts = words.groupby("text_id")["word"].transform(lambda text: list(accumulate(text, "{} {}".format)))
    nats = dict(zip(texts, words["uncorrected"] * math.log(2), strict=True))
    cells = pd.read_csv(table, dtype=str, keep_default_na=False)
    rows = []
    for number, (context, word, before) in enumerate(
        zip(cells["item"], cells["word"], cells["prev_item"], strict=True)
    ):
        # The pipeline takes the context "None" (of "None of the ...") for a missing one.
        earlier = math.nan if before in ("", "None") else nats.get(" ".join(context.split()), math.nan)
        now = nats.get(" ".join([*context.split(), word]), math.nan)
        rows.append({"id": number, "pred": now, "prev_pred": earlier})
    return {"reading": {"predictions": rows}}


def ages(track: str, data: Path, surprisals: Mapping[str, Path]) -> dict[str, Any] | None:
    """Return the surprisals of words in contexts at each checkpoint as in a submission, or None if a file is missing.

    Args:
        track: The track, which asks for checkpoints.
        data: The folder of the evaluation data.
        surprisals: For each checkpoint, the file that `python -m eval.surprisal` wrote for the table of contexts
            (docs/guides/words_and_ages.md).
    """
    table = data / AGES_DATA
    if not table.exists() or not surprisals.keys() >= CHECKPOINTS[track].keys():
        return None
    found = json.loads(table.read_text(encoding="utf-8"))
    contexts = {word: rows for word, rows in found.items() if len(word) > 1 and len(rows) >= FEWEST_CONTEXTS}
    results = []
    for revision, asked in CHECKPOINTS[track].items():
        path = surprisals[revision]
        words, _ = read_words(path)
        targets = words[words["target"].astype(str).str.casefold().isin(["true", "1"])]
        nats = targets.groupby("text_id")["uncorrected"].sum() * math.log(2)
        about = {"step": revision, "word_count": asked}
        for word, rows in contexts.items():
            for number, row in enumerate(rows):
                if (name := f"{word} {number}") not in nats:
                    raise InputError(f"{path}: there is no text '{name}', which is in {table}. Compute it again.")
                more = {"target_word": word, "context_id": number, "context": row["context"]}
                results.append({**about, **more, "surprisal": float(nats[name])})
    return {"results": results}


def fast_results(track: str, found: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the results at checkpoints as in a submission, and the names of tasks that lack a checkpoint.

    `found` has the result of each task at each checkpoint. A submission lists them by position, so a task is left out
    if a checkpoint of the track is missing.
    """
    wanted = CHECKPOINTS[track]
    complete = {task: [of[name] for name in wanted] for task, of in found.items() if of.keys() >= wanted.keys()}
    return complete, [task for task in found if task not in complete]


def backend(metadata: Mapping[str, Any]) -> str:
    """Return the pipeline's name for the kind of model, given the metadata of its scores."""
    if metadata["method"] != "pll":
        return "causal"
    return "mntp" if metadata["policy"].get("pll_shift") else "mlm"
