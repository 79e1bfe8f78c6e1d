"""A slow, literal Kneser-Ney smoothing, the reference for n-gram models."""

import itertools
import math
from collections import Counter

FALLBACK = (0.5, 1.0, 1.5)  # discounts of n-grams seen once, twice and more, where they cannot be estimated


class KneserNey:
    """Modified, interpolated Kneser-Ney smoothing by its formulas: Chen & Goodman 1999, equations 23 to 26, the
    unigrams interpolated with a uniform distribution over the vocabulary as in Heafield et al. 2013, section 3. KenLM
    reserves a place in it for an unseen word if all words of the vocabulary are seen.
    """

    def __init__(self, texts: list[list[str]], order: int, vocabulary: int):
        self.order = order
        occurrences: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order + 1)]
        for text in texts:
            padded = ["<s>", *text, "</s>"]
            for n in range(1, order + 1):
                occurrences[n].update(zip(*(padded[at:] for at in range(n)), strict=False))
        self.seen = occurrences
        # Below the highest order the count is the number of different preceding words, except after <s>.
        self.counts: list[dict[tuple[str, ...], int]] = [{} for _ in range(order)] + [dict(occurrences[order])]
        for n in range(1, order):
            before = Counter(gram[1:] for gram in occurrences[n + 1])
            self.counts[n] = {
                gram: occurrences[n][gram] if gram[0] == "<s>" else before[gram] for gram in occurrences[n]
            }
        del self.counts[1]["<s>",]
        self.vocabulary = max(vocabulary, len(self.counts[1]) + 1)
        rank = {word: at for at, word in enumerate(dict.fromkeys(["<s>", "</s>", *itertools.chain(*texts)]))}
        full = (["<s>"] * (order - 1) + [*text, "</s>"] for text in texts)
        windows = (gram for text in full for gram in zip(*(text[at:] for at in range(order)), strict=False))
        self.last = max(windows, key=lambda gram: [rank[word] for word in reversed(gram)])
        self.discounts = [self.discounts_of(n) for n in range(order + 1)]

    def discounts_of(self, n: int) -> tuple[float, ...]:
        times = Counter(self.counts[n].values())
        if 0 < n < self.order and self.last[-n:].count("<s>") < 2:
            # A quirk of KenLM, negligible in a text of natural size: the lower-order n-grams at the end of the n-gram
            # that sorts last (from the last word to the first) count as often as they were seen.
            times[self.counts[n][self.last[-n:]]] -= 1
            times[self.seen[n][self.last[-n:]]] += 1
        if not all(times[k] for k in (1, 2, 3)):
            return FALLBACK
        y = times[1] / (times[1] + 2 * times[2])
        discounts = tuple(k - (k + 1) * y * times[k + 1] / times[k] for k in (1, 2, 3))
        return discounts if all(0 <= d <= k for k, d in enumerate(discounts, start=1)) else FALLBACK

    def probability(self, word: str, history: tuple[str, ...]) -> float:
        if len(history) >= self.order:
            history = history[len(history) - self.order + 1 :]
        n = len(history) + 1
        lower = self.probability(word, history[1:]) if history else 1 / self.vocabulary
        followers = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == history}
        if not followers:
            return lower
        discount = {w: self.discounts[n][min(count, 3) - 1] for w, count in followers.items()}
        left = sum(discount.values()) * lower
        return (followers.get(word, 0) - discount.get(word, 0) + left) / sum(followers.values())

    def logprobs(self, text: list[str]) -> list[float]:
        padded = ["<s>", *text, "</s>"]
        return [math.log(self.probability(padded[at], tuple(padded[:at]))) for at in range(1, len(padded))]
