"""The CSV tables of a benchmark's curves besides their slopes."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_policies, compare_slopes
from analysis.curves.mixed_models import mixed_slopes
from analysis.curves.robustness.averaged_shapes import averaged_table
from analysis.curves.shapes import shape_table, unit_fits
from analysis.curves.units import units_of
from analysis.curves.words_to_people import people_accuracy, published_people, words_to_people
from analysis.study.judgements import Judgements
from pairscale.tables import write_csv


def curve_tables(
    judged: Judgements, published: pd.DataFrame, config: CurvesConfig, people: pd.DataFrame | None = None
) -> dict[str, pd.DataFrame]:
    """Return words-to-people, shapes and averaged-shapes (from six sizes on), slope-differences and mixed-model.

    `published`: eval.published.read_published of the benchmark. `people`: accuracies of others than the published
    people, as people_accuracy gives them. Slopes are compared from two groups on. The logits of the mixed model need
    judgements of pairs.
    """
    benchmark = judged.label.partition("+")[0]
    if people is None:
        design = published_people(benchmark, config.people_correlation)
        people = people_accuracy(published, units_of(judged.pairs).table, design)
    fitted = unit_fits(judged, people)
    tables = {
        "words-to-people": words_to_people(judged, config, people),
        "shapes": shape_table(fitted),
        "averaged-shapes": averaged_table(fitted, config.confidence),
        "slope-differences": compare_slopes(judged, config),
    }
    if not judged.of_paradigms:
        tables["mixed-model"] = mixed_slopes(judged, config.confidence)
    return tables


def context_changes(judged: Mapping[str, Judgements], confidence: float) -> dict[str, pd.DataFrame]:
    """Compare scores with a context before each sentence to those without (compare_policies), by label.

    Runs of all sizes together, and after them the whole at each size. `judged`: by label ("blimp",
    "blimp+context-eos-32"); compared is with the label that lacks just that.
    """
    changes = {}
    for label, of in judged.items():
        parts = label.split("+")
        without = "+".join(part for part in parts if not part.startswith("context-"))
        if without != label and without in judged:
            together = compare_policies(judged[without], of, confidence)
            at_sizes = compare_policies(judged[without], of, confidence, by=("group", "size"))
            changes[label] = pd.concat([together, at_sizes[at_sizes["level"] == "overall"]], ignore_index=True)
    return changes


def write_curve_tables(folder: Path, prefix: str, judged: Judgements, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write those tables of a benchmark that have rows, as <prefix>-<table>.csv."""
    for name, rows in tables.items():
        if len(rows):
            table = rows.assign(scores=judged.method_names, benchmark_digest=judged.digest[:16])
            write_csv(folder / f"{prefix}-{name}.csv", table)
