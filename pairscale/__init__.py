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
    """A command: the module that runs it, what it does, and the class of its configuration ("" if it has none)."""

    module: str
    about: str
    schema: str = ""


COMMANDS = {
    "corpora": Command("corpora", "prepare a corpus: its text, tokenizer and words", "corpora.config:CorporaConfig"),
    "annotate": Command(
        "corpora.annotate",
        "parse a corpus: a layer of dependency trees beside its text",
        "corpora.config:AnnotateConfig",
    ),
    "find": Command("corpora.find", "search an annotated corpus for a construction", "corpora.config:FindCommand"),
    "train": Command(
        "train", "train a model on a sample of a corpus, or with -m a grid of them", "train.config:RunConfig"
    ),
    "eval": Command(
        "eval",
        "train missing runs of a study and score models on minimal pairs and diagnostics",
        "eval.config:EvalConfig",
    ),
    "analysis": Command(
        "analysis", "fit learning curves, write tables and the report of a study", "analysis.config:AnalysisConfig"
    ),
    "table": Command(
        "analysis.table", "write the accuracies, pairs or runs of a study as one table", "analysis.config:TableCommand"
    ),
    "figure": Command(
        "analysis.figure", "draw one figure of a study's learning curves", "analysis.config:FigureCommand"
    ),
    "status": Command("analysis.status", "how far a study is; remove runs of it", "analysis.config:StatusConfig"),
    "reading": Command("analysis.reading", "what surprisal says about reading times", "analysis.config:ReadingCommand"),
    "plan": Command(
        "analysis.plan",
        "how many sizes, seeds and pairs find an effect, and what they cost",
        "analysis.config:PlanCommand",
    ),
    "generate": Command("eval.generate", "make fresh minimal pairs from templates", "eval.config:GenerateConfig"),
    "surprisal": Command(
        "eval.surprisal", "write the surprisal of each word of a text", "eval.config:SurprisalCommand"
    ),
    "questionnaire": Command(
        "eval.questionnaire", "put pairs before people, and read their answers", "eval.config:QuestionnaireCommand"
    ),
    "export": Command(
        "eval.export", "write runs as models of the transformers library, with model cards", "eval.config:ExportConfig"
    ),
    "import_checkpoint": Command(
        "train.import_checkpoint", "make a published checkpoint a run of a study", "train.config:RunConfig"
    ),
    "lmplz": Command("train.lmplz", "build KenLM's programs, which n-gram models need"),
    "tasks": Command("eval.tasks", "keep the grid of a file of SLURM tasks"),
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
