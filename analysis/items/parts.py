"""Read the answers of runs to diagnostics, suites and ratings, and make the parts of a report about them."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.formats import joined, rows_of
from analysis.items import cloze, ratings, suites
from analysis.items.results import Answers, part_of
from analysis.report.labels import display_names, renamed
from analysis.report.write import Part
from analysis.sections import ALL
from analysis.study.long_table import check_alike
from eval.config import benchmark_type, is_of_pairs
from eval.scores.files import answers_metadata, read_answer_file
from pairscale.errors import RunError, first_few
from pairscale.sizes import written
from train.runs.folder import RunFolder
from train.runs.labels import flatten


def item_parts(runs: pd.DataFrame, config: AnalysisConfig, benchmark: str | None) -> list[Part]:
    """Return the parts about the diagnostics, suites and ratings that any run was scored on.

    If `benchmark` is given, only its parts are returned. Raises the same RunErrors as `read_answers` and the modules of
    this folder.
    """
    options, curves = config.analysis, list(runs["curve"].unique())
    folders = [RunFolder(Path(config.paths.runs) / run.study / run.run).scores("") for run in rows_of(runs)]
    found = dict.fromkeys(path.name for folder in folders for path in sorted(folder.glob("*")) if path.is_dir())
    named = renamed(runs, display_names(curves, options.labels), options.order)
    parts = []
    for label in found:
        if not is_of_pairs(label) and benchmark in (None, label.partition("+")[0]):
            answers = read_answers(named, label, config.paths.runs)
            description = _kind_of(label)[0].describe(answers)
            parts.append(part_of(answers, description, options.confidence, ALL in (options.sections or ())))
    return parts


def _kind_of(label: str) -> tuple[Any, tuple[str, ...]]:
    """Return the module that describes a benchmark, and the names of its files. The last file contains the outcomes."""
    kinds = {"syntaxgym": (suites, ("regions", "success")), "ratings": (ratings, ("sentences",))}
    return kinds.get(benchmark_type(label), (cloze, ("topk", "cloze")))


def read_answers(runs: pd.DataFrame, label: str, folder: str | Path = "runs") -> Answers:
    """Read the answers of all scored runs to a diagnostic, to suites, or to rated sentences.

    Args:
        runs: The table of `analysis.runs`. Baselines are left out.
        label: The name of the folder of scores.
        folder: The folder of all studies (`paths.runs`).

    Raises:
        RunError: If a file is damaged, if no run has answers, if runs answered different questions, or if runs with the
            same tokenizer were scored with different settings.
    """
    _, files = _kind_of(label)
    models = runs[runs["baseline"] == ""]
    folders = [RunFolder(Path(folder) / run.study / run.run).scores(label) for run in rows_of(models)]
    scores = pd.Series(folders, models.index, dtype=object)
    is_scored = scores.map(lambda of: answers_metadata(of, *files)).notna()
    study, scored = "+".join(runs["study"].unique()), models[is_scored].reset_index(drop=True)
    if scored.empty:
        remedy = f"python -m eval study={study} benchmark={label.partition('+')[0]}"
        raise RunError(f"study={study}: no run has complete scores on {label}. Score the runs with: {remedy}")
    tables, metadata = zip(*(read_answer_file(of, files[-1]) for of in scores[is_scored]), strict=True)
    about = pd.DataFrame(metadata)
    settings = [{name: written(value) for name, value in flatten(of).items()} for of in about["policy"]]
    scored = scored.assign(
        policy=about["policy"],
        unigrams=about["parameters"].str.get("unigrams"),
        benchmark=label,
        method=about["policy"].str.get("pll").fillna("lp"),
        digest=about["benchmark"].str.get("digest"),
        settings=pd.Series(settings),
    )
    check_alike(study, scored)
    notes = [
        f"Models were scored with different settings: {name} is {joined(sorted(values.dropna().unique()))}."
        for name, values in pd.DataFrame(settings).items()
        if values.nunique() > 1
    ]
    if not is_scored.all():
        notes.append(f"These runs have no scores on {label}: {first_few([*models.loc[~is_scored, 'run']])}.")
    return Answers(label, scored, list(tables), notes)
