"""Names of curves and models that a report gives to something else, set apart from it."""

from dataclasses import replace

import pandas as pd

from analysis.study.collect import Study

_PAPER = " (paper)"  # after the names of published models
# Of published people, and of columns that stand beside one column for each curve or model.
_TAKEN = {
    "people", "paradigm", "phenomenon", "field", "one_prefix", "two_prefix", "level", "name", "size", "item",
    "condition", "ending", "context", "fitting",
}  # fmt: skip


def set_apart(study: Study) -> Study:
    """Return the study with "(study)" after such names of its curves and models, and a note on each.

    A published table may well have a row for people: it is not the row of people that eval.published has.
    """
    names = {str(name) for table in (study.runs, study.unplaced) for name in table["group"]}
    taken = sorted(name for name in names if name in _TAKEN or name.endswith(_PAPER))
    if not taken:
        return study
    apart = {name: _free(name, names) for name in taken}
    columns = ("group", "base")

    def renamed(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{column: table[column].replace(apart) for column in columns if column in table})

    notes = [
        f'The study\'s "{name}" is called "{new}" here: the report gives the name "{name}" to something else.'
        for name, new in apart.items()
    ]
    return replace(study, runs=renamed(study.runs), unplaced=renamed(study.unplaced), notes=[*study.notes, *notes])


def _free(name: str, names: set[str]) -> str:
    """Return `name` with a mark that none of `names` has."""
    new = f"{name} (study)"
    return _free(new, names) if new in names else new
