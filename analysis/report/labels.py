"""Choose the names and the order of curves in tables and figures."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import pandas as pd

from pairscale.errors import ConfigError

# Display names of architectures, by the first part of a model's name in conf/model/.
ARCHITECTURES = {
    "bert": "BERT", "deberta": "DeBERTa", "gpt2": "GPT-2", "gpt": "GPT", "gru": "GRU", "llama": "LLaMA", "lstm": "LSTM",
    "mamba": "Mamba", "ngram": "n-gram", "opt": "OPT", "rnn": "RNN", "roberta": "RoBERTa", "txl": "Transformer-XL",
}  # fmt: skip


def display_names(curves: Sequence[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return the display name of each curve.

    A curve with a label has this label. Other curves have the name of their architecture, if it is unique, or else
    their own name.

    Args:
        curves: The names of curves in the long table.
        labels: Labels by curve name (`analysis.labels`).

    Raises:
        ConfigError: If a label is for an unknown curve, or if two curves would have the same name.
    """
    check_names("analysis.labels", labels, curves)
    kinds = [curve if "," in curve else ARCHITECTURES.get(curve.partition("_")[0], curve) for curve in curves]
    alone = {curve: kind if kinds.count(kind) == 1 else curve for curve, kind in zip(curves, kinds, strict=True)}
    names = alone | dict(labels)
    for name, number in Counter(names.values()).items():
        if number > 1:
            twice = " and ".join(curve for curve in curves if names[curve] == name)
            raise ConfigError(f"analysis.labels: {twice} would both be called '{name}'. Choose different labels.")
    return names


def check_names(key: str, chosen: Iterable[str], known: Collection[str], kind: str = "curve", where: str = "") -> None:
    """Raise ConfigError if a chosen name isn't known.

    Args:
        key: The configuration key that the names come from, such as "analysis.order".
        chosen: The chosen names.
        known: The known names.
        kind: What the names refer to, such as "curve".
        where: The end of the sentence, such as " in blimp".
    """
    for name in chosen:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean '{close[0]}'?" if close else f"Choose from {', '.join(known)}."
            raise ConfigError(f"{key}: there is no {kind} '{name}'{where}. {hint}")


def in_order(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return a table sorted by curve. The curves in `order` come first, and the others keep their order."""
    place = {curve: number for number, curve in enumerate(dict.fromkeys([*order, *table["curve"]]))}
    return table.iloc[table["curve"].map(place).argsort(kind="stable")].reset_index(drop=True)


def renamed(table: pd.DataFrame, names: Mapping[str, str], order: Sequence[str]) -> pd.DataFrame:
    """Return a table with display names in its column `curve`, sorted by `order` (original or display names)."""
    table = table.assign(curve=table["curve"].map(lambda curve: names.get(curve, curve)))
    return in_order(table, [names.get(curve, curve) for curve in order])


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """Replace the long table's names of curves with display names in a sentence."""
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = rf"(?<![\w=/-])(?:{longest_first})(?![\w=/-])"
    return re.sub(pattern, lambda match: names[match[0]], text) if names else text
