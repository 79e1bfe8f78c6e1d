"""The ground floor, which knows no room above it, and the console script `pairscale COMMAND ...`.

errors.py has the exceptions and their exit codes, files.py atomic writes, locks and digests, schema.py files checked as
they are read, machine.py cores and memory, plugins.py other packages' parts, hub.py the Hugging Face Hub; seeds.py,
sizes.py and progress.py what their names say. command/ is the frame behind every command. Here: the commands by name,
and how one command starts another.
"""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Command(NamedTuple):
    """A command: the module that runs it, the class of its configuration in ROOM.config, if any, and what it does."""

    module: str
    schema: str
    about: str


COMMANDS = {
    "corpora": Command("corpora", "CorporaConfig", "prepare a corpus: its text, tokenizer and words"),
    "annotate": Command("corpora.annotate", "AnnotateConfig", "parse a corpus: dependency trees beside its text"),
    "find": Command("corpora.find", "FindCommand", "search an annotated corpus for a construction"),
    "train": Command("train", "RunConfig", "train a model on a sample of a corpus, or with -m a grid of them"),
    "eval": Command("eval", "EvalConfig", "train missing runs of a study and score models on minimal pairs and others"),
    "analysis": Command("analysis", "AnalysisConfig", "fit learning curves, write tables and the report of a study"),
    "table": Command("analysis.table", "TableCommand", "write the accuracies, pairs or runs of a study as one table"),
    "figure": Command("analysis.figure", "FigureCommand", "draw one figure of a study's learning curves"),
    "status": Command("analysis.status", "StatusConfig", "how far a study is; remove runs of it"),
    "reading": Command("analysis.reading", "ReadingCommand", "what surprisal says about reading times"),
    "plan": Command("analysis.plan", "PlanCommand", "how many sizes, seeds and pairs find an effect, and their cost"),
    "generate": Command("eval.generate", "GenerateConfig", "make fresh minimal pairs from templates"),
    "surprisal": Command("eval.surprisal", "SurprisalCommand", "write the surprisal of each word of a text"),
    "questionnaire": Command(
        "eval.questionnaire", "QuestionnaireCommand", "put pairs before people, read their answers"
    ),
    "export": Command("eval.export", "ExportConfig", "write runs as models of the transformers library"),
    "import_checkpoint": Command(
        "train.import_checkpoint", "RunConfig", "make a published checkpoint a run of a study"
    ),
    "lmplz": Command("train.lmplz", "", "build KenLM's programs, which n-gram models need"),
    "tasks": Command("eval.tasks", "", "keep the grid of a file of SLURM tasks"),
}  # `pairscale status` is `python -m analysis.status`
MODULES = {command.module: name for name, command in COMMANDS.items()}
BY_SCRIPT = "PAIRSCALE_BY_SCRIPT"  # environment variable: the console script started this process, or a parent of it
_MODULE_COMMAND = re.compile(r"python -m ([\w.]+\w)")


def as_typed(text: str) -> str:
    """Return `text` with `python -m MODULE` as `pairscale COMMAND` for those who typed that."""
    if BY_SCRIPT not in os.environ:
        return text
    names = {module: f"pairscale {command}" for module, command in MODULES.items()}
    return _MODULE_COMMAND.sub(lambda match: names.get(match[1], match[0]), text)


def started_by(*words: str) -> list[str]:
    """The command line that starts `python -m WORDS` from any folder: with `environment`, no file there is imported."""
    return [sys.executable, "-P", "-m", *words]


def environment() -> dict[str, str]:
    """The environment of this process, with this checkout before all else that Python imports from."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(ROOT)]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *others])}
