"""The types of the group `benchmark` (values: conf/benchmark/): minimal pairs, and items that are no pairs.

Imports no pandas, so that commands start at once.
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
from pairscale.errors import ConfigError, check_choice, check_name
from pairscale.files import sha256_json
from pairscale.plugins import load_plugins

Pairs = Annotated[int, Meta(ge=1, le=10**6)]  # of a paradigm: a hundred times the largest that is published
SAMPLES = ("run", "study")  # vocabularies that are words of samples
SYNTAXGYM, RATINGS = "syntaxgym", "ratings"
PUBLISHED_SHUFFLES = 100  # Ettinger 2020, table 4
_NO_FOLDER = re.compile(r"[^\w.-]")  # what no part of a folder's name has


# Fields of BenchmarkConfig by which files and data sets of the hub are found and read.
OF_FILES = ("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes")

Read = Callable[[Any], Any]  # of a BenchmarkConfig, to tables or generated pairs (eval/benchmarks/form.py)
R = TypeVar("R", bound=Read)


class Form(NamedTuple):
    """A reader of tables, and the fields of BenchmarkConfig that it reads; others must keep their defaults."""

    read: Read
    fields: tuple[str, ...]


_FORMS: dict[str, Form] = {}


def form(name: str, fields: tuple[str, ...]) -> Callable[[R], R]:
    """Register a function as the form `name`; `fields` as in Form. Raises ValueError for a name in use."""

    def register(read: R) -> R:
        if name in _FORMS:
            raise ValueError(f"form {name}: registered by {_FORMS[name].read.__module__} already")
        _FORMS[name] = Form(read, fields)
        return read

    return register


def forms() -> Mapping[str, Form]:
    """Return all forms by name: those of form.py, and those that plug-ins registered."""
    import_module("eval.benchmarks.form")
    load_plugins()
    return _FORMS


@dataclass(kw_only=True)
class ColumnsConfig:
    """The columns of a table by what they hold; null: a usual name (eval/benchmarks/load.py); "": none."""

    good: str | None = None  # the acceptable sentence
    bad: str | None = None  # the unacceptable sentence
    sentence: str | None = None  # instead of the two: one sentence a row,
    label: str | None = None  # and whether it is the good or the bad one
    paradigm: Texts = None  # a column, or a list of columns whose texts are joined; none: the file's name
    phenomenon: str | None = None  # none: the paradigm
    field: str | None = None  # field of grammar: syntax, morphology, ...
    pair_id: str | None = None  # none: the number of the pair in its paradigm, from 0

    def __post_init__(self) -> None:
        if self.paradigm:
            self.paradigm = self.paradigm if isinstance(self.paradigm, list) else [self.paradigm]
        if bool(self.sentence) != bool(self.label) or (self.sentence and (self.good or self.bad)):
            raise ConfigError("benchmark.columns: give good and bad, or sentence and label; a row has two of the four")


@dataclass(kw_only=True)
class BenchmarkConfig:
    """A set of minimal pairs."""

    has_pairs: ClassVar[bool] = True  # which methods judge; False: items
    name: str  # of the folder of scores, and in the report
    form: str | None = None  # one of eval/benchmarks/form.py; null: that of its name, or else pairs
    path: str | None = None  # a local folder, or a file
    dataset: str | None = None  # or a data set of the Hugging Face hub
    revision: str | None = None  # of the data set: a branch, tag or commit; null: its main branch
    subset: str | None = None  # of the data set; null: all
    split: str | None = None  # of the data set; null: the only one
    files: list[str] | None = None  # patterns below path; null: all tables in the folder, which are of one format
    delimiter: str | None = None  # null: a comma in .csv, a tab in .tsv
    header: bool = True  # .csv, .tsv, .txt: the first row names the columns; false: they are named 0, 1, ...
    quotes: bool = True  # .csv, .tsv: whether a cell that begins with " ends with one; false: they are text
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)  # names of the columns
    labels: list[str] | None = None  # in the column of labels: the good one's and the bad one's; null: 1 and 0
    rename: dict[str, str] | None = None  # phenomena and fields of the table -> what we call them
    paradigms: list[str] | None = None  # null: all
    pairs: Pairs | None = None  # the first so many of each paradigm; null: all
    seed: Seed | None = None  # toy, generated: of the pairs
    per_paradigm: Pairs | None = None  # toy: pairs to make of each paradigm
    vocabulary: str | None = None  # generated: run, study, or a file of words; null: all words
    # Generated: words that a sample, or a file with counts, has at least so many times.
    min_count: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    language: str | None = None  # ISO 639 code of two letters, of three where a language has no such one

    def __post_init__(self) -> None:
        check_name("benchmark.name", self.name)
        read = self._fields_read()
        of_forms = {"pairs", "paradigms"}.union(*(form.fields for form in forms().values()))
        for name in sorted(of_forms - set(read)):
            if getattr(self, name) not in (None, ColumnsConfig(), getattr(BenchmarkConfig, name, None)):
                raise ConfigError(f"benchmark.{name}={getattr(self, name)}: form={self.form} has no use for it")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ConfigError(f"benchmark.delimiter={self.delimiter!r}: must be one character, or null")
        if self.labels is not None and len({label.casefold() for label in self.labels}) != 2:
            raise ConfigError(f"benchmark.labels={self.labels}: must be two, the good sentence's and the bad one's")
        if self.language is not None and not re.fullmatch("[a-z]{2,3}", self.language):
            raise ConfigError(f"benchmark.language={self.language}: must be an ISO 639 code such as en or zh")
        if self.paradigms == []:
            raise ConfigError("benchmark.paradigms=[]: must name at least one, or null for all")
        if self.form == "generated":
            self._check_generated()

    def _fields_read(self) -> tuple[str, ...]:
        """Set `form`, and return the names of the fields that it reads; all others must keep their defaults."""
        if self.form is None:
            self.form = self.name if self.name in forms() else "pairs"
        check_choice("benchmark.form", self.form, forms())
        return (*forms()[self.form].fields, "pairs", "paradigms")

    def _check_generated(self) -> None:
        check_choice("benchmark.language", str(self.language), ("en", "zh"))
        if self.pairs is None or self.seed is None:
            raise ConfigError(f"benchmark.pairs={self.pairs}, benchmark.seed={self.seed}: both must be numbers")
        if self.vocabulary in SAMPLES and self.min_count is None:
            raise ConfigError(f"benchmark.min_count=null with vocabulary={self.vocabulary}: must be above 0")

    def chosen_paradigms(self, available: Collection[str]) -> list[str]:
        """Return the requested paradigms, or all that are available. Raises ConfigError for one that is not."""
        for name in self.paradigms or ():
            if name not in available:
                near = difflib.get_close_matches(name, available, n=3) or sorted(available)[:3]
                raise ConfigError(
                    f"benchmark.paradigms: {self.name} has no paradigm '{name}'; near it: {', '.join(near)}"
                )
        return list(available) if self.paradigms is None else list(dict.fromkeys(self.paradigms))

    @property
    def label(self) -> str:
        """The name of folders: the benchmark's, followed by what selects some of its pairs: "blimp+pairs-10".

        Of generated pairs, it leaves out what conf/benchmark/generated.yaml has: 1,000 pairs, seed 1, min_count 5.
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
        """Return language, vocabulary and seed as parts of a folder's name: "en", "study-k5"."""
        parts = [str(self.language)]
        if self.vocabulary in SAMPLES:
            parts.append(f"{self.vocabulary}-k{self.min_count}")
        elif self.vocabulary is not None:
            counted = "" if self.min_count in (None, 5) else f"-k{self.min_count}"
            parts.append(f"words-{_NO_FOLDER.sub('_', Path(self.vocabulary).stem)}{counted}")
        return parts if self.seed == 1 else [*parts, f"seed-{self.seed}"]


@dataclass(kw_only=True)
class DiagnosticConfig(BenchmarkConfig):
    """A psycholinguistic diagnostic of Ettinger 2020: which words a model expects after a context."""

    has_pairs: ClassVar[bool] = False
    # cprag: orders that the first sentence's words are put in, drawn from `seed`
    shuffles: Annotated[int, Meta(ge=0, le=10**5)] | None = None
    # straight: ' and " for the curly ones of the files, for models that never saw those
    quote_marks: Literal["as_published", "straight"]
    top_words: Annotated[int, Meta(ge=1, le=10**6)]  # most probable words of each context to keep in topk.parquet

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffles and self.seed is None:
            raise ConfigError(f"benchmark.seed=null: must be a number, to draw benchmark.shuffles={self.shuffles} from")

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
    """A folder of SyntaxGym's suites: items whose regions' surprisals a formula compares."""

    has_pairs: ClassVar[bool] = False
    suites: list[str] | None = None  # null: all in the folder

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.suites == []:
            raise ConfigError("benchmark.suites=[]: must name at least one, or null for all")

    def _fields_read(self) -> tuple[str, ...]:
        check_choice("benchmark.name", self.name, (SYNTAXGYM,))
        self.form = SYNTAXGYM
        return ("path",)

    @property
    def label(self) -> str:
        return SYNTAXGYM if self.suites is None else f"{SYNTAXGYM}+suites-{sha256_json(sorted(self.suites))[:8]}"


@dataclass(kw_only=True)
class RatingColumnsConfig(ColumnsConfig):
    """The columns of a table of ratings: a sentence a row, or with good and bad the two of a pair; null: none."""

    rating: str | None = None  # number: the higher, the better
    good_rating: str | None = None
    bad_rating: str | None = None

    def __post_init__(self) -> None:
        named = {name: column for name, column in vars(self).items() if column}
        pair_id = {"pair_id"} if self.label or self.good else set()
        pair, ratings = {"good", "bad"}, {"good_rating", "bad_rating"}
        has_sentence = {"sentence"} < named.keys() <= {"sentence", "rating", "label"} | pair_id
        has_pair = named.keys() - pair_id in (pair, pair | ratings)
        if not (has_sentence or has_pair) or len(set(named.values())) < len(named):
            raise ConfigError(
                "benchmark.columns: name different columns of a sentence and its rating, label or both (and, with "
                "label, pair_id), or of good and bad (and their good_rating and bad_rating, and pair_id); got "
                f"{', '.join(sorted(named))}"
            )


@dataclass(kw_only=True)
class RatingsConfig(BenchmarkConfig):
    """A table of sentences with people's ratings, labels, or both."""

    has_pairs: ClassVar[bool] = False
    columns: RatingColumnsConfig = field(
        default_factory=lambda: RatingColumnsConfig(sentence="sentence", rating="rating")
    )

    def _fields_read(self) -> tuple[str, ...]:
        if not is_ratings(self.name):
            raise ConfigError(
                f"benchmark.name={self.name}: must be {RATINGS}, or begin with {RATINGS}_, as {RATINGS}_lau"
            )
        self.form = RATINGS
        return (*OF_FILES, "columns", "labels")

    @property
    def label(self) -> str:
        return self.name


def is_ratings(name: str) -> bool:
    """Return True for the name of a table of ratings."""
    return name == RATINGS or name.startswith(f"{RATINGS}_")


register_types(
    BenchmarkConfig,
    pairs=BenchmarkConfig,
    diagnostic=DiagnosticConfig,
    ratings=RatingsConfig,
    syntaxgym=SyntaxGymConfig,
)
