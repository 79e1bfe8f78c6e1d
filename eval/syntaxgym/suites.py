"""Read SyntaxGym suites from JSON files in the format of syntaxgym-core, and compute which predictions are true.

The sentences of a suite, and a model's answers, are tables with one row per region. This module doesn't import torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Meta

from eval.benchmarks.files import Items, given_path
from eval.scores.schemas import REGIONS, SUCCESS
from eval.syntaxgym.formulas import Formula
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.files import sha256_json
from pairscale.schema import read_json
from pairscale.sizes import plural

if TYPE_CHECKING:
    from eval.scorers.base import TokenScores

# The circuits of Hu et al. 2020, with the beginnings of their suites' names. As in the paper's analysis, fgd-embed3,
# fgd-embed4 and nn-nv-rpl aren't part of a circuit.
CIRCUITS = {
    "Agreement": ("number_",),
    "Licensing": ("npi_", "reflexive_"),
    "Garden-Path Effects": ("mvrr", "npz_"),
    "Gross Syntactic State": ("subordination",),
    "Center Embedding": ("center_embed",),
    "Long-Distance Dependencies": ("cleft", "fgd_"),
}
_SENTENCE = ["suite", "item", "condition"]  # columns that identify a sentence
_SUMS = ["surprisal", "tokens", "unk"]  # columns of `region_sums`


class _Region(TypedDict):
    region_number: int
    content: str


class _Condition(TypedDict):
    condition_name: str
    regions: list[_Region]


class _Item(TypedDict):
    item_number: int
    conditions: list[_Condition]


class _Prediction(TypedDict):
    type: Literal["formula"]
    formula: str


class _Meta(TypedDict):
    name: str
    metric: Literal["sum"] | list[Literal["sum"]]


class _File(TypedDict):
    meta: _Meta
    region_meta: dict[str, str]
    predictions: Annotated[list[_Prediction], Meta(min_length=1)]
    items: Annotated[list[_Item], Meta(min_length=1)]


@dataclass(frozen=True)
class Suites(Items):
    """The suites in a folder, sorted by name.

    Attributes:
        rows: One row per region, with the columns suite, item, condition, region (its number, from 1), name, content,
            text (the sentence), start and end. Start and end are the region's characters in the text. For an empty
            region, both are the end of the text before it.
        formulas: The predictions of each suite.
    """

    formulas: Mapping[str, Sequence[Formula]]


def load_suites(path: str | None, names: Sequence[str] | None = None) -> Suites:
    """Read the suites (*.json) in a folder, or only those in `names`.

    Raises ConfigError if there is no suite with a name in `names`. Raises InputError if there are no suites, or if a
    file is invalid.
    """
    folder = given_path("syntaxgym", path, " with suites (*.json)", " with suites (*.json)")
    files = sorted(folder.glob("*.json"))
    by_name = {name: (rows, formulas) for name, rows, formulas in map(read_suite, files)}
    if not files or len(by_name) < len(files):
        problem = "two suites in this folder have the same name" if files else "this folder contains no suites (*.json)"
        raise InputError(f"benchmark.path={folder}: {problem}. Use a folder of suites with different names.")
    if unknown := [name for name in names or () if name not in by_name]:
        raise ConfigError(
            f"benchmark.suites={unknown[0]}: there is no suite with this name in {folder}. Choose from "
            f"{first_few(sorted(by_name))}."
        )
    chosen = {name: by_name[name] for name in sorted(by_name) if names is None or name in names}
    rows = pd.concat([rows for rows, _ in chosen.values()], ignore_index=True)
    formulas = {name: of_suite for name, (_, of_suite) in chosen.items()}
    digest = sha256_json([rows.to_numpy().tolist(), [[one.text for one in of] for of in formulas.values()]])
    items = len(rows[["suite", "item"]].drop_duplicates())
    contents = f"{plural(items, 'item')} of {plural(len(chosen), 'suite')}"
    return Suites(rows, rows["text"].unique().tolist(), digest, contents, formulas=formulas)


def read_suite(file: Path) -> tuple[str, pd.DataFrame, list[Formula]]:
    """Read the name, the regions (rows of `Suites`) and the predictions of one suite.

    Raises InputError, with the file, if it is not a suite or its metric is not sum. Also raises it if items have
    different conditions or regions, or if a formula refers to an unknown region.
    """
    data = read_json(file, _File, InputError, "use a suite in the format of syntaxgym-core")
    name, numbers = data["meta"]["name"], range(1, len(data["region_meta"]) + 1)
    items = dict.fromkeys(item["item_number"] for item in data["items"])
    conditions = dict.fromkeys(condition["condition_name"] for condition in data["items"][0]["conditions"])
    cells = [
        ((item["item_number"], condition["condition_name"], region["region_number"]), region["content"])
        for item in data["items"]
        for condition in item["conditions"]
        for region in condition["regions"]
    ]
    found, wanted = Counter(key for key, _ in cells), Counter(product(items, conditions, numbers))
    wrong = sorted((found - wanted) + (wanted - found))
    if wrong or not wanted or data["region_meta"].keys() != {str(number) for number in numbers}:
        place = " (for example, item {}, condition {}, region {})".format(*wrong[0]) if wrong else ""
        raise InputError(
            f"{file}: some regions are missing or occur twice{place}. Write the same conditions for each item, and "
            f"each region of region_meta (1 to {len(numbers)}) once per condition."
        )
    contents, rows = dict(cells), []
    for item, condition in product(items, conditions):
        text, spans = join_regions([contents[item, condition, number] for number in numbers])
        if not text:
            raise InputError(f"{file}: condition {condition} of item {item} has no text. Fill in at least one region.")
        for number, (start, end) in zip(numbers, spans, strict=True):
            of_region = (number, data["region_meta"][str(number)], text[start:end])
            rows.append((name, item, condition, *of_region, text, start, end))
    formulas = [Formula.parse(prediction["formula"], str(file)) for prediction in data["predictions"]]
    for region in (region for formula in formulas for region in formula.regions):
        if region not in product(conditions, [None, *numbers]):
            raise InputError(
                f"{file}: a formula refers to region {region.number or '*'} of condition {region.condition}, which "
                "doesn't exist. Correct the formula."
            )
    columns = [*_SENTENCE, "region", "name", "content", "text", "start", "end"]
    return name, pd.DataFrame(rows, columns=columns), formulas


def join_regions(contents: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Join regions into a sentence, with one space between regions that are not empty. Return the text and their spans.

    White space around regions is removed, and any white space inside them is replaced by one space.
    """
    text, spans = "", []
    for content in (" ".join(part.split()) for part in contents):
        if text and content:
            text += " "
        spans.append((len(text), len(text) + len(content)))
        text += content
    return text, spans


def circuit_of(suite: str) -> str | None:
    """Return the circuit of a suite, or None if the suite isn't part of a circuit."""
    return next((circuit for circuit, names in CIRCUITS.items() if suite.startswith(names)), None)


def region_sums(regions: pd.DataFrame, scores: TokenScores, skip_unk: bool = False) -> npt.NDArray[np.float64]:
    """Sum the surprisals of a sentence's tokens by region.

    A token belongs to the region of its first character that is not white space, even if it continues in the next
    region. A token of white space belongs to the region after it. A scored `<eos>` belongs to the last region that is
    not empty. The surprisal of an empty region is 0. This is the same as in syntaxgym-core for Hugging Face models.

    Args:
        regions: The rows of `Suites` for one sentence, with R regions.
        scores: The scores of the sentence's tokens.
        skip_unk: Whether the surprisal of `<unk>` is 0 (policy.unk=skip).

    Returns:
        (R, 3) the surprisal in bits, the number of tokens and the number of `<unk>` tokens of each region.
    """
    text, (starts, ends) = str(regions["text"].iat[0]), regions[["start", "end"]].to_numpy().T
    bare = np.array([len(text[start:end].lstrip()) for start, end in scores.spans], dtype=np.int64)
    filled = np.flatnonzero(starts < ends)
    at = filled[np.searchsorted(starts[filled], scores.spans[:, 1] - bare, side="right") - 1]
    bits = np.where(scores.unk & skip_unk, 0.0, -scores.logprobs / np.log(2))
    sums = [np.bincount(at, values, len(starts)) for values in (bits, np.ones(len(at)), scores.unk)]
    return np.stack(sums, axis=1)


def answer_rows(suites: Suites, scores: Mapping[str, TokenScores], skip_unk: bool) -> dict[str, pd.DataFrame]:
    """Return the rows of score files (REGIONS and SUCCESS in eval.scores.schemas). `scores` maps texts to scores."""
    sentences = [of_one for _, of_one in suites.rows.groupby(_SENTENCE, sort=False)]
    sums = [region_sums(of_one, scores[str(of_one["text"].iat[0])], skip_unk) for of_one in sentences]
    table = pd.concat(sentences).assign(**dict(zip(_SUMS, np.concatenate(sums).T, strict=True)))
    regions = table.astype({"tokens": "int32", "unk": "int32"})[REGIONS.names].reset_index(drop=True)
    success = [success_rows(name, of, regions[regions["suite"] == name]) for name, of in suites.formulas.items()]
    return {"regions": regions, "success": pd.concat(success, ignore_index=True)}


def success_rows(suite: str, formulas: Sequence[Formula], regions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one suite, with the columns SUCCESS. `regions` has the columns REGIONS.

    There is one row per item and prediction. If a prediction joins several comparisons, each has a row too.
    """
    by_item = regions.pivot(index="item", columns=["condition", "region"], values=["surprisal", "unk"])
    by_item = by_item.loc[regions["item"].unique()]
    rows = []
    for prediction, formula in enumerate(formulas, start=1):
        parts = formula.comparisons if len(formula.comparisons) > 1 else []
        for comparison, part in enumerate([formula, *parts]):
            columns = {
                "suite": suite,
                "circuit": circuit_of(suite),
                "item": by_item.index,
                "prediction": prediction,
                "comparison": comparison or None,
                "formula": part.text,
                "success": part(by_item["surprisal"]),
                "tie": part.ties(by_item["surprisal"]),
                "unk": sum(region(by_item["unk"]) for region in part.regions),
            }
            rows.append(pd.DataFrame(columns, index=by_item.index))
    types = {"circuit": "str", "prediction": "int32", "comparison": "Int32", "unk": "int32"}
    table: pd.DataFrame = pd.concat(rows, ignore_index=True).astype(types)[SUCCESS.names]
    return table
