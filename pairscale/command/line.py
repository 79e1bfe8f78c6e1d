"""The words of a command line: flags, folders of one's own configurations, and overrides (key=value)."""

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
_PART = re.compile(r"""'[^']*'|"[^"]*"|[][(),]|[^][(),'"]+""")  # quoted text, what stands between values, and these


@dataclass(frozen=True)
class Line:
    """A command line.

    overrides: as typed. folders: of one's own configurations; a file of an earlier one hides those of later ones.
    sweeps: run each point of a grid. shows: print the configuration instead of running. command: of pairscale.COMMANDS;
    "" in a library.
    """

    overrides: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    sweeps: bool = False
    shows: bool = False
    command: str = ""

    @classmethod
    def of(cls, words: Sequence[str], command: str = "") -> "Line":
        """Read the words of a command line. Raises ConfigError for an unknown flag and a folder that is not there."""
        try:
            flags, overrides = _FLAGS.parse_known_args(words)
        except argparse.ArgumentError as error:
            raise ConfigError(f"{error}; see --help") from None
        for word in overrides:
            if word.startswith("-"):
                flag, _, value = word.partition("=")
                following = next((one for one in overrides[overrides.index(word) + 1 :] if "=" not in one), "VALUE")
                hint = f"{flag.lstrip('-').replace('-', '_')}={value or following}"
                raise ConfigError(f"{flag}: no such option; write {hint} (--help lists the keys)")
        if missing := [folder for folder in flags.folders if not Path(folder).is_dir()]:
            hint = "must be a folder like conf/, with model/NAME.yaml and so on"
            raise ConfigError(f"--config-dir {missing[0]}: no such folder; {hint}")
        folders = tuple(Path(folder).resolve() for folder in flags.folders)
        return cls(tuple(overrides), folders, flags.sweeps, flags.cfg is not None, command)

    @property
    def words(self) -> list[str]:
        """The words for another process: folders first, then overrides."""
        return [*(word for folder in self.folders for word in ("--config-dir", str(folder))), *self.overrides]

    @property
    def written(self) -> str:
        """The words as a user would type them, with folders relative to this one where they can be."""
        here = Path.cwd()
        near = [folder.relative_to(here) if folder.is_relative_to(here) else folder for folder in self.folders]
        return shlex.join([*(word for folder in near for word in ("--config-dir", str(folder))), *self.overrides])

    def __getitem__(self, key: str) -> str | None:
        """The last value that was typed for a key; None if there is none."""
        return next((one.partition("=")[2] for one in reversed(self.overrides) if key_of(one) == key), None)


_current = Line()


def current() -> Line:
    """Return the command line of this process; an empty one in a library."""
    return _current


def set_current(line: Line) -> None:
    global _current
    _current = line


def key_of(override: str) -> str:
    """Return the key, or group, of an override: "model" of "+model@package=lstm"."""
    return re.split(r"[=@]", override.lstrip("+~"))[0]


def parsed(override: str, texts: Iterable[str] = ()) -> Override:
    """Parse an override, of whose keys `texts` take text. What Hydra cannot read, as a(b) or é, is text for any key.

    Raises ConfigError if there is no value, or one with a comma that Hydra cannot read.
    """
    key, equals, value = override.partition("=")
    attempts = [_quote_texts(override, texts), _quote_texts(override, [key.lstrip("+")], all_of_it=True)]
    attempts += [] if "," in value else [f"{key}={_in_quotes(value)}"]
    for attempt in attempts if equals or override.startswith("~") else ():
        try:
            return OverridesParser.create().parse_override(attempt)
        except ValueError:  # of Python: an integer of more than 4,300 digits
            raise ConfigError(f"{key_of(override)}: its number has more than 4,300 digits; no key takes it") from None
        except HydraException:
            continue
    hint = (
        f"; quote a text with a comma, for the shell too: \"{key}='TEXT'\"" if "," in value else ", such as study=mine"
    )
    raise ConfigError(f"{override}: must be key=value{hint} (see --help)")


def _quote_texts(override: str, texts: Iterable[str], all_of_it: bool = False) -> str:
    """Return an override of a key in `texts` with each value in quotes that Hydra would change or, for a =, refuse.

    all_of_it: also what it would refuse for other characters.

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
    """Return a part of a value in quotes if Hydra would not take it for the text that it is."""
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
