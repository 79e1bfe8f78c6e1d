"""Files of answers: their schema, and a reader that trusts nothing in them. The page writes them (page.js).

    {"schema": "pairscale-answers", "version": 1,
     "benchmark": {"name", "digest"}, "form": {"name", "digest"},
     "rater": 16 hexadecimal digits, random,
     "native": true for a native speaker, as the person says,
     "hidden_field": true if a field was filled that people do not see,
     "answers": [{"paradigm", "pair_id", "position", "first", "second", "chosen": "first" | "second", "ms",
                  "earlier"}, ...],
     "checks": [{"position", "first", "second", "chosen", "ms", "earlier", "passed"}, ...]}

`first` stood left, or above on a phone; `position` counts from 0 in the order shown; `ms` is how long the pair had been
seen when it was answered. `earlier` lists {"chosen", "ms"} of the answers before, which the person went back to give
again; files of older forms, which have no way back, lack it.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pandas as pd
from msgspec import Meta

from eval.questionnaire.config import QuestionnaireConfig
from eval.questionnaire.forms import form_digest
from pairscale.errors import NAME, InputError
from pairscale.schema import Count, Digest, read_json

SCHEMA, VERSION = "pairscale-answers", 1
FORMS_FILE = "questionnaire.json"  # `python -m eval.questionnaire` writes it beside its forms
MAX_BYTES = 20_000_000
JUDGEMENTS = ["rater", "form", "paradigm", "phenomenon", "pair_id", "position", "right", "seconds"]


class _Benchmark(TypedDict):
    name: Annotated[str, Meta(pattern=rf"\A{NAME.pattern}\Z")]
    digest: Digest


class _Form(TypedDict):
    digest: Digest


class _Earlier(TypedDict):
    chosen: Literal["first", "second"]
    ms: Count


class _Choice(TypedDict):
    position: Count
    first: str
    second: str
    chosen: Literal["first", "second"]
    ms: Count
    earlier: NotRequired[list[_Earlier]]


class _Answer(_Choice):
    paradigm: str
    pair_id: str


class _Check(_Choice):
    passed: bool


class Answers(TypedDict):
    """Schema of a file of answers."""

    schema: Literal["pairscale-answers"]
    benchmark: _Benchmark
    form: _Form
    rater: Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]
    native: bool
    hidden_field: bool
    answers: list[_Answer]
    checks: list[_Check]


@dataclass(frozen=True)
class Sheet:
    """One person's answers on one form."""

    path: Path
    benchmark: str
    digest: str  # of the benchmark
    form: str  # digest
    rater: str
    content: Answers

    def reason_to_leave_out(self, config: QuestionnaireConfig) -> str | None:
        """Return why the answers do not count, None if they do."""
        if self.content["hidden_field"]:
            return "a field was filled that people do not see (a program's doing)"
        if config.native_only and not self.content["native"]:
            return "not by a native speaker (questionnaire.native_only=true)"
        if sum(not check["passed"] for check in self.content["checks"]) > config.max_failed_checks:
            allowed = f"questionnaire.max_failed_checks={config.max_failed_checks}"
            return f"more attention checks failed than allowed ({allowed})"
        return None


@dataclass(frozen=True)
class Counted:
    """The answers that count."""

    judgements: pd.DataFrame  # one row per answer, columns JUDGEMENTS; right: True if the good sentence was chosen
    raters: int  # people whose answers count
    notes: list[str] = field(default_factory=list)  # sentences on answers that do not, and why


def read_sheets(paths: Sequence[str]) -> list[Sheet]:
    """Return the answers in files, and in all .json files of folders; of two copies, the first.

    Raises InputError for what is missing, too large, no JSON, of another schema or version, or not whole, and for two
    files with different answers of one person on one form.
    """
    sheets: dict[tuple[str, str], Sheet] = {}
    for path in _files(paths):
        sheet = _read(path)
        same = sheets.setdefault((sheet.rater, sheet.form), sheet)
        if any(same.content[key] != sheet.content[key] for key in ("answers", "checks", "native")):
            raise InputError(
                f"{path}: other answers of rater {sheet.rater} on the same form than {same.path}; keep one"
            )
    return list(sheets.values())


def _files(paths: Sequence[str]) -> list[Path]:
    files: list[Path] = []
    for path in (Path(path).expanduser() for path in paths):
        if not path.exists():
            raise InputError(f"people: no file or folder {path}")
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not (sheets := [file for file in inside if file.name != FORMS_FILE]):
            raise InputError(f"people: no .json files of answers in {path}")
        files += sheets
    return files


def _read(path: Path) -> Sheet:
    with suppress(OSError):  # read_json raises it in one line
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: larger than any file of answers ({MAX_BYTES // 10**6} MB)")
    content = read_json(path, Answers, InputError, "must be a file that a form's page saved", VERSION)
    benchmark, form = content["benchmark"], content["form"]["digest"]
    answers, checks = content["answers"], content["checks"]
    pairs = [(answer["paradigm"], answer["pair_id"], answer["first"], answer["second"]) for answer in answers]
    digest = form_digest(benchmark["digest"], pairs, [(check["first"], check["second"]) for check in checks])
    positions = sorted(choice["position"] for choice in (*answers, *checks))
    if digest != form or positions != [*range(len(positions))]:
        raise InputError(f"{path}: damaged (its pairs are not those of its form): something was removed or changed")
    return Sheet(path, benchmark["name"], benchmark["digest"], form, content["rater"], content)


def counted(
    sheets: Sequence[Sheet], name: str, digest: str, pairs: pd.DataFrame, config: QuestionnaireConfig
) -> Counted:
    """Return people's choices in each pair, without the answers that `config` leaves out.

    `pairs`: columns of ITEMS (eval.scores.schemas), of the benchmark `name` with this digest. Raises InputError for
    answers on other pairs, and where none count.
    """
    known: dict[tuple[str, str], dict[Any, Any]] = {
        (row["paradigm"], row["pair_id"]): row
        for row in pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]].to_dict("records")
    }
    rows: dict[tuple[str, str, str], dict[Hashable, Any]] = {}  # by rater, paradigm and pair
    left_out: Counter[str] = Counter()
    again = changed = corrected = 0
    for sheet in sheets:
        if (sheet.benchmark, sheet.digest) != (name, digest):
            raise InputError(
                f"{sheet.path}: answers on {sheet.benchmark} (pairs {sheet.digest[:8]}), "
                f"must be on {name} (pairs {digest[:8]})"
            )
        if reason := sheet.reason_to_leave_out(config):
            left_out[reason] += 1
            continue
        corrected += sum(check["passed"] and _is_changed(check) for check in sheet.content["checks"])
        for answer in sheet.content["answers"]:
            key = answer["paradigm"], answer["pair_id"]
            pair = known.get(key)
            if pair is None or {answer["first"], answer["second"]} != {pair["good"], pair["bad"]}:
                raise InputError(f"{sheet.path}: damaged: {name} has no such pair {key[1]!r:.40} of {key[0]!r:.60}")
            if (sheet.rater, *key) in rows:  # on two forms of the same person
                again += 1
                continue
            changed += _is_changed(answer)
            first = (*answer.get("earlier", ()), answer)[0]
            rows[sheet.rater, *key] = {
                **pair,
                "rater": sheet.rater,
                "form": sheet.form,
                "right": answer[answer["chosen"]] == pair["good"],
                "seconds": first["ms"] / 1000,
                "position": answer["position"],
            }
    notes = [f"{_plural(number, 'file')} of answers left out: {reason}." for reason, number in left_out.items()]
    if again:
        notes.append(f"{_plural(again, 'answer')} left out: to pairs that the same person had judged on another form.")
    if changed:
        notes.append(f"{_plural(changed, 'answer')} changed after a step back: the last one counts.")
    if corrected:
        notes.append(f"{_plural(corrected, 'attention check')} passed only after a step back.")
    if not rows:
        raise InputError(f"people: no answers on {name} count. {' '.join(notes)}")
    judgements = pd.DataFrame(rows.values())[JUDGEMENTS]
    return Counted(judgements, judgements["rater"].nunique(), notes)


def _is_changed(choice: _Choice) -> bool:
    """Return True if the person went back and answered otherwise than before."""
    return any(earlier["chosen"] != choice["chosen"] for earlier in choice.get("earlier", ()))


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
