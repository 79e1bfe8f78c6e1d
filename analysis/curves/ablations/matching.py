"""Which groups of runs are compared, which of their runs are pairs, and the units that they are compared in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from analysis.curves.designs import sizes_of
from analysis.curves.units import Units, total, units_of
from analysis.curves.variance import Numbers

NONE, REMOVE, CONTROL = "none", "remove", "control"  # actions, as runs have them
TREATMENT_CONTROL, TREATMENT_FULL, CONTROL_FULL = "treatment - control", "treatment - full", "control - full"
DIRECT, SAME, REST = "tests the construction", "same phenomena", "other phenomena"
SCOPE = "scope"  # level of these units


@dataclass(frozen=True)
class Comparison:
    """Two groups of runs whose difference is the effect of an intervention: `group` less `other`.

    rows, other_rows: numbers of their runs; the i-th are a pair (of one size and seed) if `paired`. unpaired: ids of
    runs that are left out, as the other group lacks their size and seed.
    """

    kind: str
    base: str
    filter: str
    action: str  # of the treatment, or of the control where that is compared with the full text
    dose: str
    group: str
    other: str
    rows: Numbers
    other_rows: Numbers
    paired: bool
    unpaired: tuple[str, ...] = ()


def comparisons(runs: pd.DataFrame) -> list[Comparison]:
    """Return the comparisons that the groups of a study allow; `runs`: rows of Study.runs, of all groups.

    Of each model (base) and filter: what lacks the construction, by dose, less its matched control; each less the full
    text. Controls stand for removed sentences: other actions are compared with the full text alone.
    """
    groups = runs[["base", "filter", "action", "dose", "group"]].drop_duplicates().to_dict("records")
    rows = {str(of["group"]): np.flatnonzero(runs["group"] == of["group"]) for of in groups}
    compared = []
    acting = [of for of in groups if of["action"] != NONE]
    for of in sorted(acting, key=lambda of: (of["base"], of["filter"], of["action"] == CONTROL, Fraction(of["dose"]))):
        fulls = [other for other in groups if other["action"] == NONE and other["base"] == of["base"]]
        controls = [
            other
            for other in acting
            if of["action"] == REMOVE and other["action"] == CONTROL
            and all(other[key] == of[key] for key in ("base", "filter", "dose"))
        ]  # fmt: skip
        kinds = [(TREATMENT_CONTROL, other) for other in controls]
        kinds += [(CONTROL_FULL if of["action"] == CONTROL else TREATMENT_FULL, other) for other in fulls]
        for kind, other in kinds:
            first, second = str(of["group"]), str(other["group"])
            a, b, is_paired, unpaired = paired(runs, rows[first], rows[second])
            base, name, action, dose = (str(of[key]) for key in ("base", "filter", "action", "dose"))
            if len(a):
                compared.append(Comparison(kind, base, name, action, dose, first, second, a, b, is_paired, unpaired))
    return compared


def paired(runs: pd.DataFrame, first: Numbers, second: Numbers) -> tuple[Numbers, Numbers, bool, tuple[str, ...]]:
    """Pair the runs of two groups by size and seed, as samples of one seed are drawn by the same permutation.

    Seeds of others may have nothing in common (column seeds_match). Without any pair, runs of the sizes that both have
    are independent groups; none without such a size. Returns rows, other_rows, paired and unpaired of `Comparison`.
    """
    keys = [list(zip(runs["size"].iloc[rows], runs["seed"].iloc[rows], strict=True)) for rows in (first, second)]
    place = dict(zip(keys[1], second, strict=True))
    alike = "seeds_match" not in runs or bool(runs["seeds_match"].all())
    shared = [key for key in keys[0] if key in place] if alike else []
    if shared:
        a = np.asarray([row for row, key in zip(first, keys[0], strict=True) if key in place], dtype=np.intp)
        b = np.asarray([place[key] for key in shared], dtype=np.intp)
    else:
        sizes = {size for size, _ in keys[0]} & {size for size, _ in keys[1]}
        a, b = (rows[runs["size"].iloc[rows].isin(sizes).to_numpy()] for rows in (first, second))
    used = {*a, *b}
    left = tuple(str(runs.index[row]) for row in [*first, *second] if row not in used)
    return a, b, bool(shared), left


def scoped_units(pairs: pd.DataFrame, direct: Collection[str]) -> Units:
    """Return the units of `pairs` and, of level SCOPE, the paradigms that test the construction and the others.

    `direct`: the paradigms that test it; without one among `pairs` there are no units of scopes. Each is a mean over
    its paradigms, equally weighted.
    """
    units = units_of(pairs)
    paradigms = units.table[units.table["level"] == "paradigm"]
    tests = paradigms["name"].isin(list(direct)).to_numpy()
    if not tests.any():
        return units
    same = paradigms["phenomenon"].isin(paradigms.loc[tests, "phenomenon"]).to_numpy()
    scopes = [(DIRECT, tests), (SAME, same & ~tests), (REST, ~same)]
    scopes = [(name, of) for name, of in scopes if of.any()]
    counts = paradigms["n_pairs"].to_numpy()
    rows = [
        {"level": SCOPE, "name": name, "phenomenon": "", "paradigms": int(of.sum()), "n_pairs": total(counts[of])}
        for name, of in scopes
    ]
    weights = np.stack([of / of.sum() for _, of in scopes], axis=1)
    table = pd.concat([pd.DataFrame(rows), units.table], ignore_index=True)
    return Units(units.bounds, table, np.concatenate([weights, units.weights], axis=1), units.rows_are_pairs)


def sizes_in_common(runs: pd.DataFrame, comparison: Comparison) -> list[str]:
    """Return the sizes at which a comparison has runs, smallest first."""
    return sizes_of(runs.iloc[comparison.rows])


def dose_groups(runs: pd.DataFrame) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield base, filter and dose -> group (smallest dose first; 1 is the full text) where text was removed."""
    known = runs[["base", "filter", "action", "dose", "group"]].drop_duplicates()
    for (base, name), of in known[known["action"] == REMOVE].groupby(["base", "filter"], sort=False):
        full = known[(known["action"] == NONE) & (known["base"] == base)]
        doses = {str(row["dose"]): str(row["group"]) for row in [*full.to_dict("records"), *of.to_dict("records")]}
        yield str(base), str(name), {dose: doses[dose] for dose in sorted(doses, key=Fraction)}
