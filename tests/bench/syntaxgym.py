"""SG scores of Hu et al. 2020 from their per-item results, by our measures.

    git clone https://github.com/cpllab/syntactic-generalization FOLDER
    python tests/bench/syntaxgym.py --repository FOLDER

Writes eval/published/syntaxgym.csv, by model, and analysis/published/sg_scores.csv, by trained model with perplexities.
As in the authors' analysis, an item of their n-gram models is right if it is in more than half of 51 runs, which differ
in random decisions between ties, and the runs without random decisions (ngram-no-rand) are left out.
"""

import argparse
from pathlib import Path

import pandas as pd

from eval.syntaxgym.measures import ALL_ITEMS, ALL_SUITES, CIRCUIT, OVERALL, SG_SCORE, SUITE, measures
from eval.syntaxgym.suites import circuit_of
from pairscale.tables import write_csv

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "eval" / "published" / "syntaxgym.csv"
BY_RUN = ROOT / "analysis" / "published" / "sg_scores.csv"
ORIGIN = {"source": "cpllab/syntactic-generalization@43f1f86 data/raw", "licence": "MIT"}
ARCHITECTURES = {
    "1gram": "1-gram", "ngram": "n-gram", "vanilla": "LSTM", "ordered-neurons": "ON-LSTM", "rnng": "RNNG",
    "gpt-2": "GPT-2", "grnn": "GRNN", "jrnn": "JRNN", "transformer-xl": "Transformer-XL",
    "gpt-2-pretrained": "GPT-2", "gpt-2-xl-pretrained": "GPT-2-XL",
}  # fmt: skip


def items(folder: Path) -> pd.DataFrame:
    """Return the success of each item: kind, corpus (XS to LG; "" for models that came trained), seed, suite, item."""
    files = sorted((folder / "data" / "raw" / "sg_results").glob("*.csv"))
    rows = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    rows[["kind", "corpus", "seed"]] = rows["model"].str.split("_", n=2, expand=True).fillna("")
    rows["corpus"] = rows["corpus"].str.extract(r"^bllip-(\w\w)", expand=False).fillna("").str.upper()
    rows["seed"] = pd.to_numeric(rows["seed"]).fillna(0).astype(int)
    rows = rows[rows["kind"].isin(ARCHITECTURES)]
    keys = ["kind", "corpus", "suite", "item"]
    votes = rows[rows["kind"] == "ngram"].groupby(keys, as_index=False)["correct"].mean()
    votes = votes.assign(correct=votes["correct"] > 0.5, seed=0)
    return pd.concat([rows[rows["kind"] != "ngram"], votes], ignore_index=True)


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the measures of one model's items."""
    filled = {"prediction": 1, "comparison": None, "formula": "", "tie": False, "unk": 0}
    success = rows.assign(success=rows["correct"].astype(bool), circuit=rows["suite"].map(circuit_of), **filled)
    return measures(success)


def tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of both files."""
    by_model, by_run = [], []
    perplexities = pd.read_csv(folder / "data" / "raw" / "perplexity.csv")
    perplexities["size"] = perplexities["corpus"].str.extract(r"^bllip-(\w\w)", expand=False).str.upper()
    tokens = {"gpt-2": "-gptbpe"}  # the tokenization of the models that have results
    for (kind, corpus, seed), rows in items(folder).groupby(["kind", "corpus", "seed"], sort=False):
        table = scores(rows)
        architecture = ARCHITECTURES[kind]
        by_model.append(
            table.assign(model=f"{architecture}, BLLIP-{corpus}" if corpus else architecture, corpus=corpus)
        )
        overall = table.set_index(["level", "name"])["accuracy"]
        name = f"bllip-{corpus.lower()}{tokens.get(kind, '')}" if corpus else ""
        own = perplexities[(perplexities["model"] == kind) & (perplexities["corpus"] == name)]
        own = own[own["seed"].astype(int) == seed]["test_ppl"]
        means = {column: overall[OVERALL, column] for column in (SG_SCORE, ALL_SUITES, ALL_ITEMS)}
        circuits = {name: score for (level, name), score in overall.items() if level == CIRCUIT}
        if corpus:
            by_run.append({
                "architecture": architecture, "corpus": corpus, "seed": seed,
                "perplexity": own.iloc[0] if len(own) else None, **means, **circuits,
            })  # fmt: skip
    pooled = pd.concat(by_model)
    pooled = pooled[(pooled["level"] != SUITE) | (pooled["corpus"] == "")]
    order = ["level", "name", "model"]
    means = pooled.groupby(order, sort=False, as_index=False)["accuracy"].mean().round(4).assign(**ORIGIN)
    return means, pd.DataFrame(by_run).round(4).sort_values(["architecture", "corpus", "seed"]).assign(**ORIGIN)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", type=Path, required=True, help="a checkout of syntactic-generalization")
    for file, table in zip((PUBLISHED, BY_RUN), tables(parser.parse_args().repository), strict=True):
        write_csv(file, table)
        print(f"{file}: {len(table)} rows")
