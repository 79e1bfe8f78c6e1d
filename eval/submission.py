"""Collect a run's results in the form of a BabyLM submission, which is one JSON file (collate_preds.py of July 2026).

    blimp, blimp_supplement, ewok, entity_tracking_filtered, comps, glue
                         subtask -> predictions: id (SUBTASK_0, SUBTASK_1, ...) and pred, in the order of the data
    global_piqa_parallel, global_piqa_nonparallel
                         the same, but by the id of an item instead of a subtask
    reading              the same with pred and prev_pred: the surprisal of a word and of the word before it, in nats
    aoa_surprisals       results: the surprisal of each word in each context, at each checkpoint
    aoa                  the correlation of the ages at which models and children know words (eval/ages.py)
    fast_eval_results    task -> one entry per checkpoint: subtask -> accuracy, as a proportion

What is missing is None.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from eval.scores.accuracy import outcomes
from eval.scores.files import read_items, read_metadata, read_scores, read_words, score_path, with_phenomena
from pairscale.errors import InputError, RunError
from train.runs.folder import RunFolder

ENTITIES = "entity_tracking_filtered"
# The tasks of GLUE, with the numbers of their items. F1 decides in mrpc and qqp, and the accuracy in the others.
GLUE = {"boolq": 1635, "mnli": 4908, "mrpc": 204, "multirc": 2424, "qqp": 20215, "rte": 139, "wsc": 52}
_BY_F1 = ("mrpc", "qqp")
READING_DATA, READING_TEXT = "full_eval/reading/reading_data.csv", "reading_data"
# For each track, the words seen at the checkpoints that it asks for.
CHECKPOINTS = {
    track: {f"chck_{number}M": number * 10**6 for number in (*range(1, 10), *range(10, 101, 10), *more)}
    for track, more in {"strict-small": (), "strict": range(200, 1001, 100)}.items()
}
MAIN = "main"  # the revision of a finished model; snapshots that no track asks for have none
NEAR = 0.04  # a checkpoint's number of words may differ by this share from the number that is asked for
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
    methods: tuple[str, str] = ("lp", "pll")  # for causal and for masked models


MEANS = ("mean_lp", "mean_pll")  # log-probabilities per token
PIQA = ("global_piqa_parallel", "global_piqa_nonparallel")
TASKS = (
    Task("blimp", "BLiMP", "babylm_blimp", "blimp_filtered", "blimp_fast", 59_875, 13_400),
    Task("blimp_supplement", "Supplement", "blimp_supplement", "supplement_filtered", "supplement_fast", 5_218, 250),
    Task("ewok", "EWoK", "ewok", "ewok_filtered", "ewok_fast", 7_618, 1_100),
    Task(ENTITIES, "Entities", "entity_tracking", "entity_tracking", "entity_tracking_fast", 6_780, 2_238),
    Task("comps", "COMPS", "comps", "comps", None, 91_028),
    Task(PIQA[0], "PIQA (4)", PIQA[0], PIQA[0], PIQA[0], 103, 103, MEANS),
    Task(PIQA[1], "PIQA (2)", PIQA[1], PIQA[1], PIQA[1], 100, 100, MEANS),
)


def revisions_of(track: str, words_seen: Iterable[int]) -> dict[int, str]:
    """Return the names of the checkpoints that a track asks for, by the nearest of the given numbers of words."""
    words, found = sorted(words_seen), {}
    for name, asked in CHECKPOINTS[track].items():
        nearest = min(words, key=lambda number: abs(number - asked), default=0)
        if abs(nearest - asked) < NEAR * asked:
            found[nearest] = name
    return found


def judged(task: Task, folder: Path, step: int | None, ties: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Return a model's judgements on a task, or None if there are no scores.

    Args:
        task: The task.
        folder: The folder of its scores.
        step: The step of a snapshot. None: the exported model.
        ties: How a tie counts. This must not be "half", because a submission names one sentence per item.

    Returns:
        One row per item in the order of the data, with the columns subtask, key (of a submission), pred (the chosen
        text) and right, and the metadata of the scores. Raises RunError if a file is damaged or lacks an item.
    """
    paths = [score_path(folder, method, step) for method in task.methods]
    if not (there := [path for path in paths if path.exists()]):
        return None
    items, _ = read_items(folder)
    scores, metadata = read_scores(there[0])
    scores = with_phenomena(scores, items)
    scores["right"] = outcomes(scores, ties)
    rows = items.merge(scores[[*_KEY, "right", "rival"]], on=_KEY, how="left", validate="one_to_one")
    check_complete(rows["right"], there[0])
    columns = [rows[name] for name in ("good", "bad", "options", "contexts", "gold", "rival")]
    preds, golds = (
        [_chosen(task.name, *row) for row in zip(*columns, right, strict=True)]
        for right in (rows["right"], [1] * len(rows))
    )
    rows = rows.assign(subtask=rows["paradigm"].map(lambda name: _subtask(task.name, name)), pred=preds)
    rows["key"] = rows["pair_id"] if task.name in PIQA else rows["subtask"]
    # The pipeline compares texts, so a pair of two equal sentences is right.
    return rows[["subtask", "key", "pred"]].assign(right=np.equal(preds, golds)), metadata


def check_complete(scores: pd.Series, path: Path) -> None:
    """Raise RunError if an item of a benchmark has no score."""
    if lacking := int(scores.isna().sum()):
        raise RunError(f"{path}: {lacking:,} of {len(scores):,} items have no score. Remove this file and score again.")


def _subtask(task: str, paradigm: str) -> str:
    """Return the name of a paradigm in a submission."""
    if task in PIQA:
        return task
    if task == ENTITIES:  # a file and a number of operations
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
    before = contexts[place] if task in ("comps", "ewok") else " " if task in PIQA else ""
    return f"{before}{options[place]}"


def accuracies_of(rows: pd.DataFrame) -> dict[str, float]:
    """Return the accuracy on each subtask, as a proportion. Their mean is the accuracy on the task."""
    return {str(name): float(share) for name, share in rows.groupby("subtask")["right"].mean().items()}


def collated(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the predictions of a task (key and pred, in the order of the data) as in a submission."""
    return {
        str(name): {"predictions": [{"id": f"{name}_{number}", "pred": pred} for number, pred in enumerate(preds)]}
        for name, preds in rows.groupby("key", sort=False)["pred"]
    }


def finetuned(run: RunFolder, seed: int) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the predictions of fine-tuning (columns of `judged`) on the finished tasks of GLUE, and their measures.

    The measure of a task is the accuracy or F1, as a proportion. Raises RunError if predictions are missing.
    """
    found, measures = [pd.DataFrame({"subtask": [], "key": [], "pred": [], "right": []})], {}
    for task in GLUE:
        folder = run.finetuned(task, seed)
        if folder.done:
            rows = predictions_of(folder)
            preds = [int(label) if label.isdecimal() else label for label in rows["predicted"]]
            right = rows["predicted"] == rows["label"]
            found.append(pd.DataFrame({"subtask": task, "key": task, "pred": preds, "right": right}))
            measures[task] = float(folder.read_manifest()["best"]["f1" if task in _BY_F1 else "accuracy"])
    return pd.concat(found[1:] or found, ignore_index=True), measures


def predictions_of(tuned: RunFolder) -> pd.DataFrame:
    """Return the labels and predictions of a finished fine-tuning, as text. Raises RunError if the file is missing."""
    try:
        return pd.read_csv(tuned.path / "predictions.csv", dtype=str, keep_default_na=False)
    except OSError:
        raise RunError(f"{tuned.path}: predictions.csv is missing. Remove this folder, and fine-tune again.") from None


def of_model(surprisals: Path, digest: str | None) -> Path:
    """Return a file of surprisals. Raises RunError if another model, with other weights, has computed it."""
    if read_metadata(surprisals)["model"]["digest"] != digest:
        raise RunError(f"{surprisals}: these surprisals are another model's. Remove this file, and compute it again.")
    return surprisals


def reading(data: Path, surprisals: Path) -> dict[str, Any]:
    """Return the surprisals of the words in reading_data.csv as in a submission.

    Args:
        data: The folder of the evaluation data.
        surprisals: The file that `python -m eval.surprisal` wrote for the texts of `python -m analysis.reading`.

    Raises InputError if a column or a word of the table has no surprisal.
    """
    words, _ = read_words(surprisals)
    texts = words.groupby("text_id")["word"].transform(lambda text: list(accumulate(text, "{} {}".format)))
    nats = dict(zip(texts, words["uncorrected"] * math.log(2), strict=True))
    table = data / READING_DATA
    cells = pd.read_csv(table, dtype=str, keep_default_na=False)
    if missing := [name for name in ("item", "word", "prev_item") if name not in cells]:
        raise InputError(f"{table}: there is no column '{missing[0]}'. Download the challenge's file again.")
    rows = []
    for number, (context, word, before) in enumerate(
        zip(cells["item"], cells["word"], cells["prev_item"], strict=True)
    ):
        # In the table, the context of "None of the ..." is empty. The pipeline restores it, but not as a previous one.
        context = context or "None"
        earlier = math.nan if before in ("", "None") else nats.get(" ".join(context.split()), math.nan)
        if (text := " ".join([*context.split(), word])) not in nats:
            raise InputError(f"{surprisals}: row {number + 1} of {table} isn't in it ({word}). Compute it again.")
        rows.append({"id": number, "pred": nats[text], "prev_pred": earlier})
    return {"reading": {"predictions": rows}}


def fast_results(track: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the results at checkpoints as in a submission: for each task, one per checkpoint of the track, or None.

    `found` has the results of each task by the names of checkpoints.
    """
    tasks = [task.name for task in TASKS if task.fast] + ["reading"]
    return {task: [found.get(task, {}).get(name) for name in CHECKPOINTS[track]] for task in tasks}


def backend(metadata: Mapping[str, Any]) -> str:
    """Return the pipeline's name for the kind of model, given the metadata of its scores."""
    if not metadata["method"].endswith("pll"):
        return "causal"
    return "mntp" if metadata["policy"].get("pll_shift") else "mlm"
