"""Published tables of others, and what their papers state about them, checked with these tables.

    python tests/bench/others.py --fict tidy_results.csv --pythia evals/pythia-v0

--fict: results/data/tidy_results.csv of https://github.com/CLMBRs/corpus-filtering (Patil et al. 2024, GPL-3).
--pythia: the folder of https://github.com/EleutherAI/pythia (Biderman et al. 2023, Apache 2.0), of which the zero-shot
results of the models with two million tokens per step are read. CLiMP's table 2 (Xiang et al. 2021) and the SG scores
of Hu et al. 2020 are in this repository. For each table, the program writes slopes into analysis/results/others/, or
accuracies if there is one size. It also writes statements.csv:

    in_table   whether the published numbers themselves agree with the statement
    verdict    holds, or does not hold: the 95% interval of `ours` lies on one side of `value`, or within the tolerance;
               cannot be told: it doesn't, or nothing published gives an interval (`why`)

Intervals are about new initialisations: none of these papers trained the runs of one size on different texts.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis import fit_curves, unit_accuracies
from analysis.published import published_file
from analysis.sources.published import Published
from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.statements import CLIMP_PARADIGMS
from eval.published import read_published
from eval.syntaxgym.suites import CIRCUITS
from pairscale.files import write_text
from tests.bench.filtered_corpus import read_tidy

FOLDER = Path(__file__).parents[2] / "analysis" / "results" / "others"
SHOWN = ["curve", "level", "name", "paradigms", "runs", "sizes", "slope", "low", "high", "largest_accuracy"]
STATEMENTS = [
    "table", "place", "statement", "quantity", "relation", "value", "tolerance", "ours", "low", "high", "runs",
    "in_table", "verdict", "why",
]  # fmt: skip
TWO_MILLION = ("70m", "1b", "2.8b", "6.9b", "12b")  # version 0 trained the others with four million tokens per step
PYTHIA = r"/(?P<model>pythia-[0-9.]+[mb](?:-deduped)?)/zero-shot/.*_step(?P<size>\d+)_"
MARGIN = 0.02  # accuracy: what is called alike
ONE_RUN = "one run of some model and size"


@dataclass(frozen=True)
class Cell:
    """The accuracies of the runs of one model and size, and the weight of their mean in a difference."""

    weight: float
    accuracies: Iterable[float]


def contrast(cells: Iterable[Cell], confidence: float = 0.95) -> tuple[float, float, float, int]:
    """Return a weighted sum of means of independent runs, its limits (Satterthwaite 1946), and the number of runs.

    NaN limits where a mean is of one run.
    """
    cells = [Cell(cell.weight, np.asarray(list(cell.accuracies), dtype=np.float64)) for cell in cells]
    estimate = float(sum(cell.weight * np.mean(cell.accuracies) for cell in cells))
    counts = np.asarray([len(cell.accuracies) for cell in cells])
    if (counts < 2).any():
        return estimate, np.nan, np.nan, int(counts.sum())
    variances = np.asarray([cell.weight**2 * np.var(cell.accuracies, ddof=1) / len(cell.accuracies) for cell in cells])
    degrees = variances.sum() ** 2 / (variances**2 / (counts - 1)).sum()
    half = float(student.ppf(0.5 + confidence / 2, degrees) * np.sqrt(variances.sum()))
    return estimate, estimate - half, estimate + half, int(counts.sum())


def stated(
    about: tuple[str, str, str, str],
    relation: str,
    found: tuple[float, float, float, int],
    value: float = 0.0,
    tolerance: float = 0.0,
    why: str = "",
) -> dict[str, object]:
    """Return a row of STATEMENTS; `about`: table, place, statement, quantity; `found`: as of `contrast`.

    Relation "=": an interval within the tolerance of the value shows it.
    """
    ours, low, high, runs = found
    inside = abs(ours - value) <= tolerance
    holds = {">": low > value, "<": high < value, "=": low > value - tolerance and high < value + tolerance}[relation]
    fails = {">": high < value, "<": low > value, "=": low > value + tolerance or high < value - tolerance}[relation]
    verdict = "holds" if holds else "does not hold" if fails else "cannot be told"
    if verdict == "cannot be told" and not why:
        why = ONE_RUN if np.isnan(low) else "the interval holds both"
    in_table = {">": ours > value, "<": ours < value, "=": inside}[relation]
    named = dict(zip(STATEMENTS[:4], about, strict=True))
    numbers = {
        "value": value,
        "tolerance": tolerance if relation == "=" else np.nan,
        "ours": ours,
        "low": low,
        "high": high,
    }
    return {
        **named, "relation": relation, **numbers, "runs": runs, "in_table": "yes" if in_table else "no",
        "verdict": verdict, "why": "" if verdict != "cannot be told" else why,
    }  # fmt: skip


def read_climp(folder: Path) -> Published:
    """Read CLiMP's table 2: accuracies of phenomena, of the models that were trained on several amounts of text."""
    rows = read_published("climp")
    rows = rows[rows["level"] == "phenomenon"]
    parts = rows["model"].str.extract(r"^(?P<kind>LSTM|5-gram)-(?P<size>[\d.]+M)-(?P<unit>word|char)$")
    table = pd.DataFrame({
        "model": parts["kind"] + ", " + parts["unit"].map({"word": "words", "char": "characters"}),
        "size": parts["size"], "phenomenon": rows["name"], "accuracy": rows["accuracy"],
        "n": 1000 * rows["name"].map(CLIMP_PARADIGMS),
    }).dropna()  # fmt: skip
    table.to_csv(folder / "climp.csv", index=False)
    return read_source("table", folder / "climp.csv", OutcomeColumns(), ResultsConfig("climp", "sentences"))


def read_hu(folder: Path) -> Published:
    """Read the SG scores of circuits, of the architectures that Hu et al. 2020 compare."""
    runs = published_file("sg_scores")
    runs = runs[runs["architecture"].isin(["LSTM", "ON-LSTM", "RNNG", "GPT-2", "n-gram"])]
    table = runs.melt(["architecture", "corpus", "seed"], sorted(CIRCUITS), "circuit", "score")
    table.to_csv(folder / "sg.csv", index=False)
    columns = OutcomeColumns(size="corpus", paradigm="circuit", accuracy="score")
    settings = ResultsConfig("sg", sizes={"XS": "1M", "SM": "4.8M", "MD": "14M", "LG": "42M"})
    return read_source("table", folder / "sg.csv", columns, settings)


def read_pythia(folder: Path) -> Published:
    folders = [str(folder / f"pythia-{size}{kind}" / "zero-shot") for size in TWO_MILLION for kind in ("", "-deduped")]
    settings = ResultsConfig(unit="tokens", scale=2_097_152, n=1000, pattern=PYTHIA)
    return read_source("lm_eval", folders, OutcomeColumns(), settings)


def slopes_of(found: Published) -> pd.DataFrame:
    """Return slopes overall and of phenomena, or accuracies if there is one size, with the columns SHOWN."""
    curves = fit_curves(found.accuracies)
    rows = curves[curves["level"] != "paradigm"].sort_values("curve", kind="stable")
    return rows[SHOWN].round(dict.fromkeys(["slope", "low", "high", "largest_accuracy"], 5))


def overall(found: Published) -> pd.DataFrame:
    """Return each run's overall accuracy, with its model, size, sample_words, seed and construction."""
    units = unit_accuracies(found.accuracies)
    return units[units["level"] == "overall"].merge(found.runs[["run", "construction"]], on="run")


def climp_statements(found: Published) -> list[dict[str, object]]:
    runs = overall(found).set_index(["model", "sample_words"])["accuracy"]

    def gain(model: str) -> tuple[float, float, float, int]:
        return contrast([Cell(1, [runs[model, 2_000_000]]), Cell(-1, [runs[model, 400_000]])])

    table = "CLiMP, table 2"
    rows = [
        stated(
            (table, "section 5", "5-grams are better on more text", f"{model}: 2M less .4M sentences"), ">", gain(model)
        )
        for model in ("5-gram, words", "5-gram, characters")
    ]
    for unit in ("words", "characters"):
        lstm = f"LSTM, {unit}"
        more = contrast([Cell(1, [runs[lstm, 21_500_000]]), Cell(-1, [runs[lstm, 400_000]])])
        about = table, "section 5", "the size of the corpus has little influence on LSTMs", f"{lstm}: 21.5M less .4M"
        rows.append(stated(about, "=", more, tolerance=MARGIN))
        for size in (400_000, 2_000_000):
            lead = contrast([Cell(1, [runs[lstm, size]]), Cell(-1, [runs[f"5-gram, {unit}", size]])])
            about = (
                table,
                "section 5",
                "LSTMs are better than 5-grams on the same text",
                f"{unit}, {size:,.0f} sentences",
            )
            rows.append(stated(about, ">", lead))
    return rows


def hu_statements(found: Published) -> list[dict[str, object]]:
    runs = overall(found)
    cells = {key: of["accuracy"].tolist() for key, of in runs.groupby(["model", "size"])}
    sizes = runs["size"].unique()
    table = "SG scores"

    def lead(first: str, second: str) -> tuple[float, float, float, int]:
        signs = ((first, 1 / len(sizes)), (second, -1 / len(sizes)))
        return contrast([Cell(weight, cells[model, size]) for model, weight in signs for size in sizes])

    rows = []
    for first, second in (("RNNG", "LSTM"), ("GPT-2", "LSTM"), ("RNNG", "ON-LSTM")):
        about = table, "abstract", "sequential models underperform", f"{first} less {second}, mean over four corpora"
        rows.append(stated(about, ">", lead(first, second)))
    means = pd.Series({key: np.mean(of) for key, of in cells.items()}).unstack()
    spread = float(means.mean(axis=1).std() - means.mean(axis=0).std())
    rows.append(stated(
        (table, "abstract", "scores vary more by architecture than by the size of the corpus",
         "standard deviation over architectures less that over corpora"),
        ">", (spread, np.nan, np.nan, len(runs)),
    ))  # fmt: skip
    return rows


def fict_statements(results: pd.DataFrame, found: Published) -> list[dict[str, object]]:
    runs = overall(found)
    of = {key: part["accuracy"].tolist() for key, part in runs.groupby(["model", "construction"])}
    table, corpora = "Filtered corpora", sorted(set(runs["construction"]) - {""})
    direct = results[results["filter_target"].astype(str).str.upper() == "TRUE"]
    losses = {arch: _losses(results, direct, arch, corpora) for arch in ("lstm", "transformer")}
    perplexity = results.drop_duplicates(["corpus", "arch", "seed"])
    full = {arch: perplexity.query("corpus == 'full' and arch == @arch")["test_ppl"].tolist() for arch in losses}
    between = [*losses["transformer"], *(Cell(-cell.weight, cell.accuracies) for cell in losses["lstm"])]
    better, equal = "transformers are better language models", "both architectures do equally well"
    learn = "both generalize from indirect evidence: above chance in what is removed"
    tested = "in the paradigms that test what is removed, mean over 15 corpora"
    rows = [
        stated((table, "abstract", better, "test perplexity on the full corpus, transformers less LSTMs"), "<",
               contrast([Cell(1, full["transformer"]), Cell(-1, full["lstm"])])),
        stated((table, "abstract", equal, "accuracy on the full corpus, transformers less LSTMs"), "=",
               contrast([Cell(1, of["transformer", ""]), Cell(-1, of["lstm", ""])]), tolerance=MARGIN),
        stated((table, "abstract", equal, f"change {tested}, transformers less LSTMs"), "=",
               contrast(between), tolerance=MARGIN),
    ]  # fmt: skip
    for arch, cells in losses.items():
        filtered = contrast(cells[:-1])  # without the full corpus
        rows.append(stated((table, "abstract", learn, f"accuracy {tested}, {arch}"), ">", filtered, 0.5))
        about = table, "not the paper's", "little is lost without direct evidence", f"change {tested}, {arch}"
        rows.append(stated(about, "=", contrast(cells), tolerance=MARGIN))
    return rows


def _losses(results: pd.DataFrame, direct: pd.DataFrame, arch: str, corpora: list[str]) -> list[Cell]:
    """Return the runs of every filtered corpus, and of the full one, in the paradigms that test what is removed.

    The full corpus is one set of runs: its values are means over the corpora's own paradigms.
    """
    rows = results[results["arch"] == arch]
    tested = {corpus: set(direct.loc[direct["corpus"] == corpus, "blimp_benchmark"]) for corpus in corpora}
    cells, full = [], []
    for corpus, paradigms in tested.items():
        here = rows[rows["blimp_benchmark"].isin(paradigms)]
        by_seed = here.groupby(["corpus", "seed"])["blimp_acc"].mean()
        cells.append(Cell(1 / len(corpora), by_seed[corpus].tolist()))
        full.append(by_seed["full"].sort_index().to_numpy())
    return [*cells, Cell(-1.0, np.mean(full, axis=0).tolist())]


def pythia_statements(found: Published) -> list[dict[str, object]]:
    runs = overall(found)
    last = runs[runs["sample_words"] == runs["sample_words"].max()].set_index("model")["accuracy"]
    table, statement = "Pythia, version 0", "deduplication has no clear benefit"
    rows = []
    for size in TWO_MILLION:
        gain = contrast([Cell(1, [last[f"pythia-{size}-deduped"]]), Cell(-1, [last[f"pythia-{size}"]])])
        about = table, "in the text", statement, f"{size} after the last step, deduplicated less not"
        rows.append(stated(about, "<", gain, MARGIN, why="one training of each"))
    return rows


def refit(fict: Path, pythia: Path) -> Mapping[str, pd.DataFrame]:
    """Return the tables of analysis/results/others by name."""
    with tempfile.TemporaryDirectory() as place:
        climp, hu = read_climp(Path(place)), read_hu(Path(place))
    filtered, checkpoints = read_tidy(fict), read_pythia(pythia)
    statements = [
        *climp_statements(climp), *hu_statements(hu), *fict_statements(pd.read_csv(fict, index_col=0), filtered),
        *pythia_statements(checkpoints),
    ]  # fmt: skip
    numbers = dict.fromkeys(["ours", "low", "high"], 5)
    return {
        "climp": slopes_of(climp), "sg_scores": slopes_of(hu), "filtered_corpora": slopes_of(filtered),
        "pythia": slopes_of(checkpoints), "statements": pd.DataFrame(statements)[STATEMENTS].round(numbers),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fict", type=Path, required=True, help="tidy_results.csv of CLMBRs/corpus-filtering")
    parser.add_argument("--pythia", type=Path, required=True, help="the folder evals/pythia-v0 of EleutherAI/pythia")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for the tables")
    arguments = parser.parse_args()
    for name, table in refit(arguments.fict, arguments.pythia).items():
        write_text(arguments.folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
