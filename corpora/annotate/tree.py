"""A sentence with its dependency tree."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tree:
    """A sentence with its words as Universal Dependencies count them, and the tree that they form."""

    sentence: str
    starts: list[int]  # character of the sentence at which each word begins; words that a token contracts may share it
    ends: list[int]
    lemmas: list[str]
    upos: list[str]
    xpos: list[str]
    feats: list[str]  # "Number=Sing|Person=3", "" if none
    heads: list[int]  # index of each word's head, from 0; the root's is its own
    relations: list[str]

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.heads)

    @property
    def words(self) -> list[str]:
        """The words as they stand in the sentence."""
        return [self.sentence[start:end] for start, end in zip(self.starts, self.ends, strict=True)]
