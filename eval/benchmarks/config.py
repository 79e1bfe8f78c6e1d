"""Define the configuration of the group `benchmark` (conf/benchmark/), for minimal pairs and for other items.

This module doesn't import pandas, so that commands start quickly.
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

Pairs = Annotated[int, Meta(ge=1, le=10**6)]  # pairs per paradigm; no published paradigm has more than 10,000
SAMPLES = ("run", "study")  # vocabularies with the words of samples
SYNTAXGYM, RATINGS = "syntaxgym", "ratings"
PUBLISHED_SHUFFLES = 100  # Ettinger 2020, table 4
_NO_FOLDER = re.compile(r"[^\w.-]")  # characters to replace in the name of a folder


# Fields of BenchmarkConfig for finding and reading files, and data sets on the hub.
OF_FILES = ("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes")

OF_PAIRS = ("pairs", "paradigms", "ties", "unk_wrong", "show_texts")  # fields of all benchmarks of pairs and choices
# How a pair with two equal scores counts. With "half", a tie of k options counts as 1/k. With "random", it is right
# with this probability, drawn with a seed, as in random:7 (random alone: seed 1).
Ties = Annotated[
    str, Meta(pattern=r"\A(wrong|half|right|random(:[0-9]{1,9})?)\Z", description="wrong, half, right or random:SEED")
]

Read = Callable[[Any], Any]  # from a BenchmarkConfig to tables or generated pairs (eval/benchmarks/form.py)
R = TypeVar("R", bound=Read)


class Form(NamedTuple):
    """A function that reads tables, and the fields of BenchmarkConfig that it uses. Others must have their defaults."""

    read: Read
    fields: tuple[str, ...]


_FORMS: dict[str, Form] = {}


def form(name: str, fields: tuple[str, ...]) -> Callable[[R], R]:
    """Register a function as the form `name`, which uses these fields. Raises ValueError if the name is in use."""

    def register(read: R) -> R:
        if name in _FORMS:
            raise ValueError(f"The form {name} already exists ({_FORMS[name].read.__module__}). Choose another name.")
        _FORMS[name] = Form(read, fields)
        return read

    return register


def forms() -> Mapping[str, Form]:
    """Return all forms by name, from form.py and from plug-ins."""
    import_module("eval.benchmarks.form")
    load_plugins()
    return _FORMS


@dataclass(kw_only=True)
class ColumnsConfig:
    """The names of a table's columns. With null, usual names are tried (USUAL in load.py). "" means no column."""

    good: str | None = None  # column with the acceptable sentence
    bad: str | None = None  # column with the unacceptable sentence
    sentence: str | None = None  # column with the sentence, for tables with one sentence per row (no good and bad)
    label: str | None = None  # column with the label of this sentence (good or bad)
    # For choices, instead of good and bad: a column of lists, or a list of columns with one option each. `label` is
    # then the column with the number (from 0), letter or text of the right option; null: the first option is right.
    options: Texts = None
    context: Texts = None  # column with the text before the sentences or options, or a list of columns, one for each
    # Column with the paradigm, or a list of columns to join; null: use the file's name. "file" is the file's name, too.
    paradigm: Texts = None
    phenomenon: str | None = None  # column with the phenomenon; null: use the paradigm
    field: str | None = None  # column with the field of grammar, such as syntax or morphology
    pair_id: str | None = None  # column with the pair's id; null: number the pairs of a paradigm from 0

    def __post_init__(self) -> None:
        if self.paradigm:
            self.paradigm = self.paradigm if isinstance(self.paradigm, list) else [self.paradigm]
        labelled = bool(self.label) and not self.options
        several = sum(map(bool, (self.sentence, self.options, self.good or self.bad))) > 1
        if bool(self.sentence) != labelled or several or (self.sentence and self.context):
            raise ConfigError(
                "benchmark.columns: these settings can't be combined. Set good and bad (for one pair per row), "
                "sentence and label (for one sentence per row), or options (for one choice per row). Only pairs and "
                "choices can have a context."
            )


@dataclass(kw_only=True)
class DownloadConfig:
    """Where `python -m eval.fetch` gets the files of a benchmark, and their licence."""

    page: str  # a page that describes the files
    licence: str  # their licence, or why they can't be downloaded
    # A file, or an archive (zip, or tar with any compression); null: the files can only be had by hand.
    address: Annotated[str, Meta(pattern=r"\Ahttps?://", description="an address (https://...)")] | None = None
    folder: str = ""  # the folder of an archive that has the files; a folder around everything doesn't count
    # SHA-256 of the output of `sha256sum` for the files, by name (eval/fetch.py)
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z", description="64 hexadecimal digits")] | None = None

    def __post_init__(self) -> None:
        if (self.address is None) != (self.sha256 is None):
            raise ConfigError("benchmark.download: address and sha256 go together. Set both, or neither.")


@dataclass(kw_only=True)
class BenchmarkConfig:
    """A set of minimal pairs."""

    has_pairs: ClassVar[bool] = True  # whether it has pairs, which methods judge, rather than other items
    name: str  # name of the benchmark, in the report and in the name of the score folder
    form: str | None = None  # a form of eval/benchmarks/form.py; null: the form called `name`, or else pairs
    path: str | None = None  # a local file or folder
    download: DownloadConfig | None = None  # where `python -m eval.fetch` gets the files; null: nowhere
    dataset: str | None = None  # a data set on the Hugging Face hub, instead of path
    revision: str | None = None  # branch, tag or commit of the data set; null: its main branch
    subset: str | None = None  # subset (configuration) of the data set; null: all subsets
    split: str | None = None  # split of the data set; null: its only split
    files: list[str] | None = None  # patterns for files in path; null: all tables in it, which must have one format
    delimiter: str | None = None  # separator of cells; null: a comma in .csv, a tab in .tsv
    header: bool = True  # whether the first row of a .csv, .tsv or .txt file contains names, instead of 0, 1, ...
    quotes: bool = True  # whether double quotes may enclose cells of a .csv or .tsv file, instead of being text
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)  # names of the columns
    # labels of good and of bad sentences in the column `label`; null: 1 and 0. For choices: labels of all options
    labels: list[str] | None = None
    # Text between context and option, or before each sentence if there is no context, as in lm-evaluation-harness.
    # null: a space between context and option, unless white space is there.
    separator: str | None = None
    exclude: str | None = None  # leave out choices that have an option with this text
    rename: dict[str, str] | None = None  # new names for phenomena and fields of the table
    paradigms: list[str] | None = None  # paradigms to score; null: all paradigms
    pairs: Pairs | None = None  # number of pairs to score per paradigm, from the top of the table; null: all pairs
    seed: Seed | None = None  # seed for drawing pairs (toy and generated)
    per_paradigm: Pairs | None = None  # number of pairs to draw per paradigm (toy)
    vocabulary: str | None = None  # words to use (generated), as run, study, or a file of words; null: all words
    # Use only words that the sample, or the file with counts, contains at least this many times (generated).
    min_count: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    language: str | None = None  # ISO 639 code with two letters, or three if there is no two-letter code
    ties: Ties | None = None  # what a tie counts as, unless the command line sets `ties`; null: wrong
    unk_wrong: bool = False  # whether an item is wrong if one of its texts contains <unk>
    show_texts: bool = True  # whether reports may contain its texts; false for texts that must not be published

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
            raise ConfigError(
                f"benchmark.delimiter={self.delimiter!r}: this is not a delimiter. Use one character, or null."
            )
        different = len({label.casefold() for label in self.labels or ()})
        if self.labels is not None and (different < len(self.labels) or (different != 2 and not self.columns.options)):
            raise ConfigError(
                f"benchmark.labels={self.labels}: there must be two different labels. Write the label of good "
                "sentences, and then the label of bad ones. For choices, write a different label for each option."
            )
        if self.exclude is not None and not (self.exclude and self.columns.options):
            raise ConfigError(
                f"benchmark.exclude={self.exclude!r}: this needs a text, and choices in benchmark.columns.options."
            )
        if self.language is not None and not re.fullmatch("[a-z]{2,3}", self.language):
            raise ConfigError(f"benchmark.language={self.language}: this isn't an ISO 639 code. Use a code such as en.")
        if self.paradigms == []:
            raise ConfigError(
                "benchmark.paradigms=[]: this list is empty. Name paradigms, or use null for all of them."
            )
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
            raise ConfigError(
                f"benchmark.pairs={self.pairs}, benchmark.seed={self.seed}: generated pairs need both. Set both."
            )
        if self.vocabulary in SAMPLES and self.min_count is None:
            raise ConfigError(
                f"benchmark.min_count=null: benchmark.vocabulary={self.vocabulary} needs a number above 0. Set one."
            )

    def chosen_paradigms(self, available: Collection[str]) -> list[str]:
        """Return the requested paradigms, or all by default. Raises ConfigError if one is not available."""
        for name in self.paradigms or ():
            if name not in available:
                near = difflib.get_close_matches(name, available, n=3)
                hint = f"Did you mean {' or '.join(near)}?" if near else f"Choose from {first_few(sorted(available))}."
                raise ConfigError(f"benchmark.paradigms={name}: {self.name} has no paradigm with this name. {hint}")
        return list(available) if self.paradigms is None else list(dict.fromkeys(self.paradigms))

    @property
    def label(self) -> str:
        """The name of folders, with the benchmark's name and settings that select pairs, such as "blimp+pairs-10".

        For generated pairs, the default settings of conf/benchmark/generated.yaml are left out (1,000 pairs, seed 1 and
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
        """Return language, vocabulary and seed as parts of a folder name, such as "en" and "study-k5"."""
        parts = [str(self.language)]
        if self.vocabulary in SAMPLES:
            parts.append(f"{self.vocabulary}-k{self.min_count}")
        elif self.vocabulary is not None:
            counted = "" if self.min_count in (None, 5) else f"-k{self.min_count}"
            parts.append(f"words-{_NO_FOLDER.sub('_', Path(self.vocabulary).stem)}{counted}")
        return parts if self.seed == 1 else [*parts, f"seed-{self.seed}"]


@dataclass(kw_only=True)
class DiagnosticConfig(BenchmarkConfig):
    """A psycholinguistic diagnostic from Ettinger 2020. It tests which words a model expects after a context."""

    has_pairs: ClassVar[bool] = False
    # For cprag, the number of random orders of the first sentence's words, which are drawn with `seed`.
    shuffles: Annotated[int, Meta(ge=0, le=10**5)] | None = None
    # `straight` replaces the files' curly quotes with ' and ", for models that have never seen curly quotes.
    quote_marks: Literal["as_published", "straight"]
    top_words: Annotated[int, Meta(ge=1, le=10**6)]  # number of most probable words per context in topk.parquet

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffles and self.seed is None:
            raise ConfigError(
                f"benchmark.seed=null: benchmark.shuffles={self.shuffles} needs a seed. Set benchmark.seed to a number."
            )

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
    suites: list[str] | None = None  # names of the suites to score; null: all suites in the folder

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.suites == []:
            raise ConfigError("benchmark.suites=[]: this list is empty. Name at least one suite, or use null for all.")

    def _fields_read(self) -> tuple[str, ...]:
        check_choice("benchmark.name", self.name, (SYNTAXGYM,))
        self.form = SYNTAXGYM
        return ("path",)

    @property
    def label(self) -> str:
        return SYNTAXGYM if self.suites is None else f"{SYNTAXGYM}+suites-{sha256_json(sorted(self.suites))[:8]}"


@dataclass(kw_only=True)
class RatingColumnsConfig(ColumnsConfig):
    """The names of the columns in a table of ratings, with one sentence per row, or with one pair (good and bad)."""

    rating: str | None = None  # column with the rating, a number that is higher for better sentences
    good_rating: str | None = None  # column with the rating of the good sentence, for tables of pairs
    bad_rating: str | None = None  # column with the rating of the bad sentence, for tables of pairs

    def __post_init__(self) -> None:
        named = {name: column for name, column in vars(self).items() if column}
        pair_id = {"pair_id"} if self.label or self.good else set()
        pair, ratings = {"good", "bad"}, {"good_rating", "bad_rating"}
        has_sentence = {"sentence"} < named.keys() <= {"sentence", "rating", "label"} | pair_id
        has_pair = named.keys() - pair_id in (pair, pair | ratings)
        if not (has_sentence or has_pair) or len(set(named.values())) < len(named):
            raise ConfigError(
                f"benchmark.columns: the settings {', '.join(sorted(named)) or 'none'} don't describe a table of "
                "ratings. For one sentence per row, set sentence, and rating or label or both (and pair_id if there is "
                "a label). For one pair per row, set good and bad, and optionally good_rating with bad_rating, and "
                "pair_id. All of them must be different columns."
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
                f"benchmark.name={self.name}: a table of ratings can't have this name. Use {RATINGS}, or a name that "
                f"begins with {RATINGS}_, such as {RATINGS}_lau."
            )
        self.form = RATINGS
        return (*OF_FILES, "columns", "labels")

    @property
    def label(self) -> str:
        return self.name


def is_ratings(name: str) -> bool:
    """Return True if a benchmark with this name is a table of ratings."""
    return name == RATINGS or name.startswith(f"{RATINGS}_")


register_types(
    BenchmarkConfig,
    pairs=BenchmarkConfig,
    diagnostic=DiagnosticConfig,
    ratings=RatingsConfig,
    syntaxgym=SyntaxGymConfig,
)
