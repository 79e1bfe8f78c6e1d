"""Warnings and the extent of a study in sentences, computed from its tables, and helpers of all sentences."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pandas as pd

from analysis.config import CONSERVATIVE
from analysis.curves.designs import OVERLAP_LIMIT, SAME_TEXT, design_of
from analysis.curves.groups import FEW, NO_INTERVAL, ROUGH
from analysis.exhibits.tables.slopes import architecture
from analysis.exhibits.tables.text import accuracy_text, title
from analysis.study.collect import OF_TEXT, PIECES
from analysis.study.judgements import Judgements, sized, uneven, unit_of
from eval.scores.names import benchmark_has, benchmark_name, pairs_text
from pairscale.sizes import readable_size

# Shares of pairs, at any size of any curve, from which a warning stands before the findings. Most slopes are about .01
# per doubling, as large as that of a share of ties that falls by .01; <unk> changes accuracies by a part of its share.
UNK_LIMIT = 0.05
TIE_LIMIT = 0.01
FEW_PAIRS = 20  # pairs of a benchmark or phenomenon below which a warning stands before the findings
MOST_NAMED = 4  # curves, or units of a curve, that a sentence names
MOST_SEEDS = 10  # that the extent of a study lists
TIE_COUNTS = {"wrong": "counts as wrong", "half": "counts half", "right": "counts as right"}


def joined(words: Sequence[str]) -> str:
    """Join words: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def plural(number: int, noun: str) -> str:
    """Format a number and a noun: 1 run, 2 runs."""
    plurals = {"phenomenon": "phenomena", "simulated study": "simulated studies"}
    return f"{number:,} {noun if number == 1 else plurals.get(noun, noun + 's')}"


def beside(models: Sequence[str], respondents: bool) -> str:
    """Name the others in a table of accuracies; `models`: as eval.published names them."""
    others = "models that were trained on other and mostly more text" if set(models) - {"people"} else ""
    if not respondents:
        return f"published accuracies of people and of {others}" if others else ""
    people = "people who answered a questionnaire" if "people" in models else ""
    return joined([*filter(None, [people, others and f"published accuracies of {others}"])])


def span(first: str, last: str, unit: str) -> str:
    """Name a range of sizes: "31,250 to 1M words"."""
    return f"{readable_size(first)} to {sized(last, unit)}"


def extent(runs: pd.DataFrame) -> str:
    """Describe the runs: "16 runs: 2 curves, 4 sizes from 125k to 1M words, seeds 1 and 2"; many seeds are counted."""
    unit = unit_of(runs)
    sizes = runs.groupby("size")["sample_words"].mean().sort_values().index
    groups = plural(runs["group"].nunique(), "curve")
    if len(sizes) > 1:
        over = f"{plural(len(sizes), 'size')} from {span(sizes[0], sizes[-1], unit)}"
    else:
        over = f"one size, {sized(sizes[0], unit)}"
    seeds = [str(seed) for seed in sorted(runs["seed"].unique())]
    listed = f"seed{'s' if len(seeds) > 1 else ''} {joined(seeds)}"
    named = listed if len(seeds) <= MOST_SEEDS else plural(len(seeds), "seed")
    return f"{plural(len(runs), 'run')}: {groups}, {over}, {named}"


def lead(judged: Judgements) -> str:
    """Say what was trained, on what, and what it was scored on."""
    models = judged.runs.drop_duplicates("group")[["group", "model"]].to_numpy()
    kinds = {str(group): architecture(str(model)) for group, model in models}
    named = [group + (f" ({kind})" if kind else "") for group, kind in kinds.items()]
    subject = joined(named) if len(named) <= MOST_NAMED else plural(len(named), "curve")
    named_corpora = {(manifest.get("corpus") or {}).get("name") for manifest in judged.runs["manifest"]}
    corpora = sorted(str(name) for name in named_corpora if name)
    if judged.over_training:
        how = "at checkpoints of their training"
    elif judged.origin:
        how = "as their source reports them"
    elif corpora:
        how = f"trained on samples of the {'corpus' if len(corpora) == 1 else 'corpora'} {joined(corpora)}"
    else:
        how = "trained on samples of text"
    return f"{subject}, {how}, scored on {benchmark_name(judged.label)}, {_pairs(judged)}."


def _pairs(judged: Judgements) -> str:
    if judged.n_pairs is None:
        return f"{plural(len(judged.pairs), 'paradigm')} of {judged.pairs_text}"
    return pairs_text(paradigm_sizes(judged))


def paradigm_sizes(judged: Judgements) -> list[int]:
    """Return the number of pairs of each paradigm."""
    if judged.of_paradigms:
        return [int(number) for number in judged.pairs["n_pairs"]]
    return [int(number) for number in judged.pairs["paradigm"].value_counts()]


def in_text(name: str) -> str:
    """Return a phenomenon's name within a sentence: "island effects", but "NPI licensing"."""
    text = title(name)
    return text if text[:2].isupper() and text[:2].isalpha() else text[:1].lower() + text[1:]


def slope_notes(table: pd.DataFrame) -> list[str]:
    """Return the notes on the curves of a `slope_table`, and those of `rough_limits`."""
    notes = []
    for (group, note), of in table[table["note"] != ""].groupby(["group", "note"], sort=True):
        whole = len(of) == (table["group"] == group).sum()
        notes.append(f"{group}{'' if whole else f', {_of_units(of, table, group)}'}: {note}.")
    return [*notes, *rough_limits(table)]


def rough_limits(table: pd.DataFrame, curve: str = "group") -> list[str]:
    """Name the limits that rest on few judgements; what all of a curve's limits are is in its note.

    `table`: a `slope_table`, or rows of compare_slopes; the column `curve` names the curves.
    """
    rough = table[table["caution"].str.startswith(ROUGH)] if "caution" in table else table.iloc[:0]
    return [
        f"{name}: limits of {_of_units(of, table, name, curve)} are rough: {FEW}."
        for name, of in rough.groupby(curve, sort=False)
    ]


def without_limits(table: pd.DataFrame, curve: str = "group") -> list[str]:
    """Say which units have no limits although runs give them, and why; arguments as for `rough_limits`."""
    left_out = table[table["note"].str.startswith(NO_INTERVAL)]
    return [
        f"{name}, {_of_units(of, table, name, curve)}: {note}."
        for (name, note), of in left_out.groupby([curve, "note"], sort=False)
    ]


def _of_units(rows: pd.DataFrame, table: pd.DataFrame, name: Any, curve: str = "group") -> str:
    """Name the units of a curve's `rows`, or count them: "binding and islands", "5 of 67"."""
    if len(rows) <= MOST_NAMED:
        return joined([in_text(unit) for unit in rows["name"]])
    return f"{len(rows)} of {(table[curve] == name).sum()}"


def cautions_explained(table: pd.DataFrame, confidence: float) -> dict[str, str]:
    """Return what the cautions in a `slope_table` or in rows of compare_slopes mean."""
    level = f"{confidence:.0%}"
    meanings = {
        CONSERVATIVE: f"Limits that contain the truth in {level} of studies or more, where others do in {level}.",
        ROUGH: "Limits that rest on few wrong, or right, judgements. Where accuracy is the same at all sizes, they "
        "contain the truth in nearly all studies; where it changes, studies that happen to have so few contain it in "
        f"fewer than {level}.",
    }
    cautions, notes = (table.get(name, pd.Series(dtype=str)) for name in ("caution", "note"))
    return {
        kind.capitalize(): text for kind, text in meanings.items()
        if cautions.str.startswith(kind).any() or notes.str.contains(f"limits would be {kind}:", regex=False).any()
    }  # fmt: skip


def left_out(problems: pd.DataFrame, where: str) -> list[str]:
    """Count the runs that are not in the curves or tables, by status; nothing where all are."""
    if problems.empty:
        return []
    counts = joined([f"{number} {status}" for status, number in problems["status"].value_counts().items()])
    return [f"{plural(len(problems), 'run')} not in these {where}: {counts} (listed under provenance)."]


def warnings(judged: Judgements, ties: str, fitted: Judgements | None = None) -> list[str]:
    """Return the warnings on the curves; those of effects that could explain the results come first.

    `fitted`: what lines are fitted to, if not to all of `judged`.
    """
    return [
        *left_out(judged.problems, "curves"),
        *_few_pairs(judged),
        *_unknown_words_explain(judged),
        *_unseen_words_explain(judged),
        *_ties_explain(judged, ties),
        *_unequal_ranges((fitted or judged).runs),
        *judged.notes,
        *_shared_text(judged.runs),
    ]


def ruled_out(judged: Judgements, fitted: Judgements | None = None) -> str:
    """Say in one sentence which of the usual explanations of a result do not apply; "" if all do."""
    unk, tied = _shares(judged, judged.unk).max(), _shares(judged, judged.tie).max()
    texts = ["no run is missing"] if judged.problems.empty and not uneven(judged.runs) else []
    if judged.origin:
        unk, tied = math.nan, math.nan
    if _of_own_words(judged.label):
        texts.append("every sample holds the words of the pairs")
    elif unk < UNK_LIMIT and not _hidden_words(judged.runs):
        texts.append(f"{_at_most(unk)} {'holds' if unk == 0 else 'hold'} <unk>")
    if tied < TIE_LIMIT:
        texts.append(f"{_at_most(tied)} {'is' if tied == 0 else 'are'} tied")
    if judged.runs["group"].nunique() > 1 and not _unequal_ranges((fitted or judged).runs):
        texts.append("all curves cover the same sizes")
    return f"Ruled out: {joined(texts)}." if texts else ""


def _at_most(share: float) -> str:
    """Say that a share is no larger than a number with a decimal of a percent, which is rounded up."""
    return "no pair" if share == 0 else f"at most {math.ceil(share * 1000 - 1e-9) / 1000:.1%} of the pairs"


def _shares(judged: Judgements, flags: npt.NDArray[Any]) -> pd.Series:
    """Return the mean share of pairs by group and size, smallest size first; `flags`: judged.unk or judged.tie."""
    shares = judged.runs[["group", "size", "sample_words"]].assign(share=judged.share(flags))
    return shares.sort_values("sample_words", kind="stable").groupby(["group", "size"], sort=False)["share"].mean()


def _extremes(shares: pd.Series, unit: str) -> str:
    """ "11% to 25% (most in lstm_tiny at 16k words)" """
    low, high = (f"{share:.0%}" for share in (shares.min(), shares.max()))
    if low == high:
        return high
    group, size = shares.index[int(shares.argmax())]
    return f"{low} to {high} (most in {group} at {sized(size, unit)})"


def _unknown_words_explain(judged: Judgements) -> list[str]:
    shares = _shares(judged, judged.unk)
    if shares.max() < UNK_LIMIT:
        return []
    unequal = judged.unequal.reindex(judged.runs.index).astype(float).max()
    more = f"; in up to {unequal:.0%}, one sentence holds more of them than the other" if unequal > 0 else ""
    return [
        f"Unknown words could explain these results: {_extremes(shares, judged.unit)} of the pairs hold <unk>{more}. "
        + unknown_words(judged)
    ]


def _of_own_words(label: str) -> bool:
    """Return True if a benchmark's pairs were made of words that the samples hold (benchmark.vocabulary)."""
    return any(re.fullmatch(r"(run|study)-k\d+", part) for part in label.split("+"))


def _hidden_words(runs: pd.DataFrame) -> str:
    """Say why words that a sample lacks are no <unk>; "" if they are, or if that is not known."""
    vocabularies = set(runs.get("vocabulary", ()))
    if PIECES in vocabularies:
        return "the tokenizer splits them into pieces that it knows"
    return "the tokenizer knows the words of the whole text" if OF_TEXT in vocabularies else ""


def _unseen_words_explain(judged: Judgements) -> list[str]:
    hidden = _hidden_words(judged.runs)
    if not hidden or _of_own_words(judged.label):
        return []
    return [
        "Words that samples lack could explain these results, as small samples lack more. They are not counted: "
        f"{hidden}, so they are no <unk>. Generated pairs with benchmark.vocabulary=study have only words that every "
        "sample holds."
    ]


def _few_pairs(judged: Judgements) -> list[str]:
    """Warn of a benchmark or phenomena of which a few judgements make the accuracy, if their number is known."""
    if judged.n_pairs is None:
        return []
    weights = judged.pairs["n_pairs"] if judged.of_paradigms else pd.Series(1, judged.pairs.index)
    of_phenomena = weights.groupby(judged.pairs["phenomenon"], sort=False).sum()
    few = of_phenomena[of_phenomena < FEW_PAIRS]
    if few.empty:
        return []
    if judged.n_pairs < FEW_PAIRS:
        where = f"{benchmark_has(judged.label)} {judged.pairs_text}"
    else:
        named = [f"{in_text(str(name))} ({number:.0f})" for name, number in few.head(MOST_NAMED).items()]
        named += [f"{len(few) - MOST_NAMED} more"] if len(few) > MOST_NAMED else []
        where = f"fewer than {FEW_PAIRS} in {joined(named)}"
    return [
        f"Too few pairs for conclusions: {where}. Accuracy over so few changes in large steps, and intervals may reach "
        "beyond what an accuracy can change."
    ]


def _ties_explain(judged: Judgements, ties: str) -> list[str]:
    shares = _shares(judged, judged.tie)
    if shares.max() < TIE_LIMIT:
        return []
    counted = TIE_COUNTS[ties]
    if ties != "half":
        change = f"{accuracy_text(shares.max() / 2)} {'higher' if ties == 'wrong' else 'lower'}"
        counted += f" (counted half, accuracies would be up to {change})"
    return [
        f"Ties could explain these results: {_extremes(shares, judged.unit)} of the pairs are tied, and each tie "
        f"{counted}."
    ]


def _unequal_ranges(runs: pd.DataFrame) -> list[str]:
    """Note curves that cover other sizes than others."""
    unit = unit_of(runs)
    ordered = runs.sort_values("sample_words", kind="stable")
    sizes = {str(group): tuple(dict.fromkeys(of["size"])) for group, of in ordered.groupby("group", sort=False)}
    if len(set(sizes.values())) < 2:
        return []
    ranges = joined([
        f"{group} has {plural(len(of), 'size')}, {span(of[0], of[-1], unit)}" if len(of) > 1
        else f"{group} has one, {sized(of[0], unit)}"
        for group, of in sizes.items()
    ])  # fmt: skip
    return [f"Curves cover different sizes, so their slopes do not compare as they are: {ranges}."]


def _shared_text(runs: pd.DataFrame) -> list[str]:
    """Note runs of one size that share text, or all of it."""
    unit = unit_of(runs)
    shares: dict[str, float] = {}
    same = []
    for group, of_group in runs.sort_values("sample_words").groupby("group", sort=False):
        overlap = design_of(of_group).overlap
        of_group = of_group.assign(overlap=0.0 if overlap is None else overlap)
        for size, of_size in of_group.groupby("size", sort=False):
            share = float(of_size["overlap"].max())
            if len(of_size) > 1 and share > SAME_TEXT:
                same.append(f"{group} at {sized(str(size), unit)}")
            elif len(of_size) > 1 and share > OVERLAP_LIMIT:
                shares[str(size)] = max(share, shares.get(str(size), 0.0))
    texts = []
    if shares:
        where = joined([f"{share:.0%} at {sized(size, unit)}" for size, share in shares.items()])
        texts.append(
            f"Samples of one size share much of their text ({where}), so their runs differ less than runs on new text "
            "would: limits of accuracies, and any of slopes, are widened accordingly."
        )
    if same:
        texts.append(
            f"Some runs of one size were trained on the same text ({joined(same)}): nothing shows what new samples "
            "would change, so these curves have no intervals of slopes."
        )
    return texts


def unknown_words(judged: Judgements) -> str:
    """Return one sentence on how many pairs are left without <unk>."""
    if judged.of_paradigms and judged.unk.any():
        return "The number of pairs with <unk> was tracked for each run, but not which pairs they are."
    if not judged.unk.any():
        return "No pair holds an unknown word in any run."
    left = int(judged.unk_free.sum())
    if not left:
        return "Every pair holds <unk> in some run, so no pair is left without it."
    return f"{left:,} of {len(judged.pairs):,} pairs hold no <unk> in any of the runs compared."
