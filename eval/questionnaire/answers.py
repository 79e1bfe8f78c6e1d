"""Files of answers: their schema, and their reader, which trusts nothing in them. The page writes them (page.js).

    {"schema": "pairscale-answers", "version": 1,
     "benchmark": {"name", "digest"}, "form": {"name", "digest"},
     "rater": 16 hexadecimal digits, random,
     "native": whether a native speaker, as the person says,
     "hidden_field": whether a field was filled that people do not see,
     "answers": [{"paradigm", "pair_id", "position", "first", "second", "chosen": "first" | "second", "ms"}, ...],
     "checks": [{"position", "first", "second", "chosen", "ms", "passed"}, ...]}

`first` stood left, or above on a phone; `position` counts from 0 in the order shown; `ms` is how long it was seen.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from corpora.errors import InputError
from eval.questionnaire.config import QuestionnaireConfig
from eval.questionnaire.forms import form_digest

SCHEMA, VERSION = "pairscale-answers", 1
FORMS_FILE = "questionnaire.json"  # what `python -m eval.questionnaire` writes beside its forms
MAX_BYTES = 20_000_000
JUDGEMENTS = ["rater", "form", "paradigm", "phenomenon", "pair_id", "position", "right", "seconds"]
_HEX = "[0-9a-f]"


@dataclass(frozen=True)
class Sheet:
    """What one person answered on one form."""

    path: Path
    benchmark: str
    digest: str  # of the benchmark
    form: str  # digest
    rater: str
    native: bool
    hidden_field: bool
    answers: tuple[dict[str, Any], ...]  # as they stand in the file
    checks: tuple[dict[str, Any], ...]

    @property
    def failed(self) -> int:
        """Attention checks in which the wrong sentence was chosen."""
        return sum(not check["passed"] for check in self.checks)


@dataclass(frozen=True)
class Counted:
    """The answers that count.

    judgements: one row per answer, columns JUDGEMENTS: right is whether the good sentence was chosen.
    raters: people whose answers count. notes: sentences on what does not, and why.
    """

    judgements: pd.DataFrame
    raters: int
    notes: list[str] = field(default_factory=list)


def read_sheets(paths: Sequence[str]) -> list[Sheet]:
    """The answers in files, and in all .json files of folders; of one that is there twice, the first.

    Raises InputError for what is missing, too large, no JSON, of another schema or version, or not whole, and for two
    files that say different things of one person and form.
    """
    sheets: dict[tuple[str, str], Sheet] = {}
    for path in _files(paths):
        sheet = _read(path)
        same = sheets.setdefault((sheet.rater, sheet.form), sheet)
        if (same.answers, same.checks, same.native) != (sheet.answers, sheet.checks, sheet.native):
            raise InputError(
                f"{path}: other answers of rater {sheet.rater} on the same form than {same.path}; keep one"
            )
    return list(sheets.values())


def _files(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for path in (Path(given).expanduser() for given in paths):
        if not path.exists():
            raise InputError(f"people: no file or folder {path}")
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        inside = [file for file in inside if file.name != FORMS_FILE]
        if not inside:
            raise InputError(f"people: no .json files of answers in {path}")
        found += inside
    return found


def _read(path: Path) -> Sheet:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: larger than any file of answers ({MAX_BYTES // 10**6} MB)")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); must be a file that a form's page saved") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise InputError(f"{path}: no answers to a questionnaire; must be a file that a form's page saved")
    if content.get("version") != VERSION:
        raise InputError(f"{path}: answers of version {content.get('version')!r:.20}, this reads version {VERSION}")
    try:
        sheet = Sheet(
            path,
            _text(content["benchmark"]["name"], r"\w[\w.-]*"),
            _text(content["benchmark"]["digest"], _HEX + "{64}"),
            _text(content["form"]["digest"], _HEX + "{64}"),
            _text(content["rater"], _HEX + "{16}"),
            _truth(content["native"]),
            _truth(content["hidden_field"]),
            tuple(_answer(answer, {"paradigm": _text, "pair_id": _text}) for answer in _list(content["answers"])),
            tuple(_answer(check, {"passed": _truth}) for check in _list(content["checks"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({type(error).__name__}: {str(error)[:80]!r})") from None
    asked = [(answer["paradigm"], answer["pair_id"], answer["first"], answer["second"]) for answer in sheet.answers]
    checks = [(check["first"], check["second"]) for check in sheet.checks]
    positions = [said["position"] for said in (*sheet.answers, *sheet.checks)]
    if form_digest(sheet.digest, asked, checks) != sheet.form or sorted(positions) != [*range(len(positions))]:
        raise InputError(f"{path}: damaged (its pairs are not those of its form): something was removed or changed")
    return sheet


def _answer(value: Any, more: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    wanted = {"first": _text, "second": _text, "chosen": _side, "position": _count, "ms": _count, **more}
    return {name: check(value[name]) for name, check in wanted.items()}


def _text(value: Any, pattern: str = r"(?s).*") -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise ValueError(f"{value!r:.40} where {pattern} is wanted")
    return value


def _side(value: Any) -> str:
    return _text(value, "first|second")


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r:.40} where true or false is wanted")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} where a whole number from 0 is wanted")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40} where a list is wanted")
    return value


def counted(
    sheets: Sequence[Sheet], name: str, digest: str, pairs: pd.DataFrame, config: QuestionnaireConfig
) -> Counted:
    """Which sentence people chose in each pair, without the answers that `config` leaves out.

    `pairs`: columns of eval.scores.ITEMS, of the benchmark `name` with this digest. Raises InputError for answers on
    other pairs, and where none count.
    """
    known: dict[tuple[str, str], dict[Any, Any]] = {
        (row["paradigm"], row["pair_id"]): row
        for row in pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]].to_dict("records")
    }
    rows: list[dict[Hashable, Any]] = []
    seen: set[tuple[str, str, str]] = set()
    left_out: Counter[str] = Counter()
    again = 0
    for sheet in sheets:
        if (sheet.benchmark, sheet.digest) != (name, digest):
            raise InputError(
                f"{sheet.path}: answers on {sheet.benchmark} (pairs {sheet.digest[:8]}), "
                f"must be on {name} (pairs {digest[:8]})"
            )
        reason = _reason(sheet, config)
        if reason:
            left_out[reason] += 1
            continue
        for answer in sheet.answers:
            key = answer["paradigm"], answer["pair_id"]
            pair = known.get(key)
            if pair is None or {answer["first"], answer["second"]} != {pair["good"], pair["bad"]}:
                raise InputError(f"{sheet.path}: damaged: {name} has no such pair {key[1]!r:.40} of {key[0]!r:.60}")
            if (sheet.rater, *key) in seen:  # on two forms of the same person
                again += 1
                continue
            seen.add((sheet.rater, *key))
            right = answer[answer["chosen"]] == pair["good"]
            said = {"rater": sheet.rater, "form": sheet.form, "right": right, "seconds": answer["ms"] / 1000}
            rows.append(pair | said | {"position": answer["position"]})
    notes = [f"{_plural(number, 'file')} of answers left out: {reason}." for reason, number in left_out.items()]
    if again:
        notes.append(f"{_plural(again, 'answer')} left out: to pairs that the same person had judged on another form.")
    if not rows:
        raise InputError(f"people: no answers on {name} count. {' '.join(notes)}")
    found = pd.DataFrame(rows)[JUDGEMENTS]
    return Counted(found, found["rater"].nunique(), notes)


def _reason(sheet: Sheet, config: QuestionnaireConfig) -> str | None:
    """Why a file of answers does not count; None where it does."""
    if sheet.hidden_field:
        return "a field was filled that people do not see (a program's doing)"
    if config.native_only and not sheet.native:
        return "not by a native speaker (questionnaire.native_only=true)"
    if sheet.failed > config.max_failed_checks:
        allowed = f"questionnaire.max_failed_checks={config.max_failed_checks}"
        return f"more attention checks failed than allowed ({allowed})"
    return None


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
