"""The psycholinguistic diagnostics CPRAG-102, ROLE-88 and NEG-136 (Ettinger 2020) as tables of questions.

A question is a context and a word that may end it. The paper's perturbed contexts are made here, as sections 7.1 and
8.1 say; what they leave open is taken from the facts of the authors' script (github.com/aetting/lm-diagnostics):

    cprag   truncated: of the second sentence only the last two words stay. shuffled: the first sentence's words in a
            drawn order, its final mark kept at the end. A trial has one order, with and without truncation.
    role    "which X the Y had": X becomes `one` (generic object), Y becomes `other` (generic subject).
    neg     "(a|an)" is chosen by the first letter of the word asked for.

Of an expected phrase ("worked for") the first word is the one to predict. Imports no torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from eval.benchmarks.files import given_path
from eval.benchmarks.known_items import unpublished_questions_note
from eval.config import DIAGNOSTICS, DiagnosticConfig
from pairscale.errors import InputError, check_choice
from pairscale.files import sha256_json
from pairscale.seeds import permutation

Cells = dict[str, str]
Question = dict[str, Any]

QUESTIONS = ("item", "condition", "trial", "group", "context", "candidate", "role", "cloze")
CATEGORIES = ("within_category", "between_category")  # cprag: roles of the words that do not fit

_STRAIGHT = str.maketrans("“”‘’", "\"\"''")
_ROLES = re.compile(r"(?P<before>.*\bwhich )(?P<object>.+)(?P<between> the )(?P<subject>.+)(?P<after> had)")
_ARTICLE = "(a|an)"


@dataclass(frozen=True)
class Diagnostic:
    """All questions of a diagnostic.

    questions: item, condition, trial (1, 2, ... of conditions drawn at random, else null), group (cprag: constraint H
    or L; neg: licensing Y or N; else null), context, candidate, role (expected, ..., target, true, false), cloze (share
    of people who gave the candidate; null where not published).
    digest: SHA-256 over them. notes: sentences on what is odd about them.
    """

    name: str
    questions: pd.DataFrame
    digest: str
    notes: tuple[str, ...] = ()


def load_diagnostic(config: DiagnosticConfig) -> Diagnostic:
    """Read the files of the diagnostic that `config` names.

    Raises InputError for a missing folder, file or column and for a row that does not hold what it must (with file and
    line), ConfigError for a diagnostic that does not exist.
    """
    check_choice("benchmark.name", config.name, DIAGNOSTICS)
    questions = list(_READERS[config.name](config))
    digest = sha256_json([[question[name] for name in QUESTIONS] for question in questions])
    frame = pd.DataFrame(questions, columns=list(QUESTIONS))
    note = unpublished_questions_note(config.name, frame)
    frame = frame.astype({"trial": "Int32", "cloze": "float64", "group": "str"})
    return Diagnostic(config.name, frame, digest, (note,) if note else ())


def _question(
    item: str, condition: str, context: str, candidate: str, role: str,
    trial: int | None = None, group: str | None = None, cloze: float | None = None,
) -> Question:  # fmt: skip
    values = (item, condition, trial, group, context, candidate, role, cloze)
    return dict(zip(QUESTIONS, values, strict=True))


def _cprag(config: DiagnosticConfig) -> Iterator[Question]:
    columns = ("item", "context_s1", "context_s2", "expected", *CATEGORIES, "constraint")
    for number, (where, row) in enumerate(_rows(config, "CPRAG-102.tsv", columns)):
        _check_letter(where, row, "constraint", "HL")
        item, first, second, group = (row[name] for name in ("item", "context_s1", "context_s2", "constraint"))
        for role in ("expected", *CATEGORIES):
            yield _question(item, "original", f"{first} {second}", row[role], role, group=group)
        cut = " ".join(second.split()[-2:])
        perturbed: list[tuple[str, int | None, str]] = [("truncated", None, f"{first} {cut}")]
        for trial in range(1, (config.shuffles or 0) + 1):
            shuffled = _shuffled(first, config.seed or 0, trial, number)
            perturbed.append(("shuffled", trial, f"{shuffled} {second}"))
            perturbed.append(("shuffled_truncated", trial, f"{shuffled} {cut}"))
        for condition, drawn, context in perturbed:
            yield _question(item, condition, context, row["expected"], "expected", drawn, group)


def _shuffled(sentence: str, *seeds: int) -> str:
    """The words of a sentence in an order drawn from `seeds`; its final mark stays at the end."""
    body = sentence.rstrip(".!?")
    words = body.split()
    return " ".join(words[index] for index in permutation(len(words), *seeds)) + sentence[len(body) :]


def _role(config: DiagnosticConfig) -> Iterator[Question]:
    columns = ("item", "context", "expected", "exp_cloze", "target", "tgt_cloze")
    targets: dict[str, dict[str, str]] = {}
    for where, row in _rows(config, "ROLE-88.tsv", columns):
        pair, _, side = row["item"].rpartition("-")
        if not pair or side not in ("a", "b"):
            raise InputError(f"{where}: item is {row['item']!r}, must be a number with -a or -b, such as 61-a")
        targets.setdefault(pair, {})[side] = row["target"]
        parts = _ROLES.fullmatch(row["context"])
        if parts is None:
            raise InputError(f"{where}: context is {row['context']!r}, must end in 'which ... the ... had'")
        before, thing, between, agent, after = parts.groups()
        contexts = {
            "original": row["context"],
            "generic_object": f"{before}one{between}{agent}{after}",
            "generic_subject": f"{before}{thing}{between}other{after}",
            "generic_both": f"{before}one{between}other{after}",
        }
        cloze = _share(where, row, "exp_cloze")
        expected = list(dict.fromkeys(phrase.split()[0] for phrase in row["expected"].split("|") if phrase.strip()))
        for condition, context in contexts.items():
            for word in expected:
                yield _question(row["item"], condition, context, word, "expected", cloze=cloze)
        share = _share(where, row, "tgt_cloze")
        yield _question(row["item"], "original", row["context"], row["target"], "target", cloze=share)
    for pair, sides in targets.items():
        if sorted(sides) != ["a", "b"] or sides["a"] != sides["b"]:
            told = ", ".join(f"{pair}-{side}: {target}" for side, target in sides.items())
            raise InputError(f"{_file(config, 'ROLE-88.tsv')}: a pair needs -a and -b with one target, got {told}")


def _neg(config: DiagnosticConfig) -> Iterator[Question]:
    columns = ("item", "context_aff", "context_neg", "target_aff", "target_neg")
    for where, row in _rows(config, "NEG-136-SIMP.tsv", columns):
        for name in ("context_aff", "context_neg"):
            if not row[name].endswith(f" {_ARTICLE}"):
                raise InputError(f"{where}: {name} is {row[name]!r}, must end in {_ARTICLE}")
        yield from _polarities("SIMP", "simp", row, None)
    for where, row in _rows(config, "NEG-136-NAT.tsv", (*columns, "licensing")):
        _check_letter(where, row, "licensing", "YN")
        yield from _polarities("NAT", "nat", row, row["licensing"])


def _polarities(subset: str, prefix: str, row: Cells, group: str | None) -> Iterator[Question]:
    targets = {"aff": row["target_aff"], "neg": row["target_neg"]}
    for polarity, condition in (("aff", f"{prefix}_affirmative"), ("neg", f"{prefix}_negative")):
        for other, target in targets.items():
            article = "an" if target[0] in "aeiou" else "a"
            context = row[f"context_{polarity}"].replace(_ARTICLE, article)
            role = "true" if other == polarity else "false"
            yield _question(f"{subset}-{row['item']}", condition, context, target, role, group=group)


def _share(where: str, row: Cells, column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{where}: {column} is {row[column]!r}, must be a share of people from 0 to 1")
    return value


def _check_letter(where: str, row: Cells, column: str, letters: str) -> None:
    if row[column] not in tuple(letters):
        raise InputError(f"{where}: {column} is {row[column]!r}, must be {' or '.join(letters)}")


def _file(config: DiagnosticConfig, name: str) -> Path:
    folder = given_path(config.name, config.path, f" with {name}", f" with {name}")
    if not folder.is_dir():
        raise InputError(f"benchmark.path: no folder {folder} (with {name})")
    if not (folder / name).is_file():
        raise InputError(f"benchmark.path: no file {name} in {folder}")
    return folder / name


def _rows(config: DiagnosticConfig, name: str, columns: tuple[str, ...]) -> list[tuple[str, Cells]]:
    """File and line of each row, and its cells of `columns` by name, without white space around them."""
    file = _file(config, name)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason} at byte {error.start})") from None
    header, *lines = [[cell.strip() for cell in line.split("\t")] for line in text.split("\n")]
    for column in columns:
        if column not in header:
            raise InputError(f"{file}: line 1: without the column {column}; there are {', '.join(header)}")
    rows: list[tuple[str, Cells]] = []
    seen: dict[str, str] = {}
    for number, cells in enumerate(lines, start=2):
        where = f"{file}: line {number}"
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} columns, must be {len(header)}")
        row = {column: cells[header.index(column)] for column in columns}
        if config.quote_marks == "straight":
            row = {column: cell.translate(_STRAIGHT) for column, cell in row.items()}
        if empty := [column for column in columns if not row[column].strip("|")]:
            raise InputError(f"{where}: {empty[0]} is empty")
        if row["item"] in seen:
            raise InputError(f"{where}: item {row['item']} is in {seen[row['item']].rpartition(': ')[2]} already")
        seen[row["item"]] = where
        rows.append((where, row))
    if not rows:
        raise InputError(f"{file}: no items in it")
    return rows


_READERS: dict[str, Callable[[DiagnosticConfig], Iterator[Question]]] = {"cprag": _cprag, "role": _role, "neg": _neg}
