"""Read a command line: flags, folders of the user's own configurations, and overrides (key=value)."""

import argparse
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException

from pairscale.errors import ConfigError

_FLAGS = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
_FLAGS.add_argument("-m", "--multirun", action="store_true", dest="sweeps")
_FLAGS.add_argument("-c", "--cfg", choices=["job"])
_FLAGS.add_argument("-cd", "--config-dir", action="append", default=[], dest="folders")
_PART = re.compile(r"""'[^']*'|"[^"]*"|[][(),]|[^][(),'"]+""")  # quoted text, separators, and values


@dataclass(frozen=True)
class Line:
    """A command line.

    Attributes:
        overrides: the words key=value, as typed
        folders: folders of the user's own files. A file in an earlier folder hides files of the same name in later ones
        sweeps: whether to run each point of a grid (-m)
        shows: whether to print the configuration instead of running (--cfg job)
        command: one of pairscale.COMMANDS; "" when used as a library
    """

    overrides: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    sweeps: bool = False
    shows: bool = False
    command: str = ""

    @classmethod
    def of(cls, words: Sequence[str], command: str = "") -> "Line":
        """Read the words of a command line. Raises ConfigError for an unknown flag or a missing folder."""
        try:
            flags, overrides = _FLAGS.parse_known_args(words)
        except argparse.ArgumentError as error:
            raise ConfigError(f"{error}. See --help.") from None
        for word in overrides:
            if word.startswith("-"):
                flag, _, value = word.partition("=")
                following = next((one for one in overrides[overrides.index(word) + 1 :] if "=" not in one), "VALUE")
                hint = f"{flag.lstrip('-').replace('-', '_')}={value or following}"
                raise ConfigError(f"There is no option {flag}. Write {hint} (--help lists the keys).")
        if missing := [folder for folder in flags.folders if not Path(folder).is_dir()]:
            hint = "Give a folder with the layout of conf/: model/NAME.yaml, experiment/NAME.yaml and so on."
            raise ConfigError(f"--config-dir {missing[0]}: this folder does not exist. {hint}")
        folders = tuple(Path(folder).resolve() for folder in flags.folders)
        return cls(tuple(overrides), folders, flags.sweeps, flags.cfg is not None, command)

    @property
    def words(self) -> list[str]:
        """The words to start another process with, first the folders and then the overrides."""
        return [*(word for folder in self.folders for word in ("--config-dir", str(folder))), *self.overrides]

    @property
    def written(self) -> str:
        """The words as a user would type them, with folders inside the current one as relative paths."""
        here = Path.cwd()
        near = [folder.relative_to(here) if folder.is_relative_to(here) else folder for folder in self.folders]
        return shlex.join([*(word for folder in near for word in ("--config-dir", str(folder))), *self.overrides])

    def __getitem__(self, key: str) -> str | None:
        """Return the last value that was typed for a key, or None if there is none."""
        return next((one.partition("=")[2] for one in reversed(self.overrides) if key_of(one) == key), None)


_current = Line()


def current() -> Line:
    """Return the command line of this process, or an empty one when used as a library."""
    return _current


def set_current(line: Line) -> None:
    global _current
    _current = line


def key_of(override: str) -> str:
    """Return the key or group of an override, such as "model" for "+model@package=lstm"."""
    return re.split(r"[=@]", override.lstrip("+~"))[0]


def parsed(override: str, texts: Iterable[str] = ()) -> Override:
    """Parse an override. A value that Hydra cannot read, such as a(b) or é, is taken as text.

    `texts` are the keys for text, whose values are not read as numbers. Raises ConfigError if there is no
    value, or if Hydra cannot read a value with a comma.
    """
    key, equals, value = override.partition("=")
    attempts = [_quote_texts(override, texts), _quote_texts(override, [key.lstrip("+")], all_of_it=True)]
    attempts += [] if "," in value else [f"{key}={_in_quotes(value)}"]
    for attempt in attempts if equals or override.startswith("~") else ():
        try:
            return OverridesParser.create().parse_override(attempt)
        except ValueError:  # raised by Python for integers of more than 4,300 digits
            raise ConfigError(f"{key_of(override)}: this number has over 4,300 digits. Use a smaller one.") from None
        except HydraException:
            continue
    if "," in value:
        hint = f"If a text contains a comma, put quotes around it, inside the shell's quotes: \"{key}='TEXT'\"."
    else:
        hint = "Write it without spaces, such as study=mine (--help lists the keys)."
    raise ConfigError(f"{override}: this argument must be key=value. {hint}")


def _quote_texts(override: str, texts: Iterable[str], all_of_it: bool = False) -> str:
    """Put quotes around each value of an override that Hydra would change, or could not read because of a "=".

    Only keys in `texts` are changed. With `all_of_it`, also quote the values that Hydra cannot read for other reasons.

    >>> keys = {"study", "remove"}
    >>> _quote_texts("study=1.10,b", keys), _quote_texts("remove=seed=2", keys), _quote_texts("seed=1_000", keys)
    ("study='1.10',b", "remove='seed=2'", 'seed=1_000')
    """
    key, equals, value = override.partition("=")
    parts = _PART.findall(value)
    if not equals or key.lstrip("+") not in texts or "\\" in value or "".join(parts) != value:
        return override
    return f"{key}={''.join(_quote(part, all_of_it) for part in parts)}"


def _quote(part: str, all_of_it: bool) -> str:
    """Put quotes around a part of a value if Hydra would otherwise not read it as this text."""
    text = part.strip()
    if not text or text in "[](),":
        return part
    try:
        value = OverridesParser.create().parse_rule(text, "primitive")
    except (HydraException, ValueError):
        return part.replace(text, _in_quotes(text)) if all_of_it else part
    is_text = value is None or isinstance(value, (str, QuotedString))
    is_kept = is_text and ("=" not in text or "${" in text or text[0] in "'\"")
    return part if is_kept else part.replace(text, _in_quotes(text))


def _in_quotes(text: str) -> str:
    return QuotedString(text, Quote.single).with_quotes()
