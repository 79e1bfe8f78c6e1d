"""The words of a command line: flags, folders of one's own configurations, and overrides (key=value)."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException

from pairscale.errors import ConfigError

CONFIG_DIR = ("--config-dir", "-cd")
SWEEP = ("-m", "--multirun")
SHOW = ("-c", "--cfg")
_COMPOUND = re.compile(r"[\[{'\"]|\w+\(|.*\$\{")  # a list, a dictionary, a call, an interpolation, or quotes already
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
        overrides: list[str] = []
        folders: list[Path] = []
        flags: set[str] = set()
        rest = list(words)
        while rest:
            flag, equals, value = (word := rest.pop(0)).partition("=")
            if not word.startswith("-"):
                overrides.append(word)
            elif flag in CONFIG_DIR:
                value = value if equals else rest.pop(0) if rest else ""
                if not value or not Path(value).is_dir():
                    raise ConfigError(
                        f"{flag} {value}: no such folder; must be a folder like conf/, with model/NAME.yaml and so on"
                    )
                folders.append(Path(value).resolve())
            elif flag in SHOW:
                value = value if equals else rest.pop(0) if rest else ""
                if value != "job":
                    raise ConfigError(f"{flag} {value}: give --cfg job, which prints all values of this command")
                flags.add(flag)
            elif word in SWEEP:
                flags.add(flag)
            else:
                key = flag.lstrip("-").replace("-", "_")
                following = next((one for one in rest[:1] if "=" not in one), "VALUE")
                hint = f"write {key}={value or following}" if key else "write key=value"
                raise ConfigError(f"{flag}: no such option; {hint} (--help lists the keys)")
        return cls(tuple(overrides), tuple(folders), bool(flags & set(SWEEP)), bool(flags & set(SHOW)), command)

    @property
    def words(self) -> list[str]:
        """The words for another process: folders first, then overrides."""
        return [*(word for folder in self.folders for word in ("--config-dir", str(folder))), *self.overrides]

    @property
    def written(self) -> str:
        """The words as a user would type them, with folders relative to this one where they can be.

        The axes of a sweep (-m) stay as they are: in quotes, 4k,8k would be one value.
        """
        here = Path.cwd()
        near = [folder.relative_to(here) if folder.is_relative_to(here) else folder for folder in self.folders]
        flags = [word for folder in near for word in ("--config-dir", str(folder))]
        return shlex.join([*flags, *self.overrides])

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
    """Parse an override, of whose keys `texts` take text. Raises ConfigError for one that cannot be read."""
    try:
        return OverridesParser.create().parse_override(with_texts(override, texts))
    except ValueError:  # of Python: an integer of more than 4,300 digits
        raise ConfigError(f"{key_of(override)}: its number has more than 4,300 digits; no key takes it") from None
    except HydraException as error:
        said = f"; {' '.join(str(error).split())[:200]}" if "=" in override else ", such as study=mine (see --help)"
        hint = with_quotes_hint(override) or f"{override}: must be key=value{said}"
        raise ConfigError(hint) from None


def spelled(override: Override) -> str:
    """Return a parsed override as it is written."""
    return str(override.input_line)


def with_texts(override: str, texts: Iterable[str]) -> str:
    """Return an override of a key in `texts` with each value in quotes that Hydra would change or, for a =, refuse.

    >>> keys = {"study", "remove"}
    >>> with_texts("study=1.10,b", keys), with_texts("remove=seed=2", keys), with_texts("seed=1_000", keys)
    ("study='1.10',b", "remove='seed=2'", 'seed=1_000')
    """
    key, equals, value = override.partition("=")
    parts = _PART.findall(value)
    if not equals or key.lstrip("+") not in texts or "\\" in value or "".join(parts) != value:
        return override
    return f"{key}={''.join(map(_quoted, parts))}"


def _quoted(part: str) -> str:
    text = part.strip()
    try:
        value = OverridesParser.create().parse_rule(text, "primitive")
    except HydraException:
        return part
    is_kept = value is None or isinstance(value, (str, QuotedString))
    if is_kept and ("=" not in text or "${" in text or text[0] in "'\""):
        return part
    return part.replace(text, QuotedString(text, Quote.single).with_quotes())


def readable(override: str) -> str:
    """Return an override with its value in quotes where Hydra would not read it as one value, else as it is.

    Hydra reads only letters of ASCII without quotes, takes a,b for a sweep, and a=b and a(b) for mistakes.
    """
    key, equals, value = override.partition("=")
    if not equals or _COMPOUND.match(value) or _is_one_value(override):
        return override
    within = f"{key}={QuotedString(value, Quote.single).with_quotes()}"
    return within if _is_one_value(within) else override


def _is_one_value(override: str) -> bool:
    try:
        return not OverridesParser.create().parse_override(override).is_sweep_override()
    except HydraException:
        return False


def with_quotes_hint(override: str) -> str:
    """Say how to quote an override that Hydra cannot read, for the shell too; "" where quotes would not help."""
    if (within := readable(override)) == override:
        return ""
    typed = shlex.quote(within) if re.search(r'["$`\\!]', within) else f'"{within}"'
    return f"{override}: a value with such characters has to be in quotes, within those of the shell: {typed}"
