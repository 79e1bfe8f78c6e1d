"""`--help` of the commands: what stands under `help` in their YAML files, and the keys and groups that they have."""

import re
import shutil
import signal
import textwrap
from dataclasses import fields
from functools import partial

import yaml

from pairscale import COMMANDS, as_typed
from pairscale.command.compose import FOLDER, group_files, is_group, schema_of

MOST_WIDTH = 120  # characters; longer lines are hard to read
_ROW = re.compile(r"( *)(.*?)(?:  +(\S.*))?")  # indent, first column, second column
_COMMAND = re.compile(r"python -m |pairscale |watch |PAIRSCALE")
_wrap = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


def help_text(command: str) -> str:
    """Return what a command does, its examples, groups and keys, not yet wrapped."""
    about = yaml.safe_load((FOLDER / f"{command}.yaml").read_text(encoding="utf-8"))["help"]
    names = [part.name for part in fields(schema_of(command))]
    groups = [name for name in (*names, "experiment") if is_group(name)]
    keys = [name for name in names if name not in groups]
    rows = {
        **{f"{group}=": ", ".join(group_files(group)) for group in groups},
        "key=value": f"one of {', '.join(keys)}",
        "--config-dir DIR": "your own folder beside conf/: DIR/model/mine.yaml is model=mine",
        "--cfg job": f"prints all values: python -m {COMMANDS[command].module} --cfg job",
    }
    values = [f"  {name:<18}{text}" for name, text in rows.items()]
    return "\n\n".join([about["header"].strip(), about["footer"].strip(), "\n".join(["Values", *values])])


def show_help(command: str) -> None:
    """Print the help of a command."""
    print_help(help_text(command))


def print_help(text: str) -> None:
    """Print a help text for this terminal."""
    if hasattr(signal, "SIGPIPE"):  # a reader that stops early (`| head`) is no error
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(laid_out(as_typed(text), min(MOST_WIDTH, shutil.get_terminal_size((80, 24)).columns)))


def laid_out(text: str, width: int) -> str:
    """Return a help text with no line longer than `width`.

    Paragraphs are filled. Of a longer line with two columns, which two spaces or more part, the second goes on below
    itself, or below the first one if that takes more than half of the width; a command is broken as for a shell.
    """
    printed: list[str] = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        is_paragraph = not any(line.startswith(" ") for line in lines)
        printed += ["", *(_wrap(" ".join(lines), width) if is_paragraph else (_fit(line, width) for line in lines))]
    return "\n".join(printed[1:])


def _fit(line: str, width: int) -> str:
    match = _ROW.fullmatch(line)
    if len(line) <= width or match is None:
        return line
    indent, first, second = match.groups()
    start, below = match.start(3), indent + "    "
    if second and start <= width / 2:
        return "\n".join(_wrap(second, width, initial_indent=line[:start], subsequent_indent=" " * start))
    end = " \\\n" if _COMMAND.match(first) else "\n"
    rows = _wrap(first, width - 2, initial_indent=indent, subsequent_indent=below)
    under = _wrap(second or "", width, initial_indent=below, subsequent_indent=below)
    return "\n".join([end.join(rows), *under])
