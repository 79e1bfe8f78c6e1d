"""Sizes of few runs, which show little of how much runs differ, or nothing: shown, but not part of lines."""

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.curves.designs import is_trajectory, sizes_of
from analysis.study.judgements import Judgements
from pairscale.sizes import readable_size


def sizes_of_few(runs: pd.DataFrame, least: int) -> dict[str, list[str]]:
    """Return the sizes of each group that have fewer runs than `least`, smallest first; runs: rows of Study.runs.

    None of groups that would keep fewer than two sizes, and of checkpoints of one training.
    """
    few = {}
    for group, part in runs.groupby("group", sort=False):
        counts = part["size"].value_counts()
        sizes = [size for size in sizes_of(part) if counts[size] < least]
        if sizes and len(counts) - len(sizes) > 1 and not is_trajectory(part):
            few[str(group)] = sizes
    return few


def without_sizes(judged: Judgements, left_out: Mapping[str, Sequence[str]]) -> Judgements:
    """Return the judgements without the runs of some sizes of groups."""
    rows = zip(judged.runs["group"], judged.runs["size"], strict=True)
    kept = [size not in left_out.get(str(group), ()) for group, size in rows]
    return judged if all(kept) else judged.of_runs([*judged.runs.index[kept]])


def with_least_runs(judged: Judgements, least: int) -> Judgements:
    """Return the judgements that lines are fitted to: without the sizes of fewer runs than `least`."""
    return without_sizes(judged, sizes_of_few(judged.runs, least))


def few_notes(runs: pd.DataFrame, least: int) -> list[str]:
    """Say which sizes no line is fitted to."""
    return [
        f"{group}: {'one run' if least == 2 else f'fewer than {least} runs'} at {named(sizes)}: shown, but no part of "
        f"its slope (analysis.least_runs={least})."
        for group, sizes in sizes_of_few(runs, least).items()
    ]


def named(sizes: Sequence[str]) -> str:
    """List sizes: "31,250, 1M"."""
    return ", ".join(map(readable_size, sizes))
