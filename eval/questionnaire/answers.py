"""Read the files of answers that a form's page (page.html) saves, and measure how much people agree.

    {"schema": "pairscale-answers", "version": 2,
     "benchmark": its name, "digest": the digest of its pairs, "form": "form-1",
     "rater": 16 random hexadecimal digits,
     "native": whether the person is a native speaker, according to the person,
     "answers": [{"paradigm", "pair_id", "first", "second", "chosen": "first" | "second", "ms"}, ...]}

Files are checked, because anyone could have changed them. Answers are in the order in which people saw the questions.
`first` was on the left, or at the top on a phone, and `ms` is the time for which the pair was visible, in milliseconds.
An attention check has no paradigm and pair_id. Instead, it has `check`, the sentence that everyone should choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Meta, Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy.special import ndtri, stdtrit

from eval.config import QuestionnaireConfig
from eval.scores.table import percent
from pairscale.console import say
from pairscale.errors import NAME, InputError
from pairscale.schema import Count, Digest, read_json
from pairscale.shares import wilson
from pairscale.tables import filled_table, print_table

if TYPE_CHECKING:
    from eval.benchmarks.load import Benchmark

SCHEMA, VERSION = "pairscale-answers", 2
MAX_BYTES = 20_000_000
AGREEMENT = [
    "level", "name", "paradigms", "pairs", "raters", "judgements", "agreement", "low", "high", "majority", "ties",
    "seconds",
]  # fmt: skip
JUDGEMENTS = ["rater", "paradigm", "phenomenon", "pair_id", "right", "seconds"]


class _Answer(Struct):
    first: str
    second: str
    chosen: Literal["first", "second"]
    ms: Count
    paradigm: str = ""
    pair_id: str = ""
    check: str | None = None


class _File(Struct):
    schema: Literal["pairscale-answers"]
    benchmark: Annotated[str, Meta(pattern=rf"\A{NAME.pattern}\Z")]
    digest: Digest
    rater: Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]
    native: bool
    answers: Annotated[list[_Answer], Meta(min_length=1)]


def read_answers(paths: Sequence[str]) -> pd.DataFrame:
    """Read the answers to pairs from files, or from all .json files in folders.

    The columns are file, benchmark, digest, rater, native, failed (number of failed attention checks in the file),
    paradigm, pair_id, first, second, chosen (a sentence) and seconds. Raises InputError if a file is missing or too
    large, or if it isn't a file of answers.
    """
    tables = []
    for file in _files(paths):
        if file.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{file}: this file is larger than {MAX_BYTES // 10**6} MB, so it isn't a file of answers. Use the "
                "file that a form's page saved."
            )
        content = read_json(file, _File, InputError, "use a file that a form's page saved", VERSION)
        table = pd.DataFrame([msgspec.structs.asdict(answer) for answer in content.answers])
        table["chosen"] = table["first"].where(table["chosen"] == "first", table["second"])
        is_check = table["check"].notna()
        failed = int((is_check & (table["chosen"] != table["check"])).sum())
        about = {"benchmark": content.benchmark, "digest": content.digest, "rater": content.rater}
        tables.append(table[~is_check].assign(file=str(file), **about, native=content.native, failed=failed))
    return pd.concat(tables, ignore_index=True).assign(seconds=lambda table: table["ms"] / 1000)


def _files(paths: Sequence[str]) -> list[Path]:
    files: list[Path] = []
    for path in (Path(path).expanduser() for path in paths):
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside or not path.exists():
            raise InputError(f"people={path}: there are no files of answers (.json) here. Correct the path.")
        files += inside
    return files


def counted(
    answers: pd.DataFrame, name: str, digest: str, pairs: pd.DataFrame, config: QuestionnaireConfig
) -> tuple[pd.DataFrame, list[str]]:
    """Return the human judgements that can be used, and sentences about the answers that are left out.

    Args:
        answers: The answers, from `read_answers`.
        name: Name of the benchmark.
        digest: Digest of the benchmark's pairs.
        pairs: The benchmark's pairs, with the columns of eval.scores.schemas.ITEMS.
        config: The settings that decide which answers to leave out.

    Returns:
        A table with the columns JUDGEMENTS, and the sentences. `right` is True if the good sentence was chosen.

    Raises InputError if answers are about other pairs, or if no answers can be used.
    """
    for row in answers[(answers["benchmark"] != name) | (answers["digest"] != digest)].to_dict("records"):
        raise InputError(
            f"{row['file']}: these answers are about {row['benchmark']} (pairs {row['digest'][:8]}), but the benchmark "
            f"is {name} (pairs {digest[:8]}). Use the same benchmark settings as for the forms."
        )
    rows = answers.merge(pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]], "left", ["paradigm", "pair_id"])
    as_is = (rows["first"] == rows["good"]) & (rows["second"] == rows["bad"])
    swapped = (rows["first"] == rows["bad"]) & (rows["second"] == rows["good"])
    for row in rows[~(as_is | swapped)].to_dict("records"):
        pair = f"{row['pair_id']!r:.40} of {row['paradigm']!r:.60}"
        raise InputError(
            f"{row['file']}: this file is damaged, because {name} doesn't contain the pair {pair}. Leave it out."
        )
    failed, foreign = rows["failed"] > config.max_failed_checks, ~rows["native"] & config.native_only
    rows["why"] = np.select(
        [failed, foreign],
        [
            f"more attention checks failed than questionnaire.max_failed_checks={config.max_failed_checks}",
            "not a native speaker (questionnaire.native_only=true)",
        ],
        "",
    )
    again = rows.duplicated(["rater", "paradigm", "pair_id", "why"])
    rows.loc[again & (rows["why"] == ""), "why"] = "the same person had judged the pair before"
    notes = [
        f"Left out {len(out):,} answers in {out['file'].nunique()} of {rows['file'].nunique()} files: {why}."
        for why, out in rows[rows["why"] != ""].groupby("why")
    ]
    rows = rows[rows["why"] == ""]
    if rows.empty:
        raise InputError(f"people: none of the answers about {name} can be used. {' '.join(notes)}")
    return rows.assign(right=rows["chosen"] == rows["good"])[JUDGEMENTS], notes


def print_agreement(benchmark: Benchmark, people: Sequence[str], config: QuestionnaireConfig) -> None:
    """Print how much people agree. `people` contains files or folders of answers.

    Raises the same errors as `read_answers` and `counted`.
    """
    judgements, notes = counted(read_answers(people), benchmark.name, benchmark.digest, benchmark.pairs, config)
    print_table(Console(), agreement_table(benchmark.name, agreement(judgements), config.threshold))
    for note in notes:
        say(note, "note", "yellow")


def agreement(judgements: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Measure how much people agree with the labels, by paradigm, by phenomenon and overall.

    Args:
        judgements: The judgements, with the columns JUDGEMENTS.
        confidence: Confidence level of the intervals.

    Returns:
        A table with the columns AGREEMENT. `agreement` is the share of single judgements that agree with the label, and
        `low` and `high` are its confidence interval for new people and pairs. `majority` is the share of pairs for
        which more than half of the judgements agree, and `ties` is the number of pairs for which exactly half do.
        `seconds` is the median time per judgement. By phenomenon and overall, shares are means over paradigms.
    """
    table = []
    units = [(level, *unit) for level in ("paradigm", "phenomenon") for unit in judgements.groupby(level)]
    for level, name, rows in [*units, ("overall", "overall", judgements)]:
        votes = rows.groupby(["paradigm", "pair_id"])["right"].mean()
        counts = (rows["paradigm"].nunique(), len(votes), rows["rater"].nunique(), len(rows))
        share = float(rows.groupby("paradigm")["right"].mean().mean())
        majority = float((votes > 0.5).groupby(level="paradigm").mean().mean())
        of_votes = (majority, int((votes == 0.5).sum()), float(rows["seconds"].median()))
        table.append((level, name, *counts, share, *_interval(rows, share, confidence), *of_votes))
    return pd.DataFrame(table, columns=AGREEMENT)


def _interval(rows: pd.DataFrame, share: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval for a mean over paradigms, for new people and new pairs of the same paradigms.

    Judgements by the same person or about the same pair are correlated, so the variance has two-way clustering. It is
    the variance by person, plus the variance by pair (within paradigms), minus the variance of single judgements
    (Cameron, Gelbach and Miller 2011, equation 2.11). The number of trials is the number of independent judgements with
    this variance, but at most the number of all judgements (Korn and Graubard 1998). The smaller number of clusters
    determines the degrees of freedom. With only one person, or only one pair in a paradigm, the result is NaN.
    """
    by_paradigm = rows.groupby("paradigm")
    raters, pairs = rows["rater"].nunique(), by_paradigm["pair_id"].nunique()
    if raters < 2 or pairs.min() < 2:
        return math.nan, math.nan
    sizes, means = (by_paradigm["right"].transform(of) for of in ("size", "mean"))
    rest = (rows["right"] - means) / (len(pairs) * sizes)
    of_people = (rest.groupby(rows["rater"]).sum() ** 2).sum() * raters / (raters - 1)
    of_pairs = (rest.groupby([rows["paradigm"], rows["pair_id"]]).sum() ** 2).groupby(level="paradigm").sum()
    variance = of_people + (of_pairs * pairs / (pairs - 1)).sum() - (rest**2).sum()
    trials = min(float(len(rows)), share * (1 - share) / variance if variance > 0 else math.inf)
    freedom = float(min(raters - 1, (pairs - 1).sum()))
    # Wilson's interval with a quantile of Student's t is the same as with the normal quantile and fewer trials.
    fewer = (ndtri(0.5 + confidence / 2) / stdtrit(freedom, 0.5 + confidence / 2)) ** 2
    return wilson(share, trials * fewer, confidence)


def agreement_table(title: str, table: pd.DataFrame, threshold: float) -> Table:
    """Return a table for the terminal, in %, with the rows of `table`, which is a result of `agreement`."""
    percents = table[["agreement", "low", "high", "majority"]].map(percent)
    percents["majority"] += np.where((table["level"] == "paradigm") & (table["majority"] < threshold), "!", " ")
    counts = table[["name", "raters", "pairs", "judgements"]]
    cells = pd.concat([counts, percents, table["ties"], table["seconds"].round(1)], axis=1).astype(str)
    headings = ["paradigm", "people", "pairs", "judged", "agree", "low", "high", "majority", "ties", "seconds"]
    shown = filled_table(headings, cells.to_numpy().tolist(), headings[:1])
    shown.title = Text(title)
    shown.caption = Text(
        "Agreement in %, with 95% confidence intervals for new people and pairs. Phenomena and overall are means over "
        "paradigms. Majority: pairs for which more than half of the people agree with the benchmark. ! marks paradigms "
        f"below {threshold:.0%}."
    )
    return shown
