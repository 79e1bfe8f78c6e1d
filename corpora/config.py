"""Configurations of texts: corpus, sample, tokenizer, filter, ablation and parser, and what the commands here read."""

import copy
import dataclasses
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from msgspec import Meta

from corpora.constructions.patterns import Pattern, Rule, compile_patterns, compile_rules
from pairscale.command.schemas import NOT_IN_DIGEST, Number, Seed, Share, Size, Texts, register_types
from pairscale.errors import ConfigError, check_name
from pairscale.sizes import parse_size

REFERENCES = ("treebank", "characters", "jieba", "whitespace")
Reference = Literal["treebank", "characters", "jieba", "whitespace"]
NONE: Final = "none"
REMOVE: Final = "remove"
KEEP_ONLY: Final = "keep_only"
REPLACE: Final = "replace"
CONTROL: Final = "control"
MOST_PARTS = 10**6  # of a dose
NOT_IN_TEXT = {"text": False}  # a field of a corpus that changes samples, but not the prepared text


@dataclass(kw_only=True)
class SplitConfig:
    """Shares of each source's documents that go to validation and test, drawn by a seeded hash."""

    seed: Seed  # of the hash that draws documents
    valid: Annotated[float, Meta(gt=0, lt=1)]  # share of validation
    test: Annotated[float, Meta(ge=0, lt=1)]  # share of test

    def __post_init__(self) -> None:
        if self.valid + self.test >= 1:
            raise ConfigError(f"corpus.split: valid={self.valid}, test={self.test}: must have a sum below 1")


@dataclass(kw_only=True)
class CorpusConfig:
    """A text with train/valid/test splits; `name` is its folder in the store."""

    name: str  # folder of the prepared text in the store
    reference: Reference  # the tokenizer that defines a word, whatever the model uses
    split: SplitConfig  # shares of validation and test
    domains: Texts = field(default=None, metadata=NOT_IN_TEXT)  # of samples: a list of names; null: all

    def __post_init__(self) -> None:
        if self.domains is not None:
            names = [self.domains] if isinstance(self.domains, str) else self.domains
            if not names:
                raise ConfigError("corpus.domains=[]: must be a list of names, such as [childes,switchboard], or null")
            self.domains = sorted(set(names))  # in any order, they are the same run
        check_name("corpus.name", self.name)


@dataclass(kw_only=True)
class NoCorpusConfig(CorpusConfig):
    """No corpus: for pretrained models, and for commands that read no text."""


@dataclass(kw_only=True)
class ToyCorpusConfig(CorpusConfig):
    """The built-in toy English, written by a seeded grammar."""

    words: Annotated[int, Meta(ge=1, le=10**10)]  # reference words to write, over all splits
    seed: Seed  # of the grammar that writes the text
    version: int = 1  # of the language; only the newest is written


@dataclass(kw_only=True)
class FilesCorpusConfig(CorpusConfig):
    """Files of the user; their names, without endings, are the domains of the text."""

    path: Texts = field(metadata=NOT_IN_DIGEST)  # a file, a folder, a glob, or a list of them
    document_sentences: Number | None = None  # cut documents into parts of at most this many sentences
    # true: files of train, dev (or valid) and test are the splits of the text; false: all files are one text.
    published_splits: bool = True
    # Only this share of the documents is read, drawn by a hash seeded with split.seed; larger shares contain smaller.
    share: Annotated[float, Meta(gt=0, le=1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share == 1:
            self.share = None  # the same text


@dataclass(kw_only=True)
class LocalCorpusConfig(FilesCorpusConfig):
    """The user's own text files."""

    text_field: str  # the field or column of .jsonl and .parquet with the text
    split_sentences: bool  # true: running text; false: one sentence per line, empty lines between documents


@dataclass(kw_only=True)
class ConlluCorpusConfig(FilesCorpusConfig):
    """Treebanks and parsed text in CoNLL-U, whose sentences and documents ("# newdoc") are those of the text."""


@dataclass(kw_only=True)
class BabylmCorpusConfig(LocalCorpusConfig):
    """The text data of a BabyLM challenge as downloaded: childes.train, childes.dev, childes.test and others."""


@dataclass(kw_only=True)
class HubCorpusConfig(CorpusConfig):
    """A data set of the Hugging Face Hub, or a local copy of it."""

    dataset: str  # OWNER/NAME on the hub
    subset: str | None = None  # of the data set; null: its default
    revision: str | None = None  # a branch, tag or commit; null: the main branch
    text_field: str  # the column with the text
    # The content of a row; wikitext: a paragraph, or the heading "= Title =" of an article.
    rows: Literal["document", "line", "wikitext"]
    split_sentences: bool  # true: running text; false: one sentence per line
    document_sentences: Number | None = None  # cut documents into parts of at most this many sentences
    published_splits: bool  # true: keep the data set's own train, validation and test splits
    path: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a local copy: a folder of save_to_disk


@dataclass(kw_only=True)
class GulordavaCorpusConfig(CorpusConfig):
    """The pretokenised Wikipedia of Gulordava et al. 2018: train.txt, valid.txt and test.txt."""

    url: str = field(metadata=NOT_IN_DIGEST)  # folder of the published files
    path: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a folder with the three files
    document_sentences: Number | None = None  # sentences per document: the published text is shuffled and has none


@dataclass(kw_only=True)
class SampleConfig:
    """A random part of the train split, drawn without replacement and cut to exactly `size`."""

    size: Size  # "125k", "1/8M", ... in units of `count`
    count: Literal["words", "characters", "sentences"]  # unit of `size`
    unit: Literal["sentence", "document"]  # unit of drawing
    nested: bool  # small samples are prefixes of larger ones of the same seed
    seed: Seed | None = None  # null: derived from the run's seed
    # domain: the share of each domain is that of the train split, to the word; null: about that, as drawn at random.
    strata: Literal["domain"] | None = None
    # Words in random order, within each sentence or over the whole sample: a baseline without grammar; null: in order.
    shuffle: Literal["sentence", "sample"] | None = None

    @property
    def number(self) -> int:
        """The size as a number of words, characters or sentences."""
        return parse_size(self.size)


@dataclass(kw_only=True)
class TokenizerConfig:
    """A tokenizer, and the text that it is fitted on."""

    name: str  # of the fitted tokenizer in the store
    kind: Literal["word", "char", "unigram", "bpe", "jieba", "whitespace"]  # of its pieces
    # Without <eos> and <unk>, null: no limit; unigram, bpe: with all special pieces.
    vocab_size: Annotated[int, Meta(ge=1, le=10**7)] | None
    fit_on: Literal["train", "sample"]  # the whole train split, or the sample
    fit_sentences: Number  # SentencePiece is fitted on at most this many, drawn at random
    character_coverage: Share  # SentencePiece only

    def __post_init__(self) -> None:
        check_name("tokenizer.name", self.name)


@dataclass(kw_only=True)
class Construction:
    """A construction of some sentences; what it is called and where it comes from changes no sample."""

    name: str = field(metadata=NOT_IN_DIGEST)  # of the construction, in the names of runs and curves
    description: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # what it finds, in a line
    source: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # the paper that defines it
    # Paradigms of each benchmark that test the construction: evidence for them is direct, for all others indirect.
    paradigms: dict[str, list[str]] = field(default_factory=dict, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        check_name("filter.name", self.name)


@dataclass(kw_only=True)
class RegexFilter(Construction):
    """A construction as a regular expression; a sentence has it if the expression matches somewhere in it."""

    regex: str  # in the syntax of the package `regex`, a superset of Python's `re`

    def __post_init__(self) -> None:
        import regex  # slow to import, and most runs have no filter

        super().__post_init__()
        try:
            regex.compile(self.regex)
        except regex.error as error:
            raise ConfigError(f"filter.regex={self.regex}: not a regular expression ({error})") from None


@dataclass(kw_only=True)
class FilterConfig(Construction):
    """A construction as patterns over dependency trees; a sentence has it if one of them matches."""

    description: str = field(metadata=NOT_IN_DIGEST)  # what it finds, in a line
    # Lists of nodes in the language of spaCy's DependencyMatcher (corpora/constructions/patterns.py). The first node of
    # each is the word that is counted.
    patterns: list[Any]
    # Such patterns: a match that one of them extends is none. Nodes of the same name are the same word; a pattern is
    # compared with those of `without` whose first node is one of its own.
    without: list[Any] = field(default_factory=list)
    # Of ablate.action=replace: what stands in its place (corpora/constructions/patterns.py), by a rule for all patterns
    # or a list of one for each.
    rewrite: Annotated[Any, Meta(description="a rule, or a list of one for each pattern, or null")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        patterns, without = self.compiled()
        if not patterns:
            raise ConfigError(f"filter={self.name}: patterns=[]: must have at least one pattern")
        names = {node.name for pattern in patterns for node in pattern}
        for number, pattern in enumerate(without):
            if pattern[0].name not in names:
                raise ConfigError(
                    f"filter={self.name}: without[{number}], node 0 ({pattern[0].name}): no node of a pattern; must be "
                    f"one of {', '.join(sorted(names))}"
                )
        self.rules()

    def compiled(self) -> tuple[list[Pattern], list[Pattern]]:
        """Return patterns and without, compiled. Raises ConfigError."""
        return (
            compile_patterns(self.patterns, f"filter={self.name}: patterns"),
            compile_patterns(self.without, f"filter={self.name}: without"),
        )

    def rules(self) -> list[Rule | None]:
        """Return the rewriting rule of each pattern, compiled, None where there is none. Raises ConfigError."""
        patterns, _ = self.compiled()
        if self.rewrite is None:
            return [None] * len(patterns)
        return compile_rules(self.rewrite, patterns, f"filter={self.name}: rewrite")


@dataclass(kw_only=True)
class AblateConfig:
    """What samples do about the sentences that the filter matches; a dose of 1 leaves all of them, as none does."""

    action: Literal["none", "remove", "keep_only", "replace", "control"] = "none"
    # Share of these sentences that stay as they are.
    dose: Annotated[Any, Meta(description="a share from 0 to 1, such as 1/8 or 0.125")] = "0"
    layer: str | None = None  # the annotation of the text that a filter of trees searches; null: its only one
    seed: Seed | None = None  # of doses, controls and lemmas; null: derived from the run's seed
    # A CSV file for the list of all sentences that are removed or rewritten (python -m corpora).
    listing: str | None = field(default=None, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        self.dose = _dose(self.dose)
        if self.layer is not None:
            check_name("ablate.layer", self.layer)
        if self.action == KEEP_ONLY and self.dose != "0":
            raise ConfigError(f"ablate.dose={self.dose} with ablate.action=keep_only: keeps them all; leave it out")
        if self.dose == "1":
            self.action = NONE

    @property
    def acts(self) -> bool:
        """True unless samples are as without a filter."""
        return self.action != NONE

    @property
    def words(self) -> list[str]:
        """The parts of a run's name: the action, and a dose above 0 as a decimal number."""
        return [self.action] + ([f"dose{float(Fraction(self.dose)):.4g}"] if self.dose != "0" else [])


def _dose(value: Any) -> str:
    """Return a dose as a fraction in lowest terms: "0", "1/8", "1". Raises ConfigError."""
    text = str(value)
    if re.fullmatch(r"\d{1,6}/0*[1-9]\d{0,5}|\d{0,2}\.?\d{1,12}|\d\.", text) and not isinstance(value, bool):
        dose = Fraction(text).limit_denominator(MOST_PARTS)
        if 0 <= Fraction(text) <= 1:
            return str(dose)
    raise ConfigError(f"ablate.dose={text[:80]}: must be a share from 0 to 1, such as 1/8 or 0.125")


@dataclass(kw_only=True)
class ParserConfig:
    """A parser; `name` is that of its layer in the store: annotation-NAME."""

    parser: ClassVar[str]  # "module:class" of the Parser, imported when it is used
    name: str  # of the layer in the store

    def __post_init__(self) -> None:
        check_name("parser.name", self.name)


@dataclass(kw_only=True)
class SpacyConfig(ParserConfig):
    """A pipeline of spaCy whose labels are those of Universal Dependencies."""

    parser = "corpora.annotate.parsers.spacy:SpacyParser"
    model: str  # a folder, or the name of an installed package


@dataclass(kw_only=True)
class ConlluConfig(ParserConfig):
    """Trees that are there already: the sentences of CoNLL-U files, in order, are those of the text."""

    parser = "corpora.annotate.parsers.conllu:ConlluParser"
    path: Texts = None  # a file, a folder, a glob, or a list of them; null: corpus.path of corpus=conllu


def check_chosen(corpus: CorpusConfig) -> None:
    """Raise ConfigError if no corpus is chosen."""
    if isinstance(corpus, NoCorpusConfig):
        from pairscale.command.compose import group_files  # here, as it imports Hydra

        names = ", ".join(name for name in group_files("corpus") if name != "none")
        raise ConfigError(f"corpus: not set, and has no default; give corpus=NAME; available: {names}")


@dataclass(kw_only=True)
class PathsConfig:
    """Folders for input and output. None of them can change a number."""

    data: str | None = None  # read-only
    store: str  # prepared corpora
    runs: str  # run folders, by study
    reports: str  # reports and generated pairs


@dataclass(kw_only=True)
class RootConfig:
    """What all commands have, so that a script can give it to all."""

    study: str | None = field(default=None, metadata=NOT_IN_DIGEST)
    seed: Seed
    paths: PathsConfig = field(metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        for name in self.study.split("+") if self.study is not None else ():  # the analysis takes several
            check_name("study", name)


@dataclass(kw_only=True)
class TextConfig(RootConfig):
    """A command that reads a text."""

    corpus: CorpusConfig


@dataclass(kw_only=True)
class AnnotateConfig(TextConfig):
    """What `python -m corpora.annotate` reads."""

    parser: ParserConfig
    processes: Annotated[int, Meta(ge=1, le=4096)] | None = None  # that parse at once; null: one per core
    dry_run: bool


@dataclass(kw_only=True)
class FindConfig:
    """What python -m corpora.find shows of a filter's matches."""

    show: Annotated[int, Meta(ge=0, le=10**6)] = 20  # matching sentences of the train split, drawn at random
    tree: bool = False  # show their trees, too, with the names of the pattern's nodes
    sheet: str | None = None  # a CSV file of sentences to judge: written if it does not exist, else read
    sentences: Annotated[int, Meta(ge=1, le=10**5)] = 100  # of the sheet: as many that match and as many that do not
    seed: Seed = 1  # draws the sentences


@dataclass(kw_only=True)
class FindCommand(TextConfig):
    """What `python -m corpora.find` reads."""

    filter: FilterConfig | RegexFilter | None = None  # a construction, by trees
    ablate: AblateConfig = field(default_factory=AblateConfig)  # of which it reads the layer
    find: FindConfig = field(default_factory=FindConfig)  # what it shows of matches


@dataclass(kw_only=True)
class CorporaConfig(TextConfig):
    """What `python -m corpora` reads."""

    sample: SampleConfig
    tokenizer: TokenizerConfig
    filter: FilterConfig | RegexFilter | None = None  # of sentences: a construction, by trees or a regular expression
    ablate: AblateConfig = field(default_factory=AblateConfig)  # what samples do about them
    dry_run: bool = field(metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ablate.acts and self.filter is None:
            raise ConfigError(
                f"ablate.action={self.ablate.action}: of which construction? give filter=NAME, or filter.name=NAME and "
                "filter.regex=EXPRESSION"
            )
        if isinstance(self.filter, RegexFilter) and self.ablate.action == REPLACE:
            raise ConfigError(
                f"ablate.action=replace with filter.regex={self.filter.regex}: only a filter of trees has rules that "
                "rewrite a sentence; give ablate.action=remove, control or keep_only"
            )
        if isinstance(self.filter, RegexFilter) and self.ablate.layer is not None:
            raise ConfigError(
                f"ablate.layer={self.ablate.layer} with filter.regex={self.filter.regex}: a regular expression "
                "searches the text itself, not an annotation; leave ablate.layer out"
            )
        if self.corpus.reference == "whitespace" and self.tokenizer.kind == "word":
            raise ConfigError(
                f"tokenizer=word: would split the words of the pretokenised corpus={self.corpus.name} again, <unk> "
                "among them; give tokenizer=whitespace"
            )

    @property
    def unused_filter(self) -> str | None:
        """Return a sentence on a filter that samples don't follow; None if there is none."""
        if self.filter is None or self.ablate.acts:
            return None
        return f"filter={self.filter.name} isn't used, as ablate.action=none: samples are of the full text"

    def of_run(self) -> Self:
        """Return the configuration without what its ablation does not use, so that equal runs have equal ones.

        That is the filter and all of `ablate` if nothing is ablated, and the filter's rewriting rules if they are not
        followed.
        """
        if self.ablate.action == REPLACE:
            return self
        run = copy.copy(self)
        if self.filter is None or not self.ablate.acts:
            run.filter, run.ablate = None, AblateConfig()
        elif isinstance(self.filter, FilterConfig):
            run.filter = dataclasses.replace(self.filter, rewrite=None)
        return run


register_types(
    CorpusConfig,
    none=NoCorpusConfig,
    toy=ToyCorpusConfig,
    local=LocalCorpusConfig,
    babylm=BabylmCorpusConfig,
    conllu=ConlluCorpusConfig,
    hub=HubCorpusConfig,
    gulordava=GulordavaCorpusConfig,
)
register_types(ParserConfig, spacy=SpacyConfig, conllu=ConlluConfig)
