"""A study from Weights & Biases, as `python -m eval logger=wandb` tracked it: the same tables as from run folders.

A run's record holds the accuracy of each paradigm (eval/scores/record.py), not judgements of pairs.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.study.collect import UNSCORED, RunRecord, Study, assemble
from analysis.study.combine import names_of
from analysis.study.judgements import Judgements, judged_by, methods_by_run, no_such_scores, one_digest, paradigm_scores
from analysis.study.sources.files import expected_runs
from analysis.study.sources.source import WANDB, source
from eval.scores.record import PARADIGM_COLUMNS, RECORD, read_record
from pairscale.errors import ConfigError, RunError
from train.runs.folder import FAILED, UNFINISHED
from train.trackers.wandb import answers, base_url, has_key

TIMEOUT = 30  # seconds that one request may take
_STATES = {"running": UNFINISHED, "pending": UNFINISHED, "preempting": UNFINISHED, "finished": UNSCORED}
_STUDY = re.compile(r"\w[\w.+ -]*")
_NOTE = (
    "Read from W&B, where accuracies of paradigms are tracked and not judgements of pairs: there are no intervals over "
    "new pairs, and nothing is said of pairs without <unk>."
)


def project_runs(project: str | None, study: str | None) -> tuple[str, list[Any]]:
    """Return a study's name and its runs in a W&B project; `study` may be None if the project has only one.

    Raises ConfigError or RunError for a malformed or unknown project, no key, no network, a choice of several studies.
    """
    if project is None or project.count("/") != 1:
        raise ConfigError(f"source=wandb with project={project}: must be ENTITY/PROJECT, as in the project's address")
    if not has_key():
        raise ConfigError("source=wandb: no key for W&B; run `wandb login`, or set WANDB_API_KEY")
    if not answers(url := base_url()):
        raise RunError(f"source=wandb: {url} does not answer; without a network: python -m analysis study=NAME")
    import wandb

    try:
        api = wandb.Api(timeout=TIMEOUT)
        # lazy=False: one request for fifty runs, and not another for each run's summary
        runs = list(api.runs(project, filters={"group": study} if study else {}, lazy=False))
    except (wandb.Error, ValueError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RunError(f"source=wandb project={project}: cannot be read ({reason[:300]})") from None
    studies = sorted({run.group for run in runs if run.group})
    if not studies:
        problem = f"study={study} is not among its runs" if study else "no run of it belongs to a study"
        remedy = "track them with python -m eval study=NAME logger=wandb"
        raise RunError(f"source=wandb project={project}: {problem}; {remedy}")
    if len(studies) > 1:
        raise ConfigError(f"source=wandb project={project}: holds {', '.join(studies)}; choose one with study=NAME")
    if not _STUDY.fullmatch(studies[0]):  # it becomes the name of a folder here
        raise RunError(f"source=wandb project={project}: its group {studies[0]!r} is no name of a study")
    return studies[0], runs


def collect_tracked(study: str, runs: Sequence[Any], project: str, expected: Mapping[str, str] | None = None) -> Study:
    """Collect a study from W&B `runs` with id, name, state, job_type and summary; `expected` as in `collect`.

    Runs that are not trained to the end, or not scored, are listed as problems. Raises RunError if none is scored, and
    for a record of another version.
    """
    records: dict[str, dict[str, Any]] = {}
    for run in runs:
        text = run.summary.get(RECORD)
        if text is not None:  # of two that track one run the newer stands, which the API gives later
            record = read_record(text, f"{project}/{run.id}")
            records[record["run"]] = record
    problems = {}
    for run in runs:
        if run.job_type in ("train", "eval") and run.name not in records:
            reason = f"W&B says {run.state}" + ("; no scores are tracked" if run.state == "finished" else "")
            problems[run.name] = {"run": run.name, "status": _STATES.get(run.state, FAILED), "reason": reason}
    run_records = {name: RunRecord(of["config"], of["manifest"], of["validation"]) for name, of in records.items()}
    tracked = assemble(study, run_records, expected or {}, f"W&B's {project}", list(problems.values()))
    tracked.scores = {name: record["scores"] for name, record in records.items()}
    tracked.notes.append(_NOTE)
    return tracked


def tracked_judgements(study: Study, label: str, method: str, ties: str) -> Judgements:
    """Return judgements by paradigm instead of by pair; raises the errors of `judgements`."""
    at_label = {run: study.scores[run].get(label, {}) for run in study.runs.index}
    methods = methods_by_run(at_label, method)
    by_run = {run: at_label[run][name] for run, name in methods.items()}
    if not by_run:
        raise no_such_scores(study, label, method, {name for scores in at_label.values() for name in scores})
    digest = one_digest(label, {run: scores["digest"] for run, scores in by_run.items()})
    tables = [pd.DataFrame(scores["paradigms"], columns=list(PARADIGM_COLUMNS)) for scores in by_run.values()]
    columns = ["phenomenon", "paradigm", "pairs"]
    paradigms = [table[columns].sort_values("paradigm", ignore_index=True) for table in tables]
    for run, of_run in zip(by_run, paradigms, strict=True):
        if not of_run.equals(paradigms[0]):
            raise RunError(f"{run}: its record has other paradigms of {label} than that of {next(iter(by_run))}")
    policies = {run: scores["policy"] | scores["parameters"] for run, scores in by_run.items()}
    over = {scores["over"]: None for scores in by_run.values()}
    return judged_by(study, label, paradigm_scores(tables, ties, digest, methods, policies, over))


@source(WANDB, judge=tracked_judgements, keys=("project",))
def from_wandb(config: AnalysisConfig) -> list[Study]:
    """Collect the studies of `config.study`, or the only one, of `config.project`; raises as `project_runs`."""
    names: list[str | None] = [None] if config.study is None else [*names_of(config.study)]
    projects = [project_runs(config.project, name) for name in names]
    return [collect_tracked(name, runs, str(config.project), expected_runs(config, name)) for name, runs in projects]
