"""`--help` of the commands: what stands under `help` in their YAML files, and the keys and groups that they have."""

import re
import shutil
import signal
import textwrap
from collections.abc import Sequence
from dataclasses import fields

import yaml

from pairscale import COMMANDS, ROOT, as_typed
from pairscale.command.compose import group_files, is_group, schema_of

FOLDER = ROOT / "conf"
MOST_WIDTH = 120  # characters; longer lines are hard to read
_ROW = re.compile(r"( *)(.*?)(?:  +(\S.*))?$")  # indent, first column, second column
_COMMAND = re.compile(r"python -m |pairscale |watch |PAIRSCALE")


def help_text(command: str) -> str:
    """Return what a command does, its examples, groups and keys, not yet wrapped."""
    about = yaml.safe_load((FOLDER / f"{command}.yaml").read_text(encoding="utf-8"))["help"]
    names = [part.name for part in fields(schema_of(command))]
    groups = [name for name in (*names, "experiment") if is_group(name)]
    keys = [name for name in names if name not in groups]
    module = COMMANDS[command].module
    options = [
        f"  key=value         one of {', '.join(keys)}",
        "  --config-dir DIR  your own folder beside conf/: DIR/model/mine.yaml is model=mine",
        f"  --cfg job         prints all values: python -m {module} --cfg job",
    ]
    chosen = [f"  {group}=  {', '.join(group_files(group))}" for group in groups]
    return "\n\n".join([about["header"].strip(), about["footer"].strip(), "\n".join(["Values", *chosen, *options])])


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
