"""Suites of SyntaxGym from JSON files, the format of syntaxgym-core. Imports no torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from eval.benchmarks.files import given_path
from eval.syntaxgym.formulas import Formula
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.files import sha256_json
from pairscale.schema import read_json
from pairscale.sizes import plural

# Circuits of Hu et al. 2020 by the beginnings of the names of their suites, as in their analysis, which leaves out
# fgd-embed3, fgd-embed4 and nn-nv-rpl.
CIRCUITS = {
    "Agreement": ("number_",),
    "Licensing": ("npi_", "reflexive_"),
    "Garden-Path Effects": ("mvrr", "npz_"),
    "Gross Syntactic State": ("subordination",),
    "Center Embedding": ("center_embed",),
    "Long-Distance Dependencies": ("cleft", "fgd_"),
}
_REMEDY = "must be a suite as in syntaxgym-core's format"


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
class Sentence:
    """One condition of an item: its regions with one space between those that are not empty.

    text: as a model reads it. spans: (R, 2) character offsets of the regions in it; of empty ones both are where the
    text before them ends.
    """

    text: str
    spans: npt.NDArray[np.int32]

    @classmethod
    def of(cls, contents: Sequence[str]) -> "Sentence":
        """Join regions; white space around them, and several spaces in them, count as one."""
        text, spans = "", []
        for content in (" ".join(part.split()) for part in contents):
            if text and content:
                text += " "
            spans.append((len(text), len(text) + len(content)))
            text += content
        return cls(text, np.asarray(spans, dtype=np.int32).reshape(-1, 2))


@dataclass(frozen=True)
class Suite:
    """A suite: sentences in I items x C conditions, each of R regions, and predictions of their surprisal.

    circuit: None for suites beyond those of Hu et al. 2020. regions: their names. items: their numbers.
    sentences: by item, then in the order of `conditions`.
    """

    name: str
    circuit: str | None
    regions: tuple[str, ...]
    conditions: tuple[str, ...]
    formulas: tuple[Formula, ...]
    items: tuple[int, ...]
    sentences: tuple[tuple[Sentence, ...], ...]


@dataclass(frozen=True)
class Suites:
    """All suites of a folder, by name; digest: SHA-256 over their sentences, regions and formulas."""

    suites: tuple[Suite, ...]
    digest: str
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """All different sentences."""
        sentences = (sentence for suite in self.suites for item in suite.sentences for sentence in item)
        return list(dict.fromkeys(sentence.text for sentence in sentences))

    @property
    def contents(self) -> str:
        items = sum(len(suite.items) for suite in self.suites)
        return f"{plural(items, 'item')} of {plural(len(self.suites), 'suite')}"


def load_suites(path: str | None, names: Sequence[str] | None = None) -> Suites:
    """Read the suites (*.json) in a folder, or those of `names`.

    Raises ConfigError for a name that is not there, InputError for a folder without suites and for files that are none.
    """
    folder = given_path("syntaxgym", path, " with suites (*.json)", " with suites (*.json)")
    files = sorted(folder.glob("*.json"))
    suites = {suite.name: suite for suite in map(read_suite, files)}
    if not files or len(suites) < len(files):
        raise InputError(f"benchmark.path: {folder} must have suites (*.json), each with a name of its own")
    if unknown := [name for name in names or () if name not in suites]:
        raise ConfigError(f"benchmark.suites: no suite '{unknown[0]}' in {folder}; it has {first_few(sorted(suites))}")
    chosen = [suites[name] for name in sorted(suites) if names is None or name in names]
    return Suites(tuple(chosen), sha256_json([_described(suite) for suite in chosen]))


def read_suite(file: Path) -> Suite:
    """Read one suite.

    Raises InputError, with the file, for one that is no suite, has another metric than sum, items with different
    conditions or regions, or formulas with regions that are not there.
    """
    data = read_json(file, _File, InputError, _REMEDY)
    name, numbers = data["meta"]["name"], range(1, len(data["region_meta"]) + 1)
    items = tuple(dict.fromkeys(item["item_number"] for item in data["items"]))
    conditions = tuple(dict.fromkeys(condition["condition_name"] for condition in data["items"][0]["conditions"]))
    cells = [
        ((item["item_number"], condition["condition_name"], region["region_number"]), region["content"])
        for item in data["items"]
        for condition in item["conditions"]
        for region in condition["regions"]
    ]
    found, wanted = Counter(key for key, _ in cells), Counter(product(items, conditions, numbers))
    wrong = sorted((found - wanted) + (wanted - found))
    if wrong or not wanted or data["region_meta"].keys() != {str(number) for number in numbers}:
        place = " (wrong: item {}, condition {}, region {})".format(*wrong[0]) if wrong else ""
        raise InputError(
            f"{file}: each item must have the same conditions, and each of these the regions of region_meta, 1 to "
            f"{len(numbers)}, once{place}"
        )
    contents = dict(cells)
    sentences = tuple(
        tuple(Sentence.of([contents[item, condition, number] for number in numbers]) for condition in conditions)
        for item in items
    )
    if not all(sentence.text for of_item in sentences for sentence in of_item):
        raise InputError(f"{file}: a condition has no text")
    formulas = tuple(Formula.parse(prediction["formula"], str(file)) for prediction in data["predictions"])
    for region in (region for formula in formulas for region in formula.regions):
        if region not in product(conditions, [None, *numbers]):
            raise InputError(f"{file}: a formula has region {region.number} of {region.condition}, which is not there")
    regions = tuple(data["region_meta"][str(number)] for number in numbers)
    return Suite(name, circuit_of(name), regions, conditions, formulas, items, sentences)


def circuit_of(suite: str) -> str | None:
    """Return the circuit of a suite by its name; None if it is in none."""
    return next((circuit for circuit, names in CIRCUITS.items() if suite.startswith(names)), None)


def _described(suite: Suite) -> list[object]:
    sentences = [[(sentence.text, sentence.spans.tolist()) for sentence in item] for item in suite.sentences]
    formulas = [formula.text for formula in suite.formulas]
    return [suite.name, suite.regions, suite.conditions, formulas, suite.items, sentences]
