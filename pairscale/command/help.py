"""`--help` of the commands, without composing: hydra.help in their YAML files, and the groups of conf/."""

import re
import shutil
import signal
import textwrap
from collections.abc import Sequence
from importlib import import_module

import yaml

from pairscale import ROOT, as_typed
from pairscale.command.rooms import SCHEMAS
from pairscale.command.schemas import stored_names

FOLDER = ROOT / "conf"
NO_GROUPS = ("hydra", "template", "__pycache__")  # folders of conf/ that are no configuration groups
WITHOUT_GROUPS = (
    "status",
    "import_checkpoint",
    "export",
    "surprisal",
    "reading",
    "plan",
    "train_parser",
)  # commands without configuration groups
MOST_WIDTH = 120  # characters; longer lines are hard to read
_ROW = re.compile(r"( *)(.*?)(?:  +(\S.*))?$")  # indent, first column, second column
_COMMAND = re.compile(r"python -m |pairscale |watch |PAIRSCALE")


def asks_for_help(words: Sequence[str]) -> bool:
    return "--help" in words or "-h" in words


def help_text(command: str) -> str:
    """Return the help header of conf/<command>.yaml, the configuration groups, and the footer, not yet wrapped."""
    about = yaml.safe_load((FOLDER / f"{command}.yaml").read_text(encoding="utf-8"))["hydra"]["help"]
    parts = [about["header"].strip()]
    if command not in WITHOUT_GROUPS:
        parts.append("Groups\n" + "\n".join(f"  {group}:  {', '.join(names)}" for group, names in groups().items()))
    return "\n\n".join([*parts, about["footer"].strip()])


def show_help(command: str) -> None:
    """Print the help of a command; a reader that stops early (`| head`) ends the process without a traceback."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(laid_out(as_typed(help_text(command)), terminal_width()))


def terminal_width() -> int:
    """Return the characters a line of the terminal has, at most MOST_WIDTH; 80 where the output is no terminal."""
    return min(MOST_WIDTH, shutil.get_terminal_size((80, 24)).columns)


def laid_out(text: str, width: int) -> str:
    """Return a help text with no line longer than `width`.

    Lines of two columns, which two spaces or more part, are aligned; where the first column of a block takes more than
    half of the width, the second stands below it. Other lines that are not indented are joined to paragraphs.
    """
    return "\n\n".join(_block(block.splitlines(), width) for block in text.split("\n\n"))


def _block(lines: Sequence[str], width: int) -> str:
    rows = [(match[1], match[2], match[3] or "") for line in lines if (match := _ROW.match(line))]
    columns = [len(indent + first) for indent, first, second in rows if second]
    start = max(columns, default=0) + 2
    aligned = start <= width / 2 or all(start + len(second) <= width for _, _, second in rows)
    printed: list[str] = []
    paragraph: list[str] = []
    for indent, first, second in [*rows, ("", "", "")]:
        if first and not indent and not second:
            paragraph.append(first)
            continue
        printed += _wrapped(" ".join(paragraph), width, "")
        paragraph.clear()
        if aligned and second:
            second_column = "\n".join(_wrapped(second, width, " " * start))
            printed.append(f"{indent + first:<{start}}{second_column.lstrip()}")
        else:
            printed += _command(indent + first, width) if _COMMAND.match(first) else _wrapped(first, width, indent)
            printed += _wrapped(second, width, indent + "    ")
    return "\n".join(printed)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _command(line: str, width: int) -> list[str]:
    """Return a command in lines that a shell joins."""
    indent = line[: len(line) - len(line.lstrip())]
    lines = textwrap.wrap(
        line, width - 2, subsequent_indent=indent + "    ", break_long_words=False, break_on_hyphens=False
    )
    return [*(part + " \\" for part in lines[:-1]), *lines[-1:]]


def groups() -> dict[str, list[str]]:
    """Return the configurations of each group: the files of conf/<group>/, and the methods, which have none."""
    import_module(SCHEMAS)
    names = {folder.name: {file.stem for file in folder.glob("*.yaml")} for folder in FOLDER.iterdir()}
    names["method"] = stored_names("method")
    return {group: sorted(names[group]) for group in sorted(names) if names[group] and group not in NO_GROUPS}
