"""Register the sections of a report on minimal pairs.

A section is a function that takes `BenchmarkResults` and returns an exhibit, a list of exhibits, or None if there is
nothing to show. To add one, write it in a module of this folder or in a plug-in (docs/guides/extending.md).
"""

from collections.abc import Callable, Iterator, Sequence

from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.labels import check_names
from pairscale.plugins import load_members

Section = Callable[[BenchmarkResults], Exhibit | Sequence[Exhibit] | None]
ALL = "all"
_SECTIONS: dict[str, tuple[int, bool, Section]] = {}  # name -> (order, is it shown by default, function)


def section(order: int, default: bool = True) -> Callable[[Section], Section]:
    """Register a function as a section, under the function's name.

    Args:
        order: The place of the section in the report.
        default: Whether the section is shown even if `analysis.sections` doesn't list it.
    """

    def register(write: Section) -> Section:
        _SECTIONS[write.__name__] = (order, default, write)
        return write

    return register


def chosen(names: Sequence[str] | str | None) -> list[str]:
    """Return the names of the sections to show, in order.

    Args:
        names: The value of `analysis.sections`, which is None (the default sections), "all", or sections to add.

    Raises:
        ConfigError: If a name is unknown.
    """
    load_members(__name__)
    wanted = [names] if isinstance(names, str) else list(names or ())
    check_names("analysis.sections", wanted, [*sorted(_SECTIONS), ALL], "section")
    selected = [name for name, (_, default, _) in _SECTIONS.items() if default or ALL in wanted or name in wanted]
    return sorted(selected, key=lambda name: _SECTIONS[name][0])


def exhibits(results: BenchmarkResults, names: Sequence[str]) -> Iterator[Exhibit]:
    """Yield the exhibits of the named sections, in order. A section may have none."""
    for name in names:
        made = _SECTIONS[name][2](results)
        yield from [made] if isinstance(made, Exhibit) else made or []
