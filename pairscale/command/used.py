"""Which values each command uses: one that a user types and that the command would never read is an error.

All commands have one configuration (conf/base.yaml), and experiments' files have values for several of them: only what
is typed is checked. Folders, the study, its seed and `trainer`, the machine, are for any command, so that a script can
give them to all.
"""

import re
from collections.abc import Sequence

from pairscale import COMMANDS
from pairscale.errors import ConfigError

_RUNS = ("train", "eval", "plan")  # a plan is one of runs: its grid has any of their values
_TEXTS = ("corpora", "annotate", "find", "overlap", *_RUNS)
_WRITING = ("generate_text",)
_PLANNING = ("plan",)

# Key, or group, -> the commands that use it. "key." is of all keys in it, for those that use only the choice of a file,
# or a part. Keys that are not here are for all commands.
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
    "model": ("import_checkpoint", "surprisal", *_WRITING, *_RUNS),
    "recipe": _RUNS,
    "precision": _RUNS,
    "logger": ("train", "eval", "analysis"),
    "dry_run": ("corpora", "annotate", "import_checkpoint", "train", "eval", "generate"),
    "dry_run_words_per_s": ("train", "eval"),
    "verbose": ("train", "eval"),
    "benchmark": ("eval", "generate", "overlap", "questionnaire", "plan", "analysis"),
    "benchmark.": ("eval", "generate", "overlap", "questionnaire", "plan"),
    "benchmark.name": ("eval", "generate", "overlap", "questionnaire", "plan", "analysis"),
    "benchmark.path": ("eval", "generate", "overlap", "questionnaire", "plan", "analysis"),  # some have no default
    "method": ("eval",),
    "template": ("eval",),
    "policy": ("eval", "surprisal"),
    "unigrams": ("eval",),
    "scoring": ("eval",),
    "scoring.batch_tokens": ("eval", "surprisal"),
    "ties": ("eval", "export", "plan", "analysis", "table"),
    "questionnaire": ("questionnaire", "analysis"),
    "people": ("questionnaire", "analysis"),
    "text": ("surprisal",),
    "surprisal": ("surprisal",),
    "run": ("export", "overlap", "surprisal", *_WRITING),
    "format": ("export", "analysis"),
    **dict.fromkeys(("push", "licence"), ("export",)),
    "output": ("export", "table"),
    "what": ("table",),
    **dict.fromkeys(("prompt", "length", "count", "temperature", "top_k", "top_p"), _WRITING),
    **dict.fromkeys(("source", "project", "path", "columns", "results", "published"), ("analysis",)),
    "analysis": ("analysis", "plan", "reading"),
    **dict.fromkeys(("times", "reading"), ("reading",)),
    **dict.fromkeys(("effect", "power", "goal", "pilot", "spread", "rate", "plan"), _PLANNING),
    **dict.fromkeys(("remove", "yes"), ("status",)),
}


def check_used(command: str, overrides: Sequence[str]) -> None:
    """Raise ConfigError for the first of the typed overrides that `command` does not use."""
    for override in overrides:
        key = re.split(r"[=@]", override.lstrip("+~"))[0]
        using = _commands_using(key)
        if using is not None and command not in using:
            others = [f"python -m {COMMANDS[one][0]}" for one in using]
            does = f"{', '.join(others[:-1])} and {others[-1]} do" if others[1:] else f"{others[0]} does"
            raise ConfigError(f"{override}: python -m {COMMANDS[command][0]} does not use {key}; {does}")


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
