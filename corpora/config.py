"""Schemas of the configuration groups `corpus`, `sample`, `tokenizer` and `paths`, whose values are in conf/."""

import copy
import dataclasses
from dataclasses import dataclass, field
from typing import Self

from omegaconf import MISSING

from corpora.ablation.config import REPLACE, AblateConfig
from corpora.annotate.config import ParserConfig
from corpora.constructions.config import FilterConfig
from corpora.find.config import FindConfig
from pairscale.command.schemas import ADDED_LATER, NOT_IN_DIGEST, Size, Texts, store_schemas
from pairscale.errors import ConfigError, NoCorpus, check_between, check_choice, check_name, check_seed
from pairscale.sizes import format_size, parse_size

REFERENCES = ("treebank", "characters", "jieba", "whitespace")
COUNTS = ("words", "characters", "sentences")
UNITS = ("sentence", "document")
STRATA = ("domain",)
WITHIN_SENTENCE, WITHIN_SAMPLE = SHUFFLES = ("sentence", "sample")
TOKENIZER_KINDS = ("word", "char", "unigram", "bpe", "jieba", "whitespace")
FIT_ON = ("train", "sample")
ROWS = ("document", "line", "wikitext")  # wikitext: a paragraph, or the heading "= Title =" of an article

NOT_IN_TEXT = {"text": False}  # a field of a corpus that changes samples, but not the prepared text

MAX_VOCABULARY = 10**7


@dataclass
class SplitConfig:
    """Shares of each source's documents that go to validation and test, drawn by a seeded hash."""

    seed: int = MISSING  # of the hash that draws documents
    valid: float = MISSING  # share of validation
    test: float = MISSING  # share of test

    def __post_init__(self) -> None:
        check_seed("corpus.split.seed", self.seed)
        if not (0 < self.valid < 1 and 0 <= self.test < 1 and self.valid + self.test < 1):
            raise ConfigError(
                f"corpus.split: valid={self.valid}, test={self.test}: must be shares, valid above 0, their sum below 1"
            )


@dataclass
class CorpusConfig:
    """A text with train/valid/test splits; `name` is its folder in the store."""

    name: str = MISSING  # folder of the prepared text in the store
    reference: str = MISSING  # the tokenizer that defines a word, whatever the model uses: REFERENCES
    split: SplitConfig = MISSING  # shares of validation and test
    # A regular expression: samples leave out sentences of the train split that match it (corpora/filters.py).
    filter: str | None = field(default=None, metadata=ADDED_LATER | NOT_IN_TEXT)
    domains: Texts = field(default=None, metadata=ADDED_LATER | NOT_IN_TEXT)  # of samples: a list of names; null: all

    def __post_init__(self) -> None:
        if self.domains is not None:
            names = [self.domains] if isinstance(self.domains, str) else self.domains
            if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
                raise ConfigError(
                    f"corpus.domains={self.domains}: must be a list of names, such as [childes,switchboard], or null"
                )
            self.domains = sorted(set(names))  # in any order, they are the same run
        check_choice("corpus.reference", self.reference, REFERENCES)
        if self.filter is not None:
            import regex  # slow to import, and most runs have no filter

            try:
                regex.compile(self.filter)
            except regex.error as error:
                raise ConfigError(f"corpus.filter={self.filter}: not a regular expression ({error})") from None
        check_name("corpus.name", self.name)


@dataclass
class NoCorpusConfig(CorpusConfig):
    """No corpus: for pretrained models, and for commands that read no text."""


@dataclass
class ToyCorpusConfig(CorpusConfig):
    """The built-in toy English, written by a seeded grammar."""

    words: int = MISSING  # reference words to write, over all splits
    seed: int = MISSING  # of the grammar that writes the text
    version: int = field(default=1, metadata=ADDED_LATER)  # of the language; only the newest is written

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("corpus.words", self.words, 1, 10**10)
        check_seed("corpus.seed", self.seed)


@dataclass
class FilesCorpusConfig(CorpusConfig):
    """Files of the user; their names, without endings, are the domains of the text."""

    path: Texts = field(default=MISSING, metadata=NOT_IN_DIGEST)  # a file, a folder, a glob, or a list of them
    document_sentences: int | None = None  # cut documents into parts of at most this many sentences
    # true: files of train, dev (or valid) and test are the splits of the text; false: all files are one text.
    published_splits: bool = field(default=True, metadata=ADDED_LATER)
    # Only this share of the documents is read, drawn by a hash seeded with split.seed; a larger share holds a smaller.
    share: float | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("corpus.document_sentences", self.document_sentences, 1, 10**9)
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigError(f"corpus.share={self.share}: must be above 0 and at most 1")
        if self.share == 1:
            self.share = None  # the same text


@dataclass
class LocalCorpusConfig(FilesCorpusConfig):
    """The user's own text files."""

    text_field: str = MISSING  # the field or column of .jsonl and .parquet that holds the text
    split_sentences: bool = MISSING  # true: running text; false: one sentence per line, empty lines between documents


@dataclass
class ConlluCorpusConfig(FilesCorpusConfig):
    """Treebanks and parsed text in CoNLL-U, whose sentences and documents ("# newdoc") are those of the text."""


@dataclass
class BabylmCorpusConfig(LocalCorpusConfig):
    """The text data of a BabyLM challenge as downloaded: childes.train, childes.dev, childes.test and others."""


@dataclass
class HubCorpusConfig(CorpusConfig):
    """A data set of the Hugging Face Hub, or a local copy of it."""

    dataset: str = MISSING  # OWNER/NAME on the hub
    subset: str | None = None  # of the data set; null: its default
    revision: str | None = None  # a branch, tag or commit; null: the main branch
    text_field: str = MISSING  # the column that holds the text
    rows: str = MISSING  # the content of a row: ROWS
    split_sentences: bool = MISSING  # true: running text; false: one sentence per line
    document_sentences: int | None = None  # cut documents into parts of at most this many sentences
    published_splits: bool = MISSING  # true: keep the data set's own train, validation and test splits
    path: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a local copy: a folder of save_to_disk

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("corpus.rows", self.rows, ROWS)
        check_between("corpus.document_sentences", self.document_sentences, 1, 10**9)


@dataclass
class GulordavaCorpusConfig(CorpusConfig):
    """The pretokenised Wikipedia of Gulordava et al. 2018: train.txt, valid.txt and test.txt."""

    url: str = field(default=MISSING, metadata=NOT_IN_DIGEST)  # folder of the published files
    path: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a folder with the three files
    document_sentences: int | None = None  # sentences per document: the published text is shuffled and has none


@dataclass
class SampleConfig:
    """A random part of the train split, drawn without replacement and cut to exactly `size`."""

    size: Size = MISSING  # "125k", "1/8M", ... in units of `count`
    count: str = MISSING  # unit of `size`: COUNTS
    unit: str = MISSING  # unit of drawing: UNITS
    nested: bool = MISSING  # small samples are prefixes of larger ones of the same seed
    seed: int | None = None  # null: derived from the run's seed
    # domain: the share of each domain is that of the train split, to the word; null: about that, as drawn at random.
    strata: str | None = field(default=None, metadata=ADDED_LATER)
    # Words in random order, within each sentence or over the whole sample: a baseline without grammar; null: in order.
    shuffle: str | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        check_choice("sample.count", self.count, COUNTS)
        if self.strata is not None:
            check_choice("sample.strata", self.strata, STRATA)
        if self.shuffle is not None:
            check_choice("sample.shuffle", self.shuffle, SHUFFLES)
        check_choice("sample.unit", self.unit, UNITS)
        check_seed("sample.seed", self.seed)
        self.size = format_size(parse_size(self.size))

    @property
    def number(self) -> int:
        """The size as a number of words, characters or sentences."""
        return parse_size(self.size)


@dataclass
class TokenizerConfig:
    """A tokenizer, and the text that it is fitted on."""

    name: str = MISSING  # of the fitted tokenizer in the store
    kind: str = MISSING  # TOKENIZER_KINDS
    vocab_size: int | None = MISSING  # without <eos> and <unk>, null: no limit; unigram, bpe: with all special pieces
    fit_on: str = MISSING  # the whole train split, or the sample
    fit_sentences: int = MISSING  # SentencePiece is fitted on at most this many, drawn at random
    character_coverage: float = MISSING  # SentencePiece only

    def __post_init__(self) -> None:
        check_choice("tokenizer.kind", self.kind, TOKENIZER_KINDS)
        check_choice("tokenizer.fit_on", self.fit_on, FIT_ON)
        check_name("tokenizer.name", self.name)
        check_between("tokenizer.vocab_size", self.vocab_size, 1, MAX_VOCABULARY)
        check_between("tokenizer.fit_sentences", self.fit_sentences, 1, 10**9)
        check_between("tokenizer.character_coverage", self.character_coverage, 0, 1)


def check_chosen(corpus: CorpusConfig) -> None:
    """Raise NoCorpus if no corpus is chosen."""
    if isinstance(corpus, NoCorpusConfig):
        raise NoCorpus("corpus: not set, and has no default; give corpus=NAME")


@dataclass
class PathsConfig:
    """Folders for input and output. None of them can change a number."""

    data: str | None = None  # read-only
    store: str = MISSING  # prepared corpora
    runs: str = MISSING  # run folders, by study
    reports: str = MISSING  # reports and generated pairs


@dataclass
class CorporaConfig:
    """The configuration of `python -m corpora`."""

    corpus: CorpusConfig = MISSING
    sample: SampleConfig = MISSING
    tokenizer: TokenizerConfig = MISSING
    filter: FilterConfig | None = field(default=None, metadata=ADDED_LATER)  # of sentences, by a construction
    ablate: AblateConfig = field(default_factory=AblateConfig, metadata=ADDED_LATER)  # what samples do about them
    find: FindConfig = field(default_factory=FindConfig, metadata=NOT_IN_DIGEST)  # what corpora.find shows of matches
    seed: int = MISSING
    paths: PathsConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    dry_run: bool = field(default=MISSING, metadata=NOT_IN_DIGEST)
    verbose: bool = field(default=False, metadata=NOT_IN_DIGEST)

    # corpora.annotate
    parser: ParserConfig | None = field(default=None, metadata=NOT_IN_DIGEST)
    processes: int | None = field(default=None, metadata=NOT_IN_DIGEST)  # null: one a core

    def __post_init__(self) -> None:
        check_seed("seed", self.seed)
        check_between("processes", self.processes, 1, 4096)
        if self.ablate.acts and self.filter is None:
            raise ConfigError(f"ablate.action={self.ablate.action}: of which construction? give filter=NAME")
        if self.corpus.reference == "whitespace" and self.tokenizer.kind == "word":
            raise ConfigError(
                f"tokenizer=word: would split the words of the pretokenised corpus={self.corpus.name} again, <unk> "
                "among them; give tokenizer=whitespace"
            )

    def of_run(self) -> Self:
        """Return the configuration without what its ablation does not use, so that equal runs have equal ones.

        That is the filter and all of `ablate` if nothing is ablated, and the filter's rewriting rules if they are not
        followed.
        """
        if self.ablate.action == REPLACE:
            return self
        run = copy.copy(self)
        if self.filter is not None and self.ablate.acts:
            run.filter = dataclasses.replace(self.filter, rewrite=None)
        else:
            run.filter, run.ablate = None, AblateConfig()
        return run


store_schemas(
    "corpus",
    no_corpus_schema=NoCorpusConfig,
    toy_schema=ToyCorpusConfig,
    local_schema=LocalCorpusConfig,
    babylm_schema=BabylmCorpusConfig,
    conllu_schema=ConlluCorpusConfig,
    hub_schema=HubCorpusConfig,
    gulordava_schema=GulordavaCorpusConfig,
)
store_schemas("sample", sample_schema=SampleConfig)
store_schemas("tokenizer", tokenizer_schema=TokenizerConfig)
