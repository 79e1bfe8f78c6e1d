"""Compute the surprisal of words from the predictions of tokens.

A token belongs to the word that contains its first character other than white space. A space therefore belongs to the
following word, as in most tokenizers. The product of the probabilities of a word's tokens is then not the word's
probability, because only the marking of the next token shows that the word has ended. The probability is (Oh and
Schuler 2024; Pimentel and Meister 2024, theorem 1)

    p(word) = p(its tokens) * p(a word ends after it) / p(a word ended before it)

A word ends if the next token is marked as the beginning of a word or ends the text. For the first word of a text, the
divisor is the probability that a text begins with a token of the same marking as the word's first token.
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

    Words with the same index are read as one text, joined by spaces. Raises the same errors as `Scorer.predictions`.
    """
    texts = [list(text) for _, text in words.groupby(level=0, sort=False)["word"]]
    predictions = scorer.predictions([" ".join(text) for text in texts], policy, window, step)
    return pd.concat([words.reset_index(drop=True), word_surprisals(texts, predictions)], axis=1)


def word_surprisals(texts: Sequence[Sequence[str]], predictions: Sequence[TokenPredictions]) -> pd.DataFrame:
    """Compute the surprisal of each word of some texts.

    Args:
        texts: The words of each text, which was read with spaces between the words.
        predictions: The predictions for the tokens of each text.

    Returns:
        One row for each of W words, in order. The columns are surprisal (bits), surprisal_nats (nats) and uncorrected
        (bits, the sum over the word's tokens), entropy (bits) and rank (1 for the most probable) of the word's first
        token, and the numbers of tokens and of `<unk>` tokens (unk). If a word is inside a token of the previous word,
        its values are NaN and its rank is 0.
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
    # `ends` has one more value than there are tokens in each text.
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
    """Return (N,) the number of each token's word, from 0 to W - 1 over all texts.

    All texts are joined with spaces. A token belongs to the first word that ends after the token begins, so a token
    that begins with a space belongs to the word after the space.
    """
    ends = np.cumsum([len(word) + 1 for words in texts for word in words]) - 1  # (W,) end of each word's characters
    number = np.repeat(np.arange(len(texts)), [len(of.spans) for of in predictions])  # (N,) text of each token
    last = np.cumsum([len(words) for words in texts]) - 1  # word of each text
    offset = np.concatenate([[0], ends[last[:-1]] + 1])
    begins = np.concatenate([of.spans[:, 0] for of in predictions]) + offset[number]
    of_word: npt.NDArray[np.int64] = np.minimum(np.searchsorted(ends, begins, side="right"), last[number])
    return of_word
