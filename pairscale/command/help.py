"""`--help` of the commands: what their YAML files say under hydra.help, around the groups that conf/ holds.

Printed without composing a configuration, which takes Hydra longer than all else that a command does before its work.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

import yaml

from pairscale import ROOT, as_typed

FOLDER = ROOT / "conf"
NO_GROUPS = ("hydra", "__pycache__")  # folders of conf/ that are none
WITHOUT_GROUPS = ("status", "import_checkpoint")  # commands that choose from none


def asks_for_help(words: Sequence[str]) -> bool:
    return "--help" in words or "-h" in words


def help_text(command: str) -> str:
    """The header of conf/<command>.yaml, the groups that its values may be chosen from, its footer."""
    about = yaml.safe_load((FOLDER / f"{command}.yaml").read_text(encoding="utf-8"))["hydra"]["help"]
    parts = [about["header"].strip()]
    if command not in WITHOUT_GROUPS:
        parts.append("Groups\n" + "\n".join(f"{group}: {', '.join(names)}" for group, names in groups().items()))
    return "\n\n".join([*parts, about["footer"].strip()])


def show_help(command: str) -> None:
    """Print it. A reader that stops early (`| head`) ends the process, as with other programs, without a traceback."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(as_typed(help_text(command)))


def groups() -> dict[str, list[str]]:
    """The configurations of each group, as files of conf/<group>/."""
    folders = sorted(folder for folder in FOLDER.iterdir() if folder.is_dir() and folder.name not in NO_GROUPS)
    found = {folder.name: sorted(file.stem for file in folder.glob("*.yaml")) for folder in folders}
    return {group: names for group, names in found.items() if names}
