"""The foundation of all other packages, and the console script `pairscale COMMAND ...`. It imports none of them.

errors.py defines the exceptions and their exit codes. files.py writes files atomically, locks them and computes
digests. schema.py checks files as it reads them, machine.py counts cores and memory, plugins.py loads plug-ins, and
hub.py imports the Hugging Face libraries. command/ contains the code that all commands share. This module lists the
commands by name, and defines how one command starts another.
"""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Command(NamedTuple):
    """A command's module, its configuration class (in PACKAGE.config; "" if none), and a description."""

    module: str
    schema: str
    about: str


COMMANDS = {
    "corpora": Command("corpora", "CorporaConfig", "prepare a corpus: its text, tokenizer and words"),
    "annotate": Command("corpora.annotate", "AnnotateConfig", "add dependency trees to a corpus"),
    "find": Command("corpora.find", "FindCommand", "search an annotated corpus for a construction"),
    "train": Command("train", "RunConfig", "train a model on a sample of a corpus, or a grid of models with -m"),
    "finetune": Command(
        "train.finetune", "FinetuneConfig", "fine-tune the models of a study on a table of texts with labels"
    ),
    "eval": Command("eval", "EvalConfig", "score models on minimal pairs and other benchmarks; train missing runs"),
    "analysis": Command("analysis", "AnalysisConfig", "fit a study's learning curves, and write tables and a report"),
    "table": Command("analysis.table", "TableCommand", "write the accuracies, pairs or runs of a study as one table"),
    "figure": Command("analysis.figure", "FigureCommand", "draw one figure of a study's learning curves"),
    "status": Command("analysis.status", "StatusConfig", "show the progress of a study, or remove some of its runs"),
    "reading": Command("analysis.reading", "ReadingCommand", "test how well surprisal predicts reading times"),
    "plan": Command("analysis.plan", "PlanCommand", "find out how many sizes, seeds and pairs an experiment needs"),
    "generate": Command("eval.generate", "GenerateConfig", "generate minimal pairs from templates"),
    "fetch": Command("eval.fetch", "FetchConfig", "download the files of a public benchmark"),
    "surprisal": Command("eval.surprisal", "SurprisalCommand", "write the surprisal of each word of a text"),
    "questionnaire": Command(
        "eval.questionnaire", "QuestionnaireCommand", "collect people's judgements of minimal pairs"
    ),
    "export": Command("eval.export", "ExportConfig", "export runs as models for the transformers library"),
    "import_checkpoint": Command(
        "train.import_checkpoint", "RunConfig", "turn a published checkpoint into a run of a study"
    ),
    "lmplz": Command("train.lmplz", "", "build the KenLM programs that n-gram models need"),
    "tasks": Command("eval.tasks", "", "record the runs that a file of SLURM tasks requests"),
}  # `pairscale status` is `python -m analysis.status`
MODULES = {command.module: name for name, command in COMMANDS.items()}
BY_SCRIPT = "PAIRSCALE_BY_SCRIPT"  # environment variable: set if the console script started this process or a parent
_MODULE_COMMAND = re.compile(r"python -m ([\w.]+\w)")


def as_typed(text: str) -> str:
    """Replace `python -m MODULE` by `pairscale COMMAND` in `text` if the user typed `pairscale`."""
    if BY_SCRIPT not in os.environ:
        return text
    names = {module: f"pairscale {command}" for module, command in MODULES.items()}
    return _MODULE_COMMAND.sub(lambda match: names.get(match[1], match[0]), text)


def started_by(*words: str) -> list[str]:
    """Return the command line of `python -m WORDS`. With `environment`, it imports no files from the current folder."""
    return [sys.executable, "-P", "-m", *words]


def environment() -> dict[str, str]:
    """Return this process's environment variables, with this checkout first on PYTHONPATH."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(ROOT)]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *others])}
