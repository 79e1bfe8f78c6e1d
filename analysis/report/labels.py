"""The names, order and colours of curves in tables and figures, chosen when a study is analysed."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import pandas as pd

from pairscale.errors import ConfigError

# What readers call a model, by the first part of its name in conf/model/.
ARCHITECTURES = {
    "bert": "BERT", "deberta": "DeBERTa", "gpt2": "GPT-2", "gpt": "GPT", "gru": "GRU", "llama": "LLaMA", "lstm": "LSTM",
    "mamba": "Mamba", "ngram": "n-gram", "opt": "OPT", "rnn": "RNN", "roberta": "RoBERTa", "txl": "Transformer-XL",
}  # fmt: skip


def display_names(curves: Sequence[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return what each curve is called: its label, else its architecture if no other curve has that, else its name.

    Args:
        curves: names of curves, as in the long table.
        labels: `analysis.labels`, by the name of a curve.

    Raises:
        ConfigError: for a label of a curve that isn't there, or for one label of two curves.
    """
    check_curves("analysis.labels", labels, curves)
    kinds = {
        curve: ARCHITECTURES.get(curve.partition("_")[0], curve) if "," not in curve else curve for curve in curves
    }
    alone = {curve: kind for curve, kind in kinds.items() if list(kinds.values()).count(kind) == 1}
    names = {curve: labels.get(curve, alone.get(curve, curve)) for curve in curves}
    for name in names.values():
        if list(names.values()).count(name) > 1:
            twice = [curve for curve in curves if names[curve] == name]
            raise ConfigError(
                f"analysis.labels: {' and '.join(twice)} would both be called “{name}”. Choose two labels."
            )
    return names


def check_curves(key: str, chosen: Sequence[str] | Mapping[str, str], curves: Sequence[str]) -> None:
    """Raise ConfigError for the first chosen curve that isn't one of `curves`."""
    for name in chosen:
        if name not in curves:
            close = get_close_matches(name, curves, 1)
            hint = f"Did you mean “{close[0]}”?" if close else f"Curves here: {', '.join(curves)}."
            raise ConfigError(f"{key}: there is no curve “{name}”. {hint}")


def in_order(table: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return a table whose rows are sorted by curve: those of `order` first, then the others as they are."""
    first = [curve for curve in order if curve in set(table["curve"])]
    rest = [curve for curve in table["curve"].unique() if curve not in first]
    place = {curve: number for number, curve in enumerate([*first, *rest])}
    return table.iloc[table["curve"].map(place).argsort(kind="stable")].reset_index(drop=True)
