"""Suites of SyntaxGym from JSON files, the format of syntaxgym-core. Imports no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from eval.benchmarks.files import given_path
from eval.syntaxgym.formulas import Formula
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.files import sha256_json
from pairscale.schema import Positive, read_json

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


def circuit_of(suite: str) -> str | None:
    """Return the circuit of a suite by its name; None if it is in none."""
    return next((circuit for circuit, names in CIRCUITS.items() if suite.startswith(names)), None)


class _Region(TypedDict):
    region_number: Positive
    content: str


class _Condition(TypedDict):
    condition_name: str
    regions: list[_Region]


class _Item(TypedDict):
    item_number: int
    conditions: list[_Condition]


class _Prediction(TypedDict):
    type: str
    formula: str


class _Meta(TypedDict):
    name: str
    metric: str | list[str]


class _File(TypedDict):
    meta: _Meta
    region_meta: dict[str, str]
    predictions: list[_Prediction]
    items: list[_Item]


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

    @property
    def texts(self) -> list[str]:
        """All different sentences."""
        sentences = (sentence for suite in self.suites for item in suite.sentences for sentence in item)
        return list(dict.fromkeys(sentence.text for sentence in sentences))


def load_suites(path: str | None, names: Sequence[str] | None = None) -> Suites:
    """Read the suites (*.json) in a folder, or those of `names`.

    Raises ConfigError for a name that is not there, InputError for a folder without suites and for files that are none.
    """
    folder = given_path("syntaxgym", path, " with suites (*.json)", " with suites (*.json)")
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise InputError(f"benchmark.path: no suites (*.json) in {folder}")
    suites = sorted((read_suite(file) for file in files), key=lambda suite: suite.name)
    available = [suite.name for suite in suites]
    if twice := [name for name in available if available.count(name) > 1]:
        raise InputError(f"{folder}: two files of the suite {twice[0]}")
    if names is not None:
        if unknown := [name for name in names if name not in available]:
            raise ConfigError(f"benchmark.suites: no suite '{unknown[0]}' in {folder}; it has {first_few(available)}")
        suites = [suite for suite in suites if suite.name in names]
    return Suites(tuple(suites), sha256_json([_described(suite) for suite in suites]))


def read_suite(file: Path) -> Suite:
    """Read one suite.

    Raises InputError, with file and item, for a file that is no suite, has another metric than sum, items with
    different conditions or regions, or formulas with regions that are not there.
    """
    data = read_json(file, _File, InputError, _REMEDY)
    name = data["meta"]["name"]
    if data["meta"]["metric"] not in ("sum", ["sum"]):
        raise InputError(f"{file}: meta.metric is {data['meta']['metric']!r}, must be 'sum'")
    numbers = [str(number) for number in range(1, len(data["region_meta"]) + 1)]
    if set(data["region_meta"]) != set(numbers):
        raise InputError(f"{file}: region_meta has {first_few(list(data['region_meta']))}, must have 1, 2, ...")
    if not data["items"] or not data["items"][0]["conditions"] or not data["predictions"]:
        raise InputError(f"{file}: must have an item with conditions, and a prediction")
    conditions = tuple(condition["condition_name"] for condition in data["items"][0]["conditions"])
    suite = Suite(
        name=name,
        circuit=circuit_of(name),
        regions=tuple(data["region_meta"][number] for number in numbers),
        conditions=conditions,
        formulas=tuple(
            _formula(prediction, conditions, len(numbers), f"{file}: prediction {number}")
            for number, prediction in enumerate(data["predictions"], start=1)
        ),
        items=tuple(item["item_number"] for item in data["items"]),
        sentences=tuple(_sentences(item, conditions, len(numbers), file) for item in data["items"]),
    )
    if len(set(suite.items)) < len(suite.items):
        raise InputError(f"{file}: two items have one item_number")
    return suite


def _formula(prediction: _Prediction, conditions: Sequence[str], regions: int, where: str) -> Formula:
    if prediction["type"] != "formula":
        raise InputError(f"{where}: type is {prediction['type']!r:.40}, must be 'formula'")
    formula = Formula.parse(prediction["formula"], where)
    for region in formula.regions:
        if region.condition not in conditions:
            raise InputError(f"{where}: no condition {region.condition!r:.40}; the suite has {', '.join(conditions)}")
        if region.number is not None and not 1 <= region.number <= regions:
            raise InputError(f"{where}: no region {region.number}; the suite has 1 to {regions}")
    return formula


def _sentences(item: _Item, conditions: Sequence[str], regions: int, file: Path) -> tuple[Sentence, ...]:
    where = f"{file}: item {item['item_number']}"
    by_name = {condition["condition_name"]: condition["regions"] for condition in item["conditions"]}
    if set(by_name) != set(conditions) or len(item["conditions"]) != len(conditions):
        raise InputError(f"{where}: conditions {', '.join(by_name)}, must be {', '.join(conditions)}, as in the first")
    sentences = []
    for condition in conditions:
        contents = {region["region_number"]: region["content"] for region in by_name[condition]}
        if sorted(contents) != list(range(1, regions + 1)) or len(by_name[condition]) != regions:
            raise InputError(f"{where}: condition {condition}: must have the regions 1 to {regions}, each once")
        sentences.append(Sentence.of([contents[number] for number in sorted(contents)]))
        if not sentences[-1].text:
            raise InputError(f"{where}: condition {condition}: has no text")
    return tuple(sentences)


def _described(suite: Suite) -> list[object]:
    sentences = [[(sentence.text, sentence.spans.tolist()) for sentence in item] for item in suite.sentences]
    formulas = [formula.text for formula in suite.formulas]
    return [suite.name, suite.regions, suite.conditions, formulas, suite.items, sentences]
