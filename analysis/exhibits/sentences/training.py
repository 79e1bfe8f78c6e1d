"""The paragraphs on training: models, recipes, tokenizers and samples, from configurations and manifests."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.sentences.curves import joined, plural
from analysis.exhibits.tables.slopes import architecture
from analysis.study.collect import fitted_on_samples
from analysis.study.judgements import sized
from pairscale.sizes import written

Config = Mapping[str, Any]
_UNNAMED = ("name", "seed")  # keys of a model that say nothing of its architecture
_OF_RUNS = ("parameters", "manifest")
_BEST, _LAST = "the weights of the best validation", "the last weights"


def training(runs: pd.DataFrame, configs: Mapping[str, Config]) -> list[str]:
    """Describe how the runs were trained, for a paper; nothing of models that come trained.

    `runs`: rows of Study.runs; `configs`: Study.config.
    """
    trained = runs[[configs.get(str(run), {}).get("recipe") is not None for run in runs.index]]
    if trained.empty:
        return []
    parameters, manifests = ({str(run): value for run, value in trained[name].items()} for name in _OF_RUNS)

    def model(run: str) -> str:
        number = parameters[run]
        size = "" if pd.isna(number) else f"; {number:,.0f} parameters"
        values = {key: value for key, value in configs[run]["model"].items() if key not in _UNNAMED}
        listed = ", ".join(f"{key}={written(value)}" for key, value in values.items() if value not in (None, []))
        name = str(configs[run]["model"]["name"])
        kind = f"{architecture(name)}: " if architecture(name) else ""
        return f"model={name} ({kind}{listed}{size})"

    return [
        f"Models: {_by_group(trained, model)}.",
        f"Training: {_by_group(trained, lambda run: _recipe(configs[run]))}.",
        f"Tokenizers: {_by_group(trained, lambda run: _tokenizer(configs[run], manifests[run]))}.",
        *_samples(trained, configs),
    ]


def comparisons_made(slopes: pd.DataFrame, differences: pd.DataFrame | None) -> list[str]:
    """Count the intervals and tests of a section; `slopes`: Curves.slopes, `differences`: of compare_slopes."""
    known = slopes[(slopes["pairs"] == ALL_PAIRS) & slopes["low"].notna()]
    number = {level: int((known["level"] == level).sum()) for level in ("overall", "phenomenon", "paradigm")}
    if not number["overall"]:
        return []
    text = (
        f"Slopes with intervals: {number['overall']} overall, {number['phenomenon']:,} of phenomena and "
        f"{number['paradigm']:,} of paradigms, none of them corrected for multiple comparisons."
    )
    if differences is not None and differences["p_holm"].notna().any():
        tests = differences[differences["p_holm"].notna()]["level"].value_counts()
        counts = joined([f"{tests.get(level, 0):,} {of}" for level, of in
                         (("overall", "overall"), ("phenomenon", "of phenomena"))])  # fmt: skip
        text += f" Differences between curves: {counts}, with Holm's correction within each."
    return [text]


def _by_group(runs: pd.DataFrame, text: Callable[[str], str]) -> str:
    """Return the texts of runs, each with the curves that it is about unless it is about all."""
    groups: dict[str, dict[str, None]] = {}
    for run, group in runs["group"].items():
        groups.setdefault(text(str(run)), {})[str(group)] = None
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{joined([*names])}: {about}" for about, names in groups.items())


def _recipe(config: Config) -> str:
    recipe = config["recipe"]
    length = _length(recipe.get("budget") or {})
    if not recipe.get("batch"):
        return "counts of the sample, read once" if recipe.get("batch") == 0 else length
    parts = [length, f"batches of {recipe['batch']} × {recipe['bptt']} tokens", _optimiser(recipe)]
    parts.append(f"gradients clipped at a norm of {recipe['clip']:g}")
    parts.append(f"{_BEST if recipe['export'] == 'best' else _LAST} are scored")
    parts.append(f"precision {config['precision']}")
    return ", ".join(parts)


def _length(budget: Config) -> str:
    if (epochs := budget.get("epochs")) is None:
        return f"{budget.get('words')} words seen"
    at_least = f", at least {budget['min_words']} words" if budget.get("min_words") else ""
    return f"{epochs:g} epoch{'' if epochs == 1 else 's'} over the sample{at_least}"


def _optimiser(recipe: Config) -> str:
    rate = f"{recipe['lr']:g}"
    if "divide_by" in recipe:
        return f"SGD at a rate of {rate}, divided by {recipe['divide_by']:g} after each validation without improvement"
    if "warmup" in recipe:
        return (
            f"Adam at a rate of {rate} (linear warm-up over {recipe['warmup']:.0%} of the steps, then a cosine to "
            f"{recipe['min_lr']:g})"
        )
    return f"a learning rate of {rate} (recipe={recipe['name']})"


def _tokenizer(config: Config, manifest: Config) -> str:
    of = config["tokenizer"]
    entries = manifest.get("vocabulary")
    size = f", {entries:,} entries" if entries and not fitted_on_samples(config) else ""
    where = "on each sample" if fitted_on_samples(config) else "on the whole training text, not on the samples"
    return f"{of['name']}{size}, fitted {where}"


def _samples(runs: pd.DataFrame, configs: Mapping[str, Config]) -> list[str]:
    """Describe the sizes and seeds of the samples, how they were drawn, and what they have in common."""
    sizes = runs.groupby("size")["sample_words"].mean().sort_values().index
    unit = "words" if set(runs["reference"]) != {"characters"} else "characters"
    listed = joined([sized(str(size), "").strip() for size in sizes[:-1]] + [sized(str(sizes[-1]), unit)])
    drawn = {configs[str(run)]["sample"].get("unit", "sentence") for run in runs.index}
    units = " or ".join(sorted(f"{one}s" for one in drawn))
    seeds = sorted(runs["seed"].unique())
    whole = {
        str(corpus.get("name")): corpus["splits"]["train"]["words"]
        for corpus in (manifest.get("corpus") or {} for manifest in runs["manifest"])
        if "splits" in corpus
    }
    of = joined([f"{size:,} {unit} of {name}" for name, size in whole.items()])
    nested = set(runs["nested"])
    how = {
        frozenset({False}): "independently of each other",
        frozenset({True}): "nested: those of a seed are parts of its larger ones",
    }.get(frozenset(nested), "nested within a seed for some curves, independently for others")
    overlap = runs["overlap"].max()
    shared = f" Two samples of one size share up to {overlap:.0%} of their text." if overlap > 0 else ""
    return [
        f"Samples: {listed} of text{f' (of {of})' if of else ''}, {plural(len(seeds), 'seed')} "
        f"({joined([str(seed) for seed in seeds])}), drawn at random by {units} without replacement, {how}.{shared}"
    ]
