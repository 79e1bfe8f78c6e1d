"""Schema of the section `find`."""

from dataclasses import dataclass

from pairscale.errors import check_between, check_seed


@dataclass
class FindConfig:
    """What python -m corpora.find shows of a filter's matches."""

    show: int = 20  # matching sentences of the train split, drawn at random
    tree: bool = False  # show their trees, too, with the names of the pattern's nodes
    sheet: str | None = None  # a CSV file of sentences to judge: written if it does not exist, else read
    sentences: int = 100  # of the sheet: as many that match and as many that do not
    seed: int = 1  # draws the sentences

    def __post_init__(self) -> None:
        check_between("find.show", self.show, 0, 10**6)
        check_between("find.sentences", self.sentences, 1, 10**5)
        check_seed("find.seed", self.seed)
