"""BabyLM's scores of reading: the share of the variance of times that only a word's surprisal explains.

The regressions are those of the BabyLM evaluation of 2025 and 2026 (evaluation_pipeline/reading), after de Varda et al.
(2023). A word's surprisal is the sum over its tokens, without the correction for the end of a word.
"""

from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

from analysis.reading.files import LOST, column, numbers, read_rows, texts

SELF_PACED = "self_paced_reading_time"
EYE_TRACKING = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")
_OWN = "log_frequency + length + position"
_PREVIOUS = "length_1 + surprisal_1"


def babylm_scores(rows: pd.DataFrame, words: pd.DataFrame, bits: pd.Series) -> dict[str, float]:
    """Return BabyLM's scores of a model.

    Args:
        rows: The table of `read_babylm`.
        words: The table of `read_times`.
        bits: The `uncorrected` surprisal of each of these words, in bits.

    Returns:
        self_paced_r2 and eye_tracking_r2, in percent: (R2 with surprisal - R2 without) / (1 - R2 without). The
        baseline has the word's frequency, length and position and their pairwise products; that of self-paced reading
        also has the length and the surprisal of the word before. eye_tracking_r2 is the mean of four measures.
    """
    beginnings = words.groupby("text")["word"].transform(lambda of_text: list(accumulate(of_text, "{} {}".format)))
    of_beginning = pd.Series(np.asarray(bits, dtype=float), beginnings).groupby(level=0).first()
    known = rows.assign(surprisal=rows["words"].map(of_beginning), surprisal_1=rows["words_1"].map(of_beginning))
    tracked = [_explained(known, measure, _OWN) for measure in EYE_TRACKING]
    own = _explained(known, SELF_PACED, f"{_OWN} + {_PREVIOUS}")
    return {"self_paced_r2": own, "eye_tracking_r2": float(np.mean(tracked))}


def read_babylm(path: Path) -> pd.DataFrame | None:
    """Read reading_data.csv of the BabyLM evaluation, with all its measures.

    Returns:
        One row per row of the file: words (the word and all before it in its sentence, as one text), words_1 (the same
        for the word before; missing if that is the first), log_frequency, length and length_1 (characters), position
        (the number of words before), SELF_PACED and EYE_TRACKING (ms). None if a measure, Subtlex_log10
        or prev_length is missing.

    Raises:
        InputError: If something in the file is wrong.
    """
    cells = read_rows(path, "times")
    if not {"Subtlex_log10", "prev_length", SELF_PACED, *EYE_TRACKING} <= set(cells):
        return None
    words = texts(column(cells, "word"))
    contexts = [str(cell or LOST).split() for cell in column(cells, "item")]
    before = pd.Series(map(" ".join, contexts), cells.index, dtype=str)
    position = pd.Series(map(len, contexts), cells.index)
    # The evaluation reads the table with pandas, for which the previous context "None" is missing.
    has_previous = [" ".join(context[:-1]) not in ("", LOST) for context in contexts]
    table = {
        "words": (before + " " + words).str.strip(),
        "words_1": before.where(pd.Series(has_previous, cells.index)),
        "log_frequency": numbers(cells["Subtlex_log10"]),
        "length": words.str.len(),
        "length_1": numbers(cells["prev_length"]),  # without a comma
        "position": position,
        **{measure: numbers(cells[measure]) for measure in (SELF_PACED, *EYE_TRACKING)},
    }
    return pd.DataFrame(table)


def _explained(rows: pd.DataFrame, measure: str, predictors: str) -> float:
    """Return the percentage of the variance left by the predictors and their products that surprisal explains."""
    formulas = f"{measure} ~ ({predictors}) ** 2", f"{measure} ~ ({predictors}) ** 2 + surprisal"
    known = rows.dropna(subset=["surprisal", *predictors.split(" + "), measure])
    without, full = (smf.ols(formula, known).fit().rsquared for formula in formulas)
    return float(100 * (full - without) / (1 - without))
