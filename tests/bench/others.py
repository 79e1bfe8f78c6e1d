"""Published tables of others, read by `source=table` and `source=lm_eval`, and their papers' statements beside.

    python tests/bench/others.py --fict tidy_results.csv --pythia evals/pythia-v0

--fict: results/data/tidy_results.csv of https://github.com/CLMBRs/corpus-filtering (Patil et al. 2024, GPL-3).
--pythia: the folder of https://github.com/EleutherAI/pythia (Biderman et al. 2023, Apache 2.0), of which the zero-shot
results of the models with two million tokens a step are read. CLiMP's table 2 (Xiang et al. 2021) and the SG scores of
Hu et al. 2020 are in this repository. Writes into analysis/results/others/ for each table the slopes; for the filtered
corpora, which have one size, the effects, with the authors' own changes (`published`); and statements.csv:

    in_table   whether the published numbers themselves have it so
    verdict    holds, does not hold: the 95% interval of `ours` lies on that side of `value`, or within the tolerance of
               it; cannot be told: it does not, or nothing published gives an interval (`why`)

Intervals are over new initialisations: none of these papers trained the runs of one size on different texts. Equal
seeds of two filtered corpora have nothing in common (their accuracies hardly correlate), so they are not
compared in pairs.
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

from analysis import ablation_effects, fit_curves
from analysis.curves.ablations import ALL_SIZES
from analysis.published import published_file
from analysis.sources.published import Published, tested_paradigms
from analysis.sources.read import read_source
from analysis.statements import CLIMP_PARADIGMS
from eval.published import read_published
from eval.syntaxgym.suites import CIRCUITS
from pairscale.command.compose import compose
from pairscale.files import write_text

FOLDER = Path(__file__).parents[2] / "analysis" / "results" / "others"
SHOWN = ["curve", "level", "name", "paradigms", "runs", "sizes", "slope", "low", "high", "largest_accuracy", "note"]
EFFECTS = [
    "construction", "base", "level", "name", "paradigms", "accuracy", "other_accuracy", "difference", "low", "high",
    "p", "p_holm", "published",
]  # fmt: skip
STATEMENTS = [
    "table", "place", "statement", "quantity", "relation", "value", "tolerance", "ours", "low", "high", "runs",
    "in_table", "verdict", "why",
]  # fmt: skip
CLIMP = ["source=table", "results.benchmark=climp", "results.unit=sentences"]
HU = [
    "source=table", "results.benchmark=sg", "results.sizes={XS:1M,SM:4.8M,MD:14M,LG:42M}",
    "columns.model=architecture", "columns.size=corpus", "columns.paradigm=circuit", "columns.accuracy=score",
]  # fmt: skip
FICT = [
    "source=table", "results.benchmark=blimp", "results.n=1000", "results.size=66.4M", "results.full=full",
    "columns.size=''", "columns.model=arch", "columns.removed=corpus", "columns.paradigm=blimp_benchmark",
    "columns.accuracy=blimp_acc", "columns.tests=filter_target",
]  # fmt: skip
PYTHIA = [
    "source=lm_eval", "results.unit=tokens", "results.scale=2097152", "results.n=1000",
    r"results.pattern='/(?P<model>pythia-[0-9.]+[mb](?:-deduped)?)/zero-shot/.*_step(?P<size>\d+)_'",
]  # fmt: skip
TWO_MILLION = ("70m", "1b", "2.8b", "6.9b", "12b")  # version 0 trained the others with four million tokens a step
THEIRS = "blimp_delta_all_seed_avg"
MARGIN = 0.02  # accuracy: what is called alike, as analysis.ablation_margin
ONE_RUN = "one run of some model and size"


@dataclass(frozen=True)
class Cell:
    """Accuracies of the runs of one model and size, and the weight of their mean in a difference."""

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


def read(path: Path | list[Path], overrides: list[str]) -> Published:
    """Return the tables that `python -m analysis source=...` reads."""
    paths = f"[{','.join(map(str, path))}]" if isinstance(path, list) else str(path)
    config = compose("analysis", [f"path={paths}", *overrides])
    return read_source(config.source, config.path, config.columns, config.results)


def slopes_of(found: Published) -> pd.DataFrame:
    """Return the slopes of the whole and of phenomena, SHOWN."""
    slopes = fit_curves(found.accuracies)
    numbers = dict.fromkeys(["slope", "low", "high", "largest_accuracy"], 5)
    return slopes.loc[slopes["level"] != "paradigm", SHOWN].round(numbers)


def overall(found: Published) -> pd.DataFrame:
    """Return each run's mean over paradigms: curve, model, construction, size, sample_words, seed, accuracy."""
    means = found.accuracies.groupby("run", sort=False)["accuracy"].mean().rename("accuracy")
    return found.runs.merge(means, on="run")


def effects_of(found: Published, results: pd.DataFrame) -> pd.DataFrame:
    """Return what filtering changed, over all paradigms and those that test what was removed, EFFECTS."""
    direct = tested_paradigms(found.accuracies, found.runs)
    effects = ablation_effects(found.accuracies, found.runs, direct=direct, paired=False)
    effects = effects[effects["over"] == ALL_SIZES]
    keys = {"corpus": "construction", "arch": "base", "blimp_benchmark": "name"}
    theirs = results.rename(columns=keys).groupby(list(keys.values()))[THEIRS].mean().rename("published")
    effects = effects.merge(theirs.reset_index(), on=list(keys.values()), how="left")
    paradigms = effects[effects["level"] == "paradigm"]
    assert (paradigms["difference"] - paradigms["published"]).abs().max() < 1e-9
    shown = effects[effects["level"].isin(["overall", "scope"]) | effects["direct"]]
    numbers = ["accuracy", "other_accuracy", "difference", "low", "high", "p", "p_holm", "published"]
    return shown[EFFECTS].round(dict.fromkeys(numbers, 6))


def climp_table() -> pd.DataFrame:
    """Return CLiMP's table 2 as a table of `source=table`: a row a phenomenon, its accuracy and number of pairs."""
    rows = read_published("climp")
    rows = rows[rows["level"] == "phenomenon"]
    rows = rows.join(rows["model"].str.extract(r"^(?P<kind>LSTM|5-gram)-(?P<size>[\d.]+M)-(?P<unit>word|char)$"))
    rows = rows.dropna(subset="kind").replace({"unit": {"word": "words", "char": "characters"}})
    return pd.DataFrame({
        "model": rows["kind"] + ", " + rows["unit"], "size": rows["size"], "paradigm": rows["name"],
        "accuracy": rows["accuracy"], "n": [1000 * CLIMP_PARADIGMS[name] for name in rows["name"]],
    })  # fmt: skip


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


def hu_table() -> pd.DataFrame:
    """Return SG scores of the circuits as a table of `source=table`, of the architectures that were compared."""
    runs = published_file("sg_scores")
    runs = runs[runs["architecture"].isin(["LSTM", "ON-LSTM", "RNNG", "GPT-2", "n-gram"])]
    return runs.melt(["architecture", "corpus", "seed"], sorted(CIRCUITS), "circuit", "score")


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
        files = {"climp": climp_table(), "sg": hu_table()}
        for name, table in files.items():
            table.to_csv(Path(place) / f"{name}.csv", index=False)
        climp = read(Path(place) / "climp.csv", CLIMP)
        hu = read(Path(place) / "sg.csv", HU)
    filtered, results = read(fict, FICT), pd.read_csv(fict, index_col=0)
    folders = [pythia / f"pythia-{size}{kind}" / "zero-shot" for size in TWO_MILLION for kind in ("", "-deduped")]
    checkpoints = read(folders, PYTHIA)
    statements = [
        *climp_statements(climp), *hu_statements(hu), *fict_statements(results, filtered),
        *pythia_statements(checkpoints),
    ]  # fmt: skip
    numbers = dict.fromkeys(["ours", "low", "high"], 5)
    return {
        "climp": slopes_of(climp), "sg_scores": slopes_of(hu), "filtered_corpora": effects_of(filtered, results),
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
