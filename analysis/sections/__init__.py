"""The sections of a report on minimal pairs, and their registry.

A section is a function from `BenchmarkResults` to an exhibit, a list of exhibits, or None if there is nothing to show.
To add one, write it in a module of this folder or in a plug-in (docs/guides/extending.md).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from pairscale.errors import ConfigError
from pairscale.plugins import load_members

Exhibits = Exhibit | Sequence[Exhibit | None] | None
ALL = "all"


@dataclass(frozen=True)
class _Section:
    write: Callable[[BenchmarkResults], Exhibits]
    order: int
    default: bool


_SECTIONS: dict[str, _Section] = {}


def section(
    order: int, default: bool = True
) -> Callable[[Callable[[BenchmarkResults], Exhibits]], Callable[[BenchmarkResults], Exhibits]]:
    """Register a function as the section of its name.

    Args:
        order: its place in the report.
        default: whether it is shown without being asked for by `analysis.sections`.
    """

    def register(write: Callable[[BenchmarkResults], Exhibits]) -> Callable[[BenchmarkResults], Exhibits]:
        _SECTIONS[write.__name__] = _Section(write, order, default)
        return write

    return register


def chosen(names: Sequence[str] | str | None) -> list[str]:
    """Return the names of the sections to show, in order.

    Args:
        names: `analysis.sections`: None for the default ones, "all", or names of sections to show as well.

    Raises:
        ConfigError: for an unknown name.
    """
    load_members(__name__)
    wanted = [names] if isinstance(names, str) else list(names or ())
    for name in wanted:
        if name not in _SECTIONS and name != ALL:
            close = get_close_matches(name, _SECTIONS, 1)
            hint = f"Did you mean “{close[0]}”?" if close else f"Sections: {', '.join(sorted(_SECTIONS))}, or all."
            raise ConfigError(f"analysis.sections: there is no section “{name}”. {hint}")
    shown = [name for name, one in _SECTIONS.items() if one.default or ALL in wanted or name in wanted]
    return sorted(shown, key=lambda name: _SECTIONS[name].order)


def exhibits(results: BenchmarkResults, names: Sequence[str]) -> Iterator[Exhibit]:
    """Yield the exhibits of some sections, in order; those without anything to show yield none."""
    for name in names:
        shown = _SECTIONS[name].write(results)
        yield from filter(None, [shown] if isinstance(shown, Exhibit) else shown or [])
