"""Schema of the section `reading`: how `python -m analysis.reading` reads times, and what it fits."""

from dataclasses import dataclass

from pairscale.errors import check_above, check_between, check_choice, check_seed

TABLE, NATURAL_STORIES, BABYLM = FORMS = ("table", "natural_stories", "babylm")
SAMPLE, COLUMN = "sample", "column"
SENTENCE, TEXT, NONE = EDGES = ("sentence", "text", "none")


@dataclass
class ReadingConfig:
    """The form of the file of times, the regression, and which words it leaves out."""

    form: str = TABLE  # of the file
    measure: str | None = None  # column of times; null: the usual one of the form
    words: str | None = None  # a file of the same form with the words for which there are no times
    formula: str | None = None  # of the baseline; null: length, frequency and position, also of the words before
    spillover: int = 1  # words before, whose surprisal, length and frequency count too
    frequency: str = SAMPLE  # of words: in each run's own sample, the file's column, or a file
    folds: int = 10  # of whole texts
    lowest: float | None = 100.0  # ms, of single readings
    highest: float | None = 3000.0
    edges: str = SENTENCE  # whose first and last words are left out
    seed: int = 1  # of the folds

    def __post_init__(self) -> None:
        check_choice("reading.form", self.form, FORMS)
        check_choice("reading.edges", self.edges, EDGES)
        check_between("reading.spillover", self.spillover, 0, 5)
        check_between("reading.folds", self.folds, 2, 1000)
        check_above("reading.lowest", self.lowest, -1)
        check_above("reading.highest", self.highest, self.lowest or 0)
        check_seed("reading.seed", self.seed)
