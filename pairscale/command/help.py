"""Print the help of a command, which is the `help` in its YAML file and a list of its groups and keys."""

import re
import shutil
import signal
import textwrap
from dataclasses import fields
from functools import partial

import yaml

from pairscale import COMMANDS, as_typed
from pairscale.command.compose import FOLDER, group_files, is_group, schema_of

MOST_WIDTH = 120  # width in characters, because longer lines are hard to read
_ROW = re.compile(r"( *)(.*?)(?:  +(\S.*))?")  # indent, first column, second column
_COMMAND = re.compile(r"python -m |pairscale |watch |PAIRSCALE")
_wrap = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


def help_text(command: str) -> str:
    """Return the help of a command, not yet wrapped. It describes the command, with examples, groups and keys."""
    about = yaml.safe_load((FOLDER / f"{command}.yaml").read_text(encoding="utf-8"))["help"]
    names = [part.name for part in fields(schema_of(command))]
    groups = [name for name in (*names, "experiment") if is_group(name)]
    keys = [name for name in names if name not in groups]
    rows = {
        **{f"{group}=": ", ".join(group_files(group)) for group in groups},
        "key=value": f"one of {', '.join(keys)}",
        "--config-dir DIR": "a folder with your own files, such as DIR/model/mine.yaml for model=mine",
        "--cfg job": f"print all values instead of running: python -m {COMMANDS[command].module} --cfg job",
        "--version": "print the version and the commit",
    }
    values = [f"  {name:<18}{text}" for name, text in rows.items()]
    return "\n\n".join([about["header"].strip(), about["footer"].strip(), "\n".join(["Values", *values])])


def show_help(command: str) -> None:
    """Print the help of a command."""
    print_help(help_text(command))


def print_help(text: str) -> None:
    """Print a help text that fits this terminal."""
    if hasattr(signal, "SIGPIPE"):  # a reader that stops early (`| head`) is not an error
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(laid_out(as_typed(text), min(MOST_WIDTH, shutil.get_terminal_size((80, 24)).columns)))


def laid_out(text: str, width: int) -> str:
    """Wrap a help text so that no line is longer than `width`.

    Paragraphs are filled. A line can have two columns with at least two spaces between them. The second column is
    wrapped below itself, or below the first column if that is wider than half of `width`. Long commands are broken with
    backslashes, as in a shell script.
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
