"""Which values each command uses: one that a user types and that the command would never read is an error.

All commands have one configuration (conf/base.yaml), and experiments' files have values for several of them: only what
is typed is checked. Folders, the study, its seed and `trainer`, the machine, are for any command, so that a script can
give them to all. Once each command has a schema with no other keys than its own, the schemas will replace this table.
"""

import re
from collections.abc import Sequence

from pairscale import COMMANDS
from pairscale.errors import ConfigError

_RUNS = ("train", "eval", "plan")  # a plan is one of runs: its grid has any of their values
_TEXTS = ("corpora", "annotate", "find", *_RUNS)

# Environment variable of a process whose words include a point of a grid. The sweep that started it has checked what
# was typed, and an axis of an experiment may be one that this command does not use.
CHECKED = "PAIRSCALE_CHECKED"

# Key, or group, -> the commands that use it, the most usual first. An entry "key." stands for every key below `key`; it
# is there if other commands use those keys than use `key` itself, the choice of a file. Keys without an entry are for
# all commands.
_USED: dict[str, tuple[str, ...]] = {
    "corpus": _TEXTS,
    "corpus.path": (*_TEXTS, "analysis", "status"),  # which an experiment may leave open
    "tokenizer": _TEXTS,  # what a corpus of pretokenised text asks for
    "sample": ("corpora", *_RUNS),
    "filter": ("corpora", "find", *_RUNS),
    "ablate": ("corpora", *_RUNS),
    "ablate.layer": ("corpora", "find", *_RUNS),
    "ablate.listing": ("corpora",),
    "find": ("find",),
    "parser": ("annotate",),
    "processes": ("annotate",),
    "model": (*_RUNS, "import_checkpoint", "surprisal"),
    "recipe": _RUNS,
    "precision": _RUNS,
    "logger": ("train", "eval", "analysis"),
    "dry_run": ("train", "eval", "corpora", "annotate", "import_checkpoint", "generate"),
    "dry_run_words_per_s": ("train", "eval"),
    "verbose": ("train", "eval"),
    "benchmark": ("eval", "generate", "questionnaire", "plan", "analysis", "figure", "table"),
    "benchmark.": ("eval", "generate", "questionnaire", "plan"),
    "benchmark.name": ("eval", "generate", "questionnaire", "plan", "analysis", "figure", "table"),
    "benchmark.path": ("eval", "generate", "questionnaire", "plan", "analysis"),  # some have no default
    "benchmarks": ("eval",),
    "method": ("eval",),
    "policy": ("eval", "surprisal"),
    "unigrams": ("eval",),
    "scoring": ("eval",),
    "scoring.batch_tokens": ("eval", "surprisal"),
    "ties": ("eval", "export", "plan", "analysis", "figure", "table"),
    "questionnaire": ("questionnaire", "analysis"),
    "people": ("questionnaire", "analysis"),
    "text": ("surprisal",),
    "surprisal": ("surprisal",),
    "run": ("export", "surprisal"),
    "format": ("export", "analysis", "reading"),
    **dict.fromkeys(("push", "licence"), ("export",)),
    "output": ("export", "figure", "table"),
    "what": ("table",),
    **dict.fromkeys(("phenomena", "paradigms", "curves"), ("figure",)),
    **dict.fromkeys(("source", "path", "columns", "results"), ("analysis", "figure", "table")),
    "published": ("analysis",),
    "analysis": ("analysis", "figure", "plan", "reading"),
    **dict.fromkeys(("analysis.method", "analysis.faulty_pairs"), ("analysis", "figure", "plan", "reading", "table")),
    **dict.fromkeys(("times", "reading"), ("reading",)),
    **dict.fromkeys(("effect", "power", "goal", "pilot", "spread", "rate", "plan"), ("plan",)),
    **dict.fromkeys(("remove", "yes"), ("status",)),
}


def check_used(command: str, overrides: Sequence[str]) -> None:
    """Raise ConfigError for the first of the typed overrides that `command` does not use."""
    for override in overrides:
        key = re.split(r"[=@]", override.lstrip("+~"))[0]
        using = _commands_using(key)
        if using is not None and command not in using:
            raise ConfigError(
                f"{override}: python -m {COMMANDS[command][0]} does not use {key}, so leave it out. {_users(using)} it."
            )


def _users(commands: Sequence[str]) -> str:
    """Return the subject and the verb of a sentence on the commands that use a value, of which it names two at most."""
    first, *others = (f"python -m {COMMANDS[one][0]}" for one in commands)
    if len(others) == 1:
        return f"{first} and {others[0]} use"
    return f"{first}, among others, uses" if others else f"{first} uses"


def _commands_using(key: str) -> tuple[str, ...] | None:
    """Return the commands that use a key, by the longest part of it that is listed; None for all commands."""
    if key in _USED:
        return _USED[key]
    while "." in key:
        key = key.rpartition(".")[0]
        for listed in (f"{key}.", key):
            if listed in _USED:
                return _USED[listed]
    return None
