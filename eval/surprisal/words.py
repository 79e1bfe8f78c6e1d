"""From the predictions of tokens to the surprisal of words.

A token belongs to the word of the first character, at or after its start, that is no white space: a space counts to the
word after it, as tokenizers put it. The sum of a word's tokens is then no probability of the word: whether it ended is
only seen in the mark of the next token (Oh and Schuler 2024; Pimentel and Meister 2024, theorem 1). So

    p(word) = p(its tokens) * p(a word ends after it) / p(a word ended before it)

where a word ends if the next token has the mark of a new word or ends the text. The first word of a text divides by the
probability that a text begins with a token marked like its own.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Scorer
from eval.scorers.predictions import TokenPredictions


def text_surprisals(
    scorer: Scorer,
    words: pd.DataFrame,
    policy: PolicyConfig = PLAIN,
    window: int | None = None,
    step: int | None = None,
) -> pd.DataFrame:
    """Return the rows of `words` (eval.surprisal.texts.read_texts) with the columns of `word_surprisals`.

    Words with the same index are read as one text, with a space between each two. Raises what Scorer.predictions does.
    """
    texts = [list(text) for _, text in words.groupby(level=0, sort=False)["word"]]
    predictions = scorer.predictions([" ".join(text) for text in texts], policy, window, step)
    return pd.concat([words.reset_index(drop=True), word_surprisals(texts, predictions)], axis=1)


def word_surprisals(texts: Sequence[Sequence[str]], predictions: Sequence[TokenPredictions]) -> pd.DataFrame:
    """Return a row for each of W words, in order; texts: words, between each two of which a space was read.

    surprisal: bits; surprisal_nats: the same in nats; uncorrected: bits, the sum of the tokens alone; entropy: bits, of
    the distribution over the token with which the word begins; rank: of that token, 1 for the most probable; tokens,
    unk: how many, and how many of these are `<unk>`. NaN, and 0 for the rank, for a word that lies in the token of the
    word before.
    """
    of_word = _word_of_tokens(texts, predictions)
    text = np.repeat(np.arange(len(texts)), [len(words) for words in texts])  # (W,)
    total = len(text)
    logprobs, entropies, ranks, unknown, ends = (
        np.concatenate([getattr(of, name) for of in predictions])
        for name in ("logprobs", "entropies", "ranks", "unk", "ends")
    )
    counts = np.bincount(of_word, minlength=total)
    first = np.cumsum(counts) - counts
    begins_text = np.diff(text, prepend=-1) > 0
    # `ends` has one value more than tokens for each text.
    before = np.where(begins_text, np.asarray([of.begin for of in predictions])[text], ends[first + text])
    plain = -np.bincount(of_word, weights=logprobs, minlength=total)
    nats = plain + before - ends[first + counts + text]
    nothing = np.where(counts > 0, 0, np.nan)
    at = np.minimum(first, len(of_word) - 1)
    return pd.DataFrame(
        {
            "surprisal": nats / np.log(2) + nothing,
            "surprisal_nats": nats + nothing,
            "uncorrected": plain / np.log(2) + nothing,
            "entropy": entropies[at] / np.log(2) + nothing,
            "rank": np.where(counts > 0, ranks[at], 0),
            "tokens": counts,
            "unk": np.bincount(of_word, weights=unknown, minlength=total).astype(np.int64),
        }
    )


def _word_of_tokens(texts: Sequence[Sequence[str]], predictions: Sequence[TokenPredictions]) -> npt.NDArray[np.int64]:
    """Return the word of each token of all texts, (N,) numbers from 0 to W - 1.

    Of the texts one after another, a space between each two: a token is of the word that ends after the token begins,
    as a token that begins with the space is of the word after it.
    """
    ends = np.cumsum([len(word) + 1 for words in texts for word in words]) - 1  # (W,) of each word's characters
    number = np.repeat(np.arange(len(texts)), [len(of.spans) for of in predictions])  # (N,) text of each token
    last = np.cumsum([len(words) for words in texts]) - 1  # word of each text
    offset = np.concatenate([[0], ends[last[:-1]] + 1])
    begins = np.concatenate([of.spans[:, 0] for of in predictions]) + offset[number]
    of_word: npt.NDArray[np.int64] = np.minimum(np.searchsorted(ends, begins, side="right"), last[number])
    return of_word
