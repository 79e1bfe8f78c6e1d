"""Files of answers, which the page of a form saves (page.js), and the answers that count. Nothing in them is trusted.

    {"schema": "pairscale-answers", "version": 2,
     "benchmark": its name, "digest": that of its pairs, "form": "form-1",
     "rater": 16 hexadecimal digits, random,
     "native": true for a native speaker, as the person says,
     "answers": [{"paradigm", "pair_id", "first", "second", "chosen": "first" | "second", "ms"}, ...]}

Answers are in the order in which people saw them. `first` stood left, or above on a phone; `ms` is how long the pair
had been seen. An attention check has no paradigm and pair_id, but `check`, the sentence that everyone chooses.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Meta, Struct

from eval.questionnaire.config import QuestionnaireConfig
from pairscale.errors import NAME, InputError
from pairscale.schema import Count, Digest, read_json

SCHEMA, VERSION = "pairscale-answers", 2
MAX_BYTES = 20_000_000
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
    """Return the answers to pairs in files, and in all .json files of folders.

    Columns: file, benchmark, digest, rater, native, failed (attention checks of the file), paradigm, pair_id, first,
    second, chosen (a sentence) and seconds. Raises InputError for what is missing, too large or of another schema.
    """
    tables = []
    for file in _files(paths):
        if file.stat().st_size > MAX_BYTES:
            raise InputError(f"{file}: larger than any file of answers ({MAX_BYTES // 10**6} MB).")
        content = read_json(file, _File, InputError, "must be a file that a form's page saved", VERSION)
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
            raise InputError(f"people: no files of answers (.json) in {path}.")
        files += inside
    return files


def counted(
    answers: pd.DataFrame, name: str, digest: str, pairs: pd.DataFrame, config: QuestionnaireConfig
) -> tuple[pd.DataFrame, list[str]]:
    """Return people's judgements (JUDGEMENTS; right: the good sentence was chosen), and sentences on what is left out.

    `answers` are those of `read_answers`; `pairs` has the columns of eval.scores.schemas.ITEMS, of the benchmark `name`
    with this digest. Raises InputError for answers on other pairs, and if none count.
    """
    for row in answers[(answers["benchmark"] != name) | (answers["digest"] != digest)].to_dict("records"):
        raise InputError(
            f"{row['file']}: these are answers on {row['benchmark']} (pairs {row['digest'][:8]}), must be on {name} "
            f"(pairs {digest[:8]})."
        )
    rows = answers.merge(pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]], "left", ["paradigm", "pair_id"])
    as_is = (rows["first"] == rows["good"]) & (rows["second"] == rows["bad"])
    swapped = (rows["first"] == rows["bad"]) & (rows["second"] == rows["good"])
    for row in rows[~(as_is | swapped)].to_dict("records"):
        pair = f"{row['pair_id']!r:.40} of {row['paradigm']!r:.60}"
        raise InputError(f"{row['file']}: damaged: {name} has no such pair {pair}.")
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
        f"Left out: {len(out):,} answers in {out['file'].nunique()} of {rows['file'].nunique()} files: {why}."
        for why, out in rows[rows["why"] != ""].groupby("why")
    ]
    rows = rows[rows["why"] == ""]
    if rows.empty:
        raise InputError(f"people: no answers on {name} count. {' '.join(notes)}")
    return rows.assign(right=rows["chosen"] == rows["good"])[JUDGEMENTS], notes
