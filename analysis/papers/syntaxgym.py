"""Hu et al. 2020 from their per-item results: SG scores by model, by architecture and corpus, and against perplexity.

eval/published/syntaxgym.csv and analysis/published/sg_scores.csv hold the scores, which tests/bench/syntaxgym.py
computes.
"""

from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.accuracies import matrix_chart
from analysis.exhibits.figures.syntaxgym import corpus_chart, perplexity_score_chart
from analysis.exhibits.tables.text import as_it_is, decimal_text, signed_text
from analysis.published import published_file
from eval.published import read_published
from eval.syntaxgym.measures import ALL_ITEMS, ALL_SUITES, CIRCUIT, OVERALL, SG_SCORE
from eval.syntaxgym.suites import CIRCUITS

CORPORA = ("XS", "SM", "MD", "LG")  # samples of BLLIP, of 1M to some 40M words
_CONTROLLED = ("LSTM", "ON-LSTM", "RNNG", "GPT-2", "n-gram")  # the architectures of the paper's comparison


def syntaxgym_exhibits() -> list[Exhibit]:
    """Return the counterparts of the paper's figures 1 to 5."""
    runs = published_file("sg_scores")
    order = {corpus: at for at, corpus in enumerate(CORPORA)}
    runs = runs[runs["architecture"].isin(_CONTROLLED)].sort_values("corpus", key=lambda name: name.map(order))
    return [_models(), _corpora(runs), _perplexity(runs)]


def syntaxgym_measures() -> dict[str, float]:
    """Return the numbers that statements of the paper are about."""
    runs = published_file("sg_scores")
    runs = runs[runs["architecture"].isin(_CONTROLLED)]
    cells = runs.groupby(["architecture", "corpus"])[SG_SCORE].mean().unstack()
    of_architectures, of_corpora = cells.mean(axis="columns"), cells.mean(axis="index")
    spread, of_sizes = (np.std(means.to_numpy(), ddof=1) for means in (of_architectures, of_corpora))
    return {
        "deviation over architectures less that over corpora": float(spread - of_sizes),
        "lead of RNNG over LSTM": float(of_architectures["RNNG"] - of_architectures["LSTM"]),
        "models and corpora": float(cells.count().sum()),
    }


def _models() -> Exhibit:
    rows = read_published("syntaxgym")
    rows = rows[rows["level"].isin([OVERALL, CIRCUIT])]
    columns = [SG_SCORE, *sorted(CIRCUITS), ALL_SUITES, ALL_ITEMS]
    table = rows.pivot(index="model", columns="name", values="accuracy")[columns].rename_axis(None, axis=1)
    table = table.sort_values(SG_SCORE, ascending=False).reset_index()
    drawn = rows[rows["name"].isin(columns)].set_index(["model", "name"])
    keys = pd.MultiIndex.from_product([table["model"], columns], names=["model", "name"])
    cells = drawn.reindex(keys)["accuracy"].reset_index()
    draw = partial(matrix_chart, cells, "model", "name", "accuracy", domain=(0.0, 1.0), legend="score")
    about = (
        "Figures 1 and 5, from the authors' results of each item. SG score: mean over the suites in the six circuits, "
        "which the figures show; all suites: the three others, too (fgd-embed3, fgd-embed4, nn-nv-rpl); all items: the "
        "share of all 842. Models without a corpus came trained; several runs of one are averaged."
    )
    return Exhibit("syntaxgym-models", "SG scores of models", about, table, charts={"models": draw})


def _corpora(runs: pd.DataFrame) -> Exhibit:
    long = runs.melt(["architecture", "corpus", "seed"], [SG_SCORE, *sorted(CIRCUITS)], "suites", "score")
    means = long.groupby(["suites", "architecture", "corpus"], sort=False)["score"].mean().unstack("corpus")
    table = means[list(CORPORA)].rename_axis(None, axis=1).reset_index()
    charts = {
        f"corpora-{number}": partial(corpus_chart, rows, str(name))
        for number, (name, rows) in enumerate(long.groupby("suites", sort=False))
    }
    about = (
        "Figures 3 and 4: scores by the size of the corpus and by architecture, means over seeds. The figures show "
        "differences from the mean of a suite; these are the scores themselves."
    )
    legend = list(dict.fromkeys(long["architecture"]))
    return Exhibit("syntaxgym-corpora", "Architecture and corpus", about, table, charts=charts, legend=legend)


def _perplexity(runs: pd.DataFrame) -> Exhibit:
    of_words = runs[runs["architecture"] != "GPT-2"]  # its perplexity is of pieces of words
    neural = of_words[of_words["architecture"] != "n-gram"]
    rho, of_neural = (float(spearmanr(rows["perplexity"], rows[SG_SCORE]).statistic) for rows in (of_words, neural))
    about = (
        "Figure 2: a mark for each model that was trained on a sample of BLLIP. The perplexity of GPT-2 is one of "
        "pieces of words, and no other model's counterpart."
    )
    takeaway = (
        f"Spearman's correlation of perplexity and SG score is {signed_text(rho, digits=2)} over {len(of_words)} "
        f"models of words, {signed_text(of_neural, digits=2)} without the n-grams."
    )
    draw = partial(perplexity_score_chart, runs.rename(columns={SG_SCORE: "score"}))
    table = runs[["architecture", "corpus", "seed", "perplexity", SG_SCORE]]
    cells = {"seed": as_it_is, "perplexity": decimal_text}
    return Exhibit(
        "syntaxgym-perplexity", "Perplexity and SG score", about, table, cells=cells, charts={"models": draw},
        takeaways=[("", takeaway)],
    )  # fmt: skip
