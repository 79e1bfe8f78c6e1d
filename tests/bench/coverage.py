"""How often the 95% intervals of the analysis hold the truth, in made-up studies whose truth is known.

    python tests/bench/coverage.py [--studies N] [--resamples N] [--csv FILE]

Prints one row for each cell, quantity and question, and writes them as CSV. With 2,000 studies the standard error of a
coverage of 95% is .5%. The studies are those of tests/made_up_judgements.py: pairs crossed with runs, a spread between
runs that falls or rises threefold from the smallest to the largest size, a truth that is a line or a sigmoid (whose
slope is that of the least-squares line through the accuracies expected at the sizes studied). Of two groups compared
the other has shallower slopes and the same pairs; people are asked 100 questions a paradigm.
"""

import argparse
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.comparisons import slope_difference
from analysis.config import CurvesConfig
from analysis.curves import GroupFit, fit_group
from analysis.intervals import (
    BOOTSTRAP,
    bootstrap_limits,
    resampled_accuracies,
    resampled_runs,
    slope_limits,
    slope_weights,
    t_limits,
)
from analysis.variance import pair_variance
from analysis.words_to_people import line_reaches
from corpora.files import write_text
from tests.made_up_judgements import MadeUpJudgements

FILE = Path(__file__).parents[2] / "analysis" / "results" / "coverage.csv"
SPREADS = {"falls": (0.35, 0.12), "rises": (0.12, 0.35)}
PEOPLE = 0.93  # their true accuracy in each unit
ASKED = 100  # judgements of people of each paradigm
UNITS = {"overall": 0, "paradigm": 3}  # of which coverage is told, and their places in Units.table
KEYS = ["seeds", "sizes", "samples", "truth", "spread", "quantity", "question", "level", "interval", "used"]
THESE, NEW = "these pairs", "new pairs too"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=1000, seed=1)


def simulate(cell: MadeUpJudgements, studies: int, config: CurvesConfig = CONFIG, seed: int = 1) -> pd.DataFrame:
    """Rows quantity, question, level, interval, used (by the analysis), studies, covered (share), width (mean).

    An interval that is not used is one that the analysis used, or could: it shows why not.
    """
    rng, runs = np.random.default_rng(seed), cell.design.cluster.max() + 1
    shallower = tuple((start, gain / 2) for start, gain in cell.paradigms)
    other = MadeUpJudgements(**{**vars_of(cell), "paradigms": shallower})
    held, width = defaultdict(list), defaultdict(list)

    def note(quantity, question, interval, used, low, high, truth, outside=None):
        inside = (low < truth) & (truth < high)
        if outside is not None:  # a set without bounds is all but what lies between
            inside = np.where(outside, ~inside, inside)
        for level, u in UNITS.items():
            held[quantity, question, level, interval, used].append(bool(inside[u]))
            width[quantity, question, level, interval, used].append(float(high[u] - low[u]))

    for study in range(studies):
        pairs = cell.draw_pairs(rng)
        outcome, expected = cell.draw(rng, pairs)
        outcome_other, expected_other = other.draw(rng, pairs)
        fit, fit_other = (
            fit_group(name, np.arange(len(of)), of, cell.design, cell.units, config.interval)
            for name, of in (("one", outcome), ("other", outcome_other))
        )
        truth = {THESE: cell.slope_of(expected), NEW: cell.slope_new_pairs}
        truth_other = {THESE: other.slope_of(expected_other), NEW: other.slope_new_pairs}
        at_study = CurvesConfig("lp", config.interval, config.confidence, config.resamples, 1_000_003 * seed + study)
        drawn = None
        if fit.method == BOOTSTRAP:
            generator = np.random.default_rng([at_study.seed, 0])
            drawn = resampled_accuracies(outcome, cell.units.bounds, config.resamples, generator)
        limits = slope_limits(fit.method, fit.line, fit.errors, fit.y, cell.design, cell.units, at_study, drawn)
        note("slope", THESE, fit.method, True, *limits[:2], truth[THESE])
        note("slope", NEW, fit.method, True, *limits[2:], truth[NEW])
        for question, interval, low, high in unused(cell, fit, outcome, drawn, at_study):
            note("slope", question, interval, False, low, high, truth[question])
        found = slope_difference(fit, fit_other, outcome, outcome_other, cell.units, config, np.full(runs, -1))
        for question, suffix in ((THESE, ""), (NEW, "_new_pairs")):
            ends = found[f"low{suffix}"], found[f"high{suffix}"]
            note("difference of slopes", question, fit.method, True, *ends, truth[question] - truth_other[question])
        low, high, bounded, at = reached(cell, fit, outcome, expected, config.confidence, rng)
        note("log2 words to people", THESE, "Fieller", True, low, high, at, ~bounded)
    rows = [
        {**dict(zip(KEYS[5:], key, strict=True)), "studies": len(of), "covered": np.mean(of)}
        for key, of in held.items()
    ]
    # Of words to people the width is a median: some sets have no bounds.
    widths = [np.nanmedian(of) if key[0].startswith("log2") else np.mean(of) for key, of in width.items()]
    return pd.DataFrame(rows).assign(width=widths)


def vars_of(cell: MadeUpJudgements) -> dict:
    """The fields of a cell."""
    return {name: getattr(cell, name) for name in cell.__dataclass_fields__}


def unused(cell: MadeUpJudgements, fit: GroupFit, outcome: np.ndarray, drawn: np.ndarray | None, config: CurvesConfig):
    """Intervals that the analysis does not use: question, name, low, high."""
    design, units, line = cell.design, cell.units, fit.line
    c = slope_weights(design.x, np.ones((1, len(design.x))))[0]
    runs, sizes = len(c), cell.sizes
    every = np.full(len(line.slope), 1.0)
    of_pairs = pair_variance(c @ outcome, units.bounds, units.weights)
    means = np.stack([fit.y[design.size == s].mean(axis=0) for s in range(sizes)])
    residual = fit.y - line.intercept - np.outer(design.x, line.slope)
    plain = np.sqrt((residual**2).sum(axis=0) / (runs - 2) * (c**2).sum())
    pooled = ((fit.y - means[design.size]) ** 2).sum(axis=0) / (runs - sizes)
    error = np.sqrt(pooled * (c**2).sum())
    yield THESE, "t, spread pooled within sizes", *t_limits(line.slope, error, every * (runs - sizes), 0.95)
    if drawn is None:
        twice = np.sqrt(plain**2 + of_pairs)
        yield NEW, "t, chance counted twice", *t_limits(line.slope, twice, every * (runs - 2), 0.95)
        return
    yield THESE, "t interval on run accuracies", *t_limits(line.slope, plain, every * (runs - 2), 0.95)
    weights = resampled_runs(design.stratum, config.resamples, np.random.default_rng([config.seed, 1]))
    resampled = np.einsum("br,brk->bk", slope_weights(design.x, weights[:, design.cluster]), drawn) @ units.weights
    deviation = resampled.std(axis=0)
    limits = bootstrap_limits(line.slope, deviation, resampled, every * (runs - sizes), 0.95, 0 * every)
    yield NEW, "bootstrap, chance counted three times", *limits


def reached(
    cell: MadeUpJudgements, fit: GroupFit, outcome: np.ndarray, expected: np.ndarray, confidence: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """low, high, whether the set lies between them, and the true log2(words) at which the line reaches people."""
    asked = rng.binomial(ASKED, PEOPLE, size=len(cell.paradigms)) / ASKED
    share = (ASKED * asked + 2) / (ASKED + 4)
    error = np.sqrt((share * (1 - share) / (ASKED + 4)) @ cell.units.weights**2)
    _, low, high, bounded = line_reaches(fit, outcome, cell.units, asked @ cell.units.weights, error, confidence)
    level = expected.mean(axis=0) @ cell.units.weights
    at = cell.at.mean() + (PEOPLE - level) / cell.slope_of(expected)
    return low, high, bounded, at


def cells() -> list[tuple[dict, MadeUpJudgements]]:
    """What is simulated: the columns that name each cell, and the cell."""
    found = []
    for truth, spread, sizes, seeds in product(("line", "sigmoid"), SPREADS, (4, 10), (2, 5)):
        named = {"seeds": seeds, "sizes": sizes, "samples": "independent", "truth": truth, "spread": spread}
        found.append((named, MadeUpJudgements(seeds, sizes, truth, SPREADS[spread])))
    for sizes, seeds in product((4, 10), (2, 5)):
        named = {"seeds": seeds, "sizes": sizes, "samples": "nested", "truth": "line", "spread": "falls"}
        found.append((named, MadeUpJudgements(seeds, sizes, "line", SPREADS["falls"], nested=True)))
    return found


def coverage(studies: int, resamples: int = CONFIG.resamples, progress=lambda part: None) -> pd.DataFrame:
    """All cells: KEYS, studies, covered, standard_error, width."""
    config = CurvesConfig("lp", "auto", 0.95, resamples, 1)
    parts = []
    for named, cell in cells():
        parts.append(simulate(cell, studies, config).assign(**named))
        progress(parts[-1])
    table = pd.concat(parts, ignore_index=True)
    error = np.sqrt(table["covered"] * (1 - table["covered"]) / table["studies"])
    columns = [*KEYS, "studies", "covered", "standard_error", "width"]
    return table.assign(standard_error=error.round(5), width=table["width"].round(5))[columns]


def terminal_table(table: pd.DataFrame, studies: int) -> Table:
    """The intervals that the analysis uses, a line a cell: coverage overall and of a paradigm."""
    shown = Table(
        title=f"coverage of 95% intervals, {studies:,} studies a cell: overall, one paradigm", title_justify="left",
        caption="green: 93% to 97%; others lie outside, those not used are in the CSV", caption_justify="left",
        box=None, pad_edge=False,
    )  # fmt: skip
    quantities = [("slope", THESE), ("slope", NEW), ("difference of slopes", THESE), ("difference of slopes", NEW)]
    quantities.append(("log2 words to people", THESE))
    headers = ["slope,\nthese", "new\npairs", "difference,\nthese", "new\npairs", "words to\npeople"]
    shown.add_column("truth, spread, samples")
    for header in ("seeds", "sizes", *headers):
        shown.add_column(header, justify="right", no_wrap=True)
    for cell, rows in table[table["used"]].groupby(KEYS[:5], sort=False):
        seeds, sizes, samples, truth, spread = cell
        covered = rows.set_index(["quantity", "question", "level"])["covered"]
        texts = [f"{truth}, {spread}, {samples}", str(seeds), str(sizes)]
        for key in quantities:
            both = [float(covered[*key, level]) for level in UNITS]
            colours = ["green" if 0.93 <= value <= 0.97 else "yellow" for value in both]
            texts.append(" ".join(f"[{colour}]{value:.3f}[/]" for colour, value in zip(colours, both, strict=True)))
        shown.add_row(*texts)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=CONFIG.resamples)
    parser.add_argument("--csv", type=Path, default=FILE, help="where the table goes")
    arguments = parser.parse_args()
    console = Console()
    with console.status("simulating") as status:
        done = 0

        def progress(part: pd.DataFrame) -> None:
            nonlocal done
            done += 1
            status.update(f"simulated {done} of {len(cells())} cells of {arguments.studies:,} studies")

        table = coverage(arguments.studies, arguments.resamples, progress)
    write_text(arguments.csv, table.to_csv(index=False, lineterminator="\n"))
    console.print(terminal_table(table, arguments.studies))
    console.print(f"{arguments.csv}", markup=False)


if __name__ == "__main__":
    main()
