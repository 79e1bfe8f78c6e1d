"""`--help` of the commands, without composing: hydra.help in their YAML files, and the groups of conf/."""

import signal
from collections.abc import Sequence

import yaml

from pairscale import ROOT, as_typed

FOLDER = ROOT / "conf"
NO_GROUPS = ("hydra", "__pycache__")  # folders of conf/ that are no configuration groups
WITHOUT_GROUPS = ("status", "import_checkpoint")  # commands without configuration groups


def asks_for_help(words: Sequence[str]) -> bool:
    return "--help" in words or "-h" in words


def help_text(command: str) -> str:
    """Return the help header of conf/<command>.yaml, the configuration groups, and the footer."""
    about = yaml.safe_load((FOLDER / f"{command}.yaml").read_text(encoding="utf-8"))["hydra"]["help"]
    parts = [about["header"].strip()]
    if command not in WITHOUT_GROUPS:
        parts.append("Groups\n" + "\n".join(f"{group}: {', '.join(names)}" for group, names in groups().items()))
    return "\n\n".join([*parts, about["footer"].strip()])


def show_help(command: str) -> None:
    """Print the help of a command; a reader that stops early (`| head`) ends the process without a traceback."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(as_typed(help_text(command)))


def groups() -> dict[str, list[str]]:
    """Return the configurations of each group: the files of conf/<group>/."""
    folders = sorted(folder for folder in FOLDER.iterdir() if folder.is_dir() and folder.name not in NO_GROUPS)
    names = {folder.name: sorted(file.stem for file in folder.glob("*.yaml")) for folder in folders}
    return {group: files for group, files in names.items() if files}
