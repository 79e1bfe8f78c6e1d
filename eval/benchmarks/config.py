"""Configuration classes of the group `benchmark` (conf/benchmark/), for minimal pairs and for other items.

This module doesn't import pandas, so that commands start at once.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from msgspec import Meta

from pairscale.command.schemas import Seed, Texts, register_types
from pairscale.errors import ConfigError, check_choice, check_name, first_few
from pairscale.files import sha256_json
from pairscale.plugins import load_plugins

Pairs = Annotated[int, Meta(ge=1, le=10**6)]  # pairs per paradigm, up to a hundred times the largest published one
SAMPLES = ("run", "study")  # vocabularies that consist of the words of samples
SYNTAXGYM, RATINGS = "syntaxgym", "ratings"
PUBLISHED_SHUFFLES = 100  # Ettinger 2020, table 4
_NO_FOLDER = re.compile(r"[^\w.-]")  # characters to replace in the name of a folder


# Fields of BenchmarkConfig that say how to find and read files and data sets of the hub.
OF_FILES = ("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes")

OF_PAIRS = ("pairs", "paradigms", "ties", "unk_wrong")  # fields of all benchmarks of pairs and choices
# How a pair with two equal scores counts. With "half", a tie of k options counts as 1/k. With "random", it counts as
# right with that probability, drawn with a seed: random:7 (random alone: seed 1).
Ties = Annotated[
    str, Meta(pattern=r"\A(wrong|half|right|random(:[0-9]{1,9})?)\Z", description="wrong, half, right or random:SEED")
]

Read = Callable[[Any], Any]  # takes a BenchmarkConfig, returns tables or generated pairs (eval/benchmarks/form.py)
R = TypeVar("R", bound=Read)


class Form(NamedTuple):
    """A function that reads tables, and the fields of BenchmarkConfig that it uses. Others must keep their defaults."""

    read: Read
    fields: tuple[str, ...]


_FORMS: dict[str, Form] = {}


def form(name: str, fields: tuple[str, ...]) -> Callable[[R], R]:
    """Register a function as the form `name`, which uses these fields. Raises ValueError if the name is in use."""

    def register(read: R) -> R:
        if name in _FORMS:
            raise ValueError(f"form {name}: registered by {_FORMS[name].read.__module__} already")
        _FORMS[name] = Form(read, fields)
        return read

    return register


def forms() -> Mapping[str, Form]:
    """Return all forms by name: those of form.py and those of plug-ins."""
    import_module("eval.benchmarks.form")
    load_plugins()
    return _FORMS


@dataclass(kw_only=True)
class ColumnsConfig:
    """The names of a table's columns. With null, usual names are tried (eval/benchmarks/load.py); "" means none."""

    good: str | None = None  # column with the acceptable sentence
    bad: str | None = None  # column with the unacceptable sentence
    sentence: str | None = None  # instead of good and bad: column with the sentence, for tables with one per row
    label: str | None = None  # with sentence: column that says whether the sentence is the good or the bad one
    # Instead of good and bad, for choices: a column with lists of options, or a list of columns with one option each.
    # Then `label` is the column with the right one: its number from 0, its letter or its text; null: the first one.
    options: Texts = None
    context: Texts = None  # column with the text before the options, or a list of columns, one for each option
    # The name "file" stands for the file's name, unless a column is called so.
    paradigm: Texts = None  # column with the paradigm, or a list of columns to join; without one: the file's name
    phenomenon: str | None = None  # column with the phenomenon; without one: the paradigm
    field: str | None = None  # column with the field of grammar, such as syntax or morphology
    pair_id: str | None = None  # column with the pair's id; without one: its number in the paradigm, from 0

    def __post_init__(self) -> None:
        if self.paradigm:
            self.paradigm = self.paradigm if isinstance(self.paradigm, list) else [self.paradigm]
        labelled = bool(self.label) and not self.options
        several = sum(map(bool, (self.sentence, self.options, self.good or self.bad))) > 1
        if bool(self.sentence) != labelled or several or (self.sentence and self.context):
            raise ConfigError(
                "benchmark.columns: give good and bad (one pair per row), sentence and label (one sentence per row), "
                "or options (one choice per row). A context goes with pairs and choices only."
            )


@dataclass(kw_only=True)
class BenchmarkConfig:
    """A set of minimal pairs."""

    has_pairs: ClassVar[bool] = True  # True if it has pairs, which methods judge; False if it has other items
    name: str  # name of the benchmark, in the report and in the name of the folder with scores
    form: str | None = None  # a form of eval/benchmarks/form.py; null: the one called `name`, otherwise pairs
    path: str | None = None  # a local file or folder
    dataset: str | None = None  # instead of path: a data set of the Hugging Face Hub
    revision: str | None = None  # branch, tag or commit of the data set; null: its main branch
    subset: str | None = None  # subset (configuration) of the data set; null: all
    split: str | None = None  # split of the data set; null: the only one
    files: list[str] | None = None  # patterns for files in path; null: all tables in it, which must have one format
    delimiter: str | None = None  # separator of cells; null: a comma in .csv, a tab in .tsv
    header: bool = True  # .csv, .tsv, .txt: the first row names the columns; false: they are named 0, 1, ...
    quotes: bool = True  # .csv, .tsv: cells may be enclosed in double quotes; false: double quotes are text
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)  # names of the columns
    # labels of good and of bad sentences in the column `label`; null: 1 and 0. For choices: labels of all options
    labels: list[str] | None = None
    separator: str | None = None  # text between context and option, unless white space is there; null: a space
    rename: dict[str, str] | None = None  # new names for phenomena and fields of the table
    paradigms: list[str] | None = None  # paradigms to score; null: all
    pairs: Pairs | None = None  # number of pairs to score per paradigm, the first in the table; null: all
    seed: Seed | None = None  # toy, generated: seed for drawing pairs
    per_paradigm: Pairs | None = None  # toy: number of pairs to draw per paradigm
    vocabulary: str | None = None  # generated: words to use: run, study, or a file of words; null: all words
    # generated: use only words that the sample, or the file with counts, contains at least this many times.
    min_count: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    language: str | None = None  # ISO 639 code: two letters, or three for a language without a two-letter code
    ties: Ties | None = None  # what a tie counts as, unless the command line says so; null: wrong
    unk_wrong: bool = False  # count an item as wrong if one of its texts contains <unk>

    def __post_init__(self) -> None:
        check_name("benchmark.name", self.name)
        read = self._fields_read()
        of_forms = set(OF_PAIRS).union(*(form.fields for form in forms().values()))
        for name in sorted(of_forms - set(read)):
            if getattr(self, name) not in (None, ColumnsConfig(), getattr(BenchmarkConfig, name, None)):
                raise ConfigError(
                    f"benchmark.{name}={getattr(self, name)}: form={self.form} doesn't use this key. Leave it out."
                )
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ConfigError(f"benchmark.delimiter={self.delimiter!r}: must be one character, or null.")
        different = len({label.casefold() for label in self.labels or ()})
        if self.labels is not None and (different < len(self.labels) or (different != 2 and not self.columns.options)):
            raise ConfigError(
                f"benchmark.labels={self.labels}: must be two labels, first for good and then for bad sentences. With "
                "benchmark.columns.options, give a different label for each option."
            )
        if self.separator is not None and not self.columns.context:
            raise ConfigError(
                f"benchmark.separator={self.separator!r}: this is put between a context and an option. Name the column "
                "with the contexts in benchmark.columns.context, or leave it out."
            )
        if self.language is not None and not re.fullmatch("[a-z]{2,3}", self.language):
            raise ConfigError(f"benchmark.language={self.language}: must be an ISO 639 code such as en or zh.")
        if self.paradigms == []:
            raise ConfigError("benchmark.paradigms=[]: name at least one paradigm, or use null for all.")
        if self.form == "generated":
            self._check_generated()

    def _fields_read(self) -> tuple[str, ...]:
        """Set `form`, and return the names of the fields that it uses. All others must keep their defaults."""
        if self.form is None:
            self.form = self.name if self.name in forms() else "pairs"
        check_choice("benchmark.form", self.form, forms())
        return (*forms()[self.form].fields, *OF_PAIRS)

    def _check_generated(self) -> None:
        check_choice("benchmark.language", str(self.language), ("en", "zh"))
        if self.pairs is None or self.seed is None:
            raise ConfigError(f"benchmark.pairs={self.pairs}, benchmark.seed={self.seed}: both must be numbers.")
        if self.vocabulary in SAMPLES and self.min_count is None:
            raise ConfigError(
                f"benchmark.min_count=null with benchmark.vocabulary={self.vocabulary}: must be a number above 0."
            )

    def chosen_paradigms(self, available: Collection[str]) -> list[str]:
        """Return the requested paradigms, by default all. Raises ConfigError if one is not available."""
        for name in self.paradigms or ():
            if name not in available:
                near = difflib.get_close_matches(name, available, n=3)
                hint = f"Did you mean {' or '.join(near)}?" if near else f"It has {first_few(sorted(available))}."
                raise ConfigError(f"benchmark.paradigms: {self.name} has no paradigm '{name}'. {hint}")
        return list(available) if self.paradigms is None else list(dict.fromkeys(self.paradigms))

    @property
    def label(self) -> str:
        """The name of folders: the benchmark's name, and settings that select some of its pairs ("blimp+pairs-10").

        For generated pairs, it leaves out the settings of conf/benchmark/generated.yaml (1,000 pairs, seed 1 and
        min_count 5).
        """
        parts = [self.name]
        if self.subset is not None:
            parts.append(f"subset-{_NO_FOLDER.sub('_', self.subset)}")
        if self.form == "toy":
            parts += [f"seed-{self.seed}", f"per_paradigm-{self.per_paradigm}"]
        if self.form == "generated":
            parts += self._parts_of_generated()
        if self.paradigms is not None:
            parts.append(f"paradigms-{sha256_json(sorted(self.paradigms))[:8]}")
        if self.pairs != (1000 if self.form == "generated" else None):
            parts.append(f"pairs-{self.pairs}")
        return "+".join(parts)

    def _parts_of_generated(self) -> list[str]:
        """Return language, vocabulary and seed as parts of a folder's name, such as "en" and "study-k5"."""
        parts = [str(self.language)]
        if self.vocabulary in SAMPLES:
            parts.append(f"{self.vocabulary}-k{self.min_count}")
        elif self.vocabulary is not None:
            counted = "" if self.min_count in (None, 5) else f"-k{self.min_count}"
            parts.append(f"words-{_NO_FOLDER.sub('_', Path(self.vocabulary).stem)}{counted}")
        return parts if self.seed == 1 else [*parts, f"seed-{self.seed}"]


@dataclass(kw_only=True)
class DiagnosticConfig(BenchmarkConfig):
    """A psycholinguistic diagnostic of Ettinger 2020, which tests what words a model expects after a context."""

    has_pairs: ClassVar[bool] = False
    # cprag: number of random orders of the first sentence's words, drawn with `seed`
    shuffles: Annotated[int, Meta(ge=0, le=10**5)] | None = None
    # straight: replace the curly quotes of the files by ' and ", for models that have never seen curly quotes
    quote_marks: Literal["as_published", "straight"]
    top_words: Annotated[int, Meta(ge=1, le=10**6)]  # number of most probable words per context to keep in topk.parquet

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffles and self.seed is None:
            raise ConfigError(f"benchmark.seed=null with benchmark.shuffles={self.shuffles}: must be a number.")

    def _fields_read(self) -> tuple[str, ...]:
        self.form = self.name
        return ("path", "seed")

    @property
    def label(self) -> str:
        quotes = [] if self.quote_marks == "as_published" else [f"quote_marks-{self.quote_marks}"]
        shuffles = [] if self.shuffles in (None, PUBLISHED_SHUFFLES) else [f"shuffles-{self.shuffles}"]
        return "+".join([self.name, *quotes, *shuffles])


@dataclass(kw_only=True)
class SyntaxGymConfig(BenchmarkConfig):
    """A folder of SyntaxGym suites, whose formulas compare the surprisals of regions."""

    has_pairs: ClassVar[bool] = False
    suites: list[str] | None = None  # names of the suites to score; null: all in the folder

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.suites == []:
            raise ConfigError("benchmark.suites=[]: name at least one suite, or use null for all.")

    def _fields_read(self) -> tuple[str, ...]:
        check_choice("benchmark.name", self.name, (SYNTAXGYM,))
        self.form = SYNTAXGYM
        return ("path",)

    @property
    def label(self) -> str:
        return SYNTAXGYM if self.suites is None else f"{SYNTAXGYM}+suites-{sha256_json(sorted(self.suites))[:8]}"


@dataclass(kw_only=True)
class RatingColumnsConfig(ColumnsConfig):
    """The names of the columns of a table of ratings, with one sentence per row or (good and bad) one pair per row."""

    rating: str | None = None  # column with the rating, a number that is higher for better sentences
    good_rating: str | None = None  # with good and bad: column with the rating of the good sentence
    bad_rating: str | None = None  # with good and bad: column with the rating of the bad sentence

    def __post_init__(self) -> None:
        named = {name: column for name, column in vars(self).items() if column}
        pair_id = {"pair_id"} if self.label or self.good else set()
        pair, ratings = {"good", "bad"}, {"good_rating", "bad_rating"}
        has_sentence = {"sentence"} < named.keys() <= {"sentence", "rating", "label"} | pair_id
        has_pair = named.keys() - pair_id in (pair, pair | ratings)
        if not (has_sentence or has_pair) or len(set(named.values())) < len(named):
            raise ConfigError(
                "benchmark.columns: give either sentence with rating, label or both (and pair_id if there is a label), "
                "or good and bad (with good_rating and bad_rating, and pair_id, if you have them), all as different "
                f"columns. You gave {', '.join(sorted(named)) or 'none'}."
            )


@dataclass(kw_only=True)
class RatingsConfig(BenchmarkConfig):
    """A table of sentences with human ratings, labels, or both."""

    has_pairs: ClassVar[bool] = False
    columns: RatingColumnsConfig = field(
        default_factory=lambda: RatingColumnsConfig(sentence="sentence", rating="rating")
    )

    def _fields_read(self) -> tuple[str, ...]:
        if not is_ratings(self.name):
            raise ConfigError(
                f"benchmark.name={self.name}: the name of a table of ratings must be {RATINGS}, or begin with "
                f"{RATINGS}_ (such as {RATINGS}_lau)."
            )
        self.form = RATINGS
        return (*OF_FILES, "columns", "labels")

    @property
    def label(self) -> str:
        return self.name


def is_ratings(name: str) -> bool:
    """Return True if a benchmark's name is that of a table of ratings."""
    return name == RATINGS or name.startswith(f"{RATINGS}_")


register_types(
    BenchmarkConfig,
    pairs=BenchmarkConfig,
    diagnostic=DiagnosticConfig,
    ratings=RatingsConfig,
    syntaxgym=SyntaxGymConfig,
)
