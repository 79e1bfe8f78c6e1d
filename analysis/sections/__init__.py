"""The sections of a report on minimal pairs, and their registry.

A section is a function from `BenchmarkResults` to an exhibit, a list of exhibits, or None if there is nothing to show.
To add one, write it in a module of this folder or in a plug-in (docs/guides/extending.md).
"""

from collections.abc import Callable, Iterator, Sequence

from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.labels import check_names
from pairscale.plugins import load_members

Section = Callable[[BenchmarkResults], Exhibit | Sequence[Exhibit] | None]
ALL = "all"
_SECTIONS: dict[str, tuple[int, bool, Section]] = {}  # order, whether it is a default one, and what makes it


def section(order: int, default: bool = True) -> Callable[[Section], Section]:
    """Register a function as the section of its name.

    Args:
        order: its place in the report.
        default: whether it is shown without being asked for by `analysis.sections`.
    """

    def register(write: Section) -> Section:
        _SECTIONS[write.__name__] = (order, default, write)
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
    check_names("analysis.sections", wanted, [*sorted(_SECTIONS), ALL], "section")
    shown = [name for name, (_, default, _) in _SECTIONS.items() if default or ALL in wanted or name in wanted]
    return sorted(shown, key=lambda name: _SECTIONS[name][0])


def exhibits(results: BenchmarkResults, names: Sequence[str]) -> Iterator[Exhibit]:
    """Yield the exhibits of some sections, in order; those without anything to show yield none."""
    for name in names:
        shown = _SECTIONS[name][2](results)
        yield from [shown] if isinstance(shown, Exhibit) else shown or []
