"""Find the words of a text that each token of a masked model belongs to."""

import re
from collections.abc import Sequence

import numpy as np

from eval.benchmarks.cells import shown
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError

CHINESE = re.compile("[\u3400-\u9fff]")
UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff]")  # Thai, Lao, Tibetan, Burmese, Khmer, kana


def words_of_tokens(sentence: str, words: Sequence[int | None], spans: Sequence[tuple[int, int]]) -> Ids:
    """Return the numbers (2, n) of the first and the last word that each of n tokens overlaps with.

    `words` contains the number of each token's word, if the tokenizer splits texts into words. A word begins where the
    tokenizer begins one, at white space (which belongs to the following word), and at each Chinese character. Raises
    ConfigError if the ends of words can't be determined. An example is a sentence without white space in a script such
    as Thai, if the tokenizer doesn't split it into words.
    """
    begins = np.zeros(len(sentence) + 1, dtype=bool)  # whether a word begins with this character
    for space in re.finditer(r"\s+", sentence):
        begins[space.start()] = True
    for character in CHINESE.finditer(sentence):
        begins[[character.start(), character.end()]] = True
    known = _white_space_tells(sentence)
    if not _cut_by_characters(sentence, words, spans):
        for at in range(1, len(spans)):
            start, end = spans[at]
            if end > start and words[at] != words[at - 1]:
                begins[start] = True
                pair = sentence[max(0, start - 1) : start + 1]
                known = known or (_are_letters(pair) and all(map(UNSPACED.match, pair)))
    starts = np.asarray([start for start, _ in spans], dtype=np.int64)
    # White space at the end of a token is ignored.
    ends = np.asarray([max(start, start + len(sentence[start:end].rstrip()) - 1) for start, end in spans], np.int64)
    number = np.cumsum(begins)
    first, last = number[starts], number[ends]
    for at in np.flatnonzero((first[1:] <= last[:-1]) & (starts[1:] > starts[:-1])).tolist():
        if not known and UNSPACED.search(sentence, spans[at][0], ends[at + 1] + 1):
            raise ConfigError(
                f"policy.pll=within_word_l2r: the ends of the words in {shown(sentence)} can't be determined from "
                "white space or from the tokenizer. Use policy.pll=original."
            )
    return np.stack([first, last])


def _white_space_tells(sentence: str) -> bool:
    """Return True if white space separates words, even in a script that is usually written without it.

    This is assumed for a text of three or more parts, and for two parts that are both in such scripts. In other texts,
    white space may only separate two scripts.
    """
    parts = sentence.split()
    return len(parts) > 2 or (len(parts) == 2 and all(UNSPACED.search(one) or CHINESE.search(one) for one in parts))


def _cut_by_characters(sentence: str, words: Sequence[int | None], spans: Sequence[tuple[int, int]]) -> bool:
    """Return True if the tokenizer treats each character as a word, even within words of several letters."""
    pairs = [at for at in range(len(spans) - 1) if _are_letters(sentence[spans[at][0] : spans[at + 1][1]])]
    return (
        bool(pairs)
        and all(end - start <= 1 for start, end in spans)
        and all(words[at] != words[at + 1] for at in pairs)
    )


def _are_letters(pair: str) -> bool:
    return len(pair) == 2 and pair.isalpha() and not CHINESE.search(pair)
