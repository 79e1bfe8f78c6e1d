"""A sheet of sentences that a person judges, and precision and recall from it.

The sheet is a CSV file with the columns COLUMNS. It has as many matching as other sentences of the train split, in
random order and without telling which: whoever fills in 1 (has the construction) or 0 does not see what was matched.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.constructions.matches import Matches
from corpora.text import TextStore
from pairscale.errors import InputError
from pairscale.seeds import permutation
from pairscale.shares import wilson
from pairscale.tables import write_csv

FloatArray = npt.NDArray[np.float64]

COLUMNS = ("line", "sentence", "judgement")  # line: of the sentence in the text (text.txt), from 1
DRAWS = 20_000  # of the interval of recall
MAX_BYTES = 2**28


@dataclass(frozen=True)
class Share:
    """A share with its 95% interval, of `judged` sentences."""

    value: float
    low: float
    high: float
    judged: int


@dataclass(frozen=True)
class Estimates:
    """What a filled-in sheet says of a filter."""

    precision: Share
    recall: Share


def write_sheet(path: Path, text: TextStore, matches: Matches, sentences: int, seed: int) -> int:
    """Write a sheet with up to `sentences` matching and other sentences each; return the number of rows."""
    matching, others = _strata(text, matches)
    strata = enumerate((matching, others))
    drawn = [stratum[permutation(len(stratum), seed, number)[:sentences]] for number, stratum in strata]
    chosen = np.concatenate(drawn)
    chosen = chosen[permutation(len(chosen), seed, len(drawn))]
    rows = {"line": chosen + 1, "sentence": list(text.sentences(chosen)), "judgement": [""] * len(chosen)}
    write_csv(path, pd.DataFrame(rows))
    return len(chosen)


def read_sheet(path: Path, text: TextStore, matches: Matches, seed: int) -> Estimates:
    """Return precision and recall from a filled-in sheet. seed: of the draws of recall's interval.

    Recall: of M matching sentences a share p has the construction, of the N others a share q, so that the filter finds
    Mp / (Mp + Nq). Its interval has the shares drawn from their posteriors (Jeffreys' priors). Raises InputError with
    file and line for what is no sheet of this text. Rows without a judgement are left out: their order is random.
    """
    judgements = _read(path, text)
    matching, others = _strata(text, matches)
    judged = [
        np.array([judgement for line, judgement in judgements.items() if line in lines], bool)
        for lines in (set((matching + 1).tolist()), set((others + 1).tolist()))
    ]
    if not len(judged[0]):
        raise InputError(
            f"{path}: no judgement of a sentence that matches; fill in the column judgement, of a sheet of this filter"
        )
    (right, trials), (missed, other_trials) = ((int(one.sum()), len(one)) for one in judged)
    low, high = wilson(right / trials, trials)
    precision = Share(right / trials, low, high, trials)
    generator = np.random.default_rng(seed)
    p, q = (
        generator.beta(k + 0.5, n - k + 0.5, DRAWS) if n else np.full(DRAWS, np.nan)
        for k, n in ((right, trials), (missed, other_trials))
    )
    low, high = np.quantile(_recall(p, q, len(matching), len(others)), (0.025, 0.975)).tolist()
    p, q = (np.array([k / n if n else np.nan]) for k, n in ((right, trials), (missed, other_trials)))
    (recall,) = _recall(p, q, len(matching), len(others)).tolist()
    return Estimates(precision, Share(recall, low, high, trials + other_trials))


def _recall(p: FloatArray, q: FloatArray, matching: int, others: int) -> FloatArray:
    found, missed = p * matching, q * others
    with np.errstate(invalid="ignore"):  # neither: NaN
        recall: FloatArray = found / (found + missed)
    return recall


def _strata(text: TextStore, matches: Matches) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the sentences of the train split that match, and those that do not."""
    train = text.split_sentences("train")
    match = np.isin(train, matches.sentences, assume_unique=True)
    return train[match], train[~match]


def _read(path: Path, text: TextStore) -> dict[int, bool]:
    """Return the judgement of each line of the text in a sheet. Raises InputError."""
    if path.stat().st_size > MAX_BYTES:
        raise InputError(f"{path}: more than {MAX_BYTES:,} bytes; no sheet is so long")
    judgements: dict[int, bool] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            rows = csv.DictReader(file)
            if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
                raise InputError(f"{path}:1: no column {', '.join(missing)}; must have {', '.join(COLUMNS)}")
            for row in rows:
                where = f"{path}:{rows.line_num}"
                line, judgement = _checked_line(row, where, text), (row["judgement"] or "").strip()
                if judgement not in ("", "0", "1"):
                    raise InputError(f"{where}: judgement={judgement:.40}: must be 1 (has the construction) or 0")
                if line in judgements:
                    raise InputError(f"{where}: line={line}: twice")
                if judgement:
                    judgements[line] = judgement == "1"
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not readable as CSV in UTF-8 ({error})") from None
    return judgements


def _checked_line(row: dict[str, str], where: str, text: TextStore) -> int:
    line, sentence = ((row[name] or "").strip() for name in ("line", "sentence"))
    lines = text.folder / "text.txt"
    if not (line.isascii() and line.isdecimal() and 0 < int(line) <= len(text)):
        raise InputError(f"{where}: line={line:.40}: must be a line of {lines}, 1 to {len(text)}")
    if sentence.removeprefix("'") != text.sentence(int(line) - 1).strip().removeprefix("'"):  # as write_csv writes it
        raise InputError(f"{where}: not the sentence of line {line} of {lines}; a sheet is of one text")
    return int(line)
