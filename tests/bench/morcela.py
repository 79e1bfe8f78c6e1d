"""MORCELA compared with its authors' code (Tjuatja et al. 2024), on the log-probabilities of a run.

    python tests/bench/morcela.py FOLDER runs/STUDY/RUN/scores/ratings_li

FOLDER: the one of their repository that holds linking_functions.py, which needs scikit-learn.
Prints the largest differences of predicted ratings and weights, for SLOR and MORCELA.
"""

import argparse
import importlib
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from eval.ratings.measures import features, fit, people, scores
from eval.scores.files import read_answer_file


def authors_code(folder: Path):
    """Return the authors' module; it draws with seaborn, which is not called here."""
    sys.path.insert(0, str(folder))
    sys.modules.setdefault("seaborn", types.SimpleNamespace(FacetGrid=object))
    return importlib.import_module("linking_functions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", type=Path)
    parser.add_argument("scores", type=Path)
    arguments = parser.parse_args()
    rows, _ = read_answer_file(arguments.scores, "sentences")
    columns = {"lp": "Raw Logprob", "unigram_lp": "Raw Unigram", "tokens": "Length", "rating": "Acceptability"}
    theirs = authors_code(arguments.code).LinkingFunction(rows[list(columns)].rename(columns=columns))
    # Weights of log-probability, of unigrams, of length, and its exponent; None: fitted.
    theirs.add("SLOR", 1, -1, 0, 1)
    theirs.add("MORCELA", 1, None, None, 1)
    ratings = people(rows)
    ours = fit(rows, ratings)
    of = theirs.functions["MORCELA"].params
    weights = np.abs(np.subtract(ours, (of.logprob_coef, of.unigram_coef, of.norm_intercept, of.intercept))).max()
    print(f"{len(rows)} sentences; beta {-ours[1] / ours[0]:.4f}, gamma {ours[2] / ours[0]:.4f}")
    print(f"MORCELA: predictions differ by {np.abs(features(rows) @ ours - theirs.df['MORCELA']).max():.1e} at most")
    print(f"MORCELA: weights differ by {weights:.1e} at most")
    # Theirs is fitted with the weights 1 : -1 : 0, an increasing function of SLOR where its weight is positive.
    slor = scores(rows)["slor"]
    line = np.polyval(np.polyfit(slor, ratings, 1), slor)
    print(f"SLOR: predictions differ by {np.abs(line - theirs.df['SLOR']).max():.1e} at most")
    r = {name: np.corrcoef(theirs.df[name], ratings)[0, 1] for name in ("SLOR", "MORCELA")}
    print(pd.Series(r).round(4).to_dict())


if __name__ == "__main__":
    main()
