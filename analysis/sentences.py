"""What the numbers say, in sentences: findings, warnings and methods, computed and never typed in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves import ALL_PAIRS, UNK_FREE, Curves
from analysis.intervals import BOOTSTRAP, NO_INTERVAL, RUN_BOOTSTRAP, T_INTERVAL, T_SEEDS
from analysis.judgements import Judgements
from analysis.tables import accuracy_text, interval_text, slope_text, title

OVERLAP_LIMIT = 0.5  # share of text in common from which samples of a size are hardly independent


def joined(words: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def plural(number: int, noun: str) -> str:
    """1 run, 2 runs"""
    plurals = {"phenomenon": "phenomena"}
    return f"{number:,} {noun if number == 1 else plurals.get(noun, noun + 's')}"


def beside(models: Sequence[str], asked: bool) -> str:
    """Who else stands in a table of accuracies: those named as eval.published does; people published, or `asked`."""
    others = "models that were trained on other and mostly more text" if set(models) - {"people"} else ""
    if not asked:
        return f"published accuracies of people and of {others}" if others else ""
    people = "people who answered a questionnaire" if "people" in models else ""
    return joined([*filter(None, [people, others and f"published accuracies of {others}"])])


def extent(runs: pd.DataFrame) -> str:
    """How much there is: "16 runs: 2 curves, 4 sizes from 125k to 1M, seeds 1 and 2"."""
    sizes = runs.groupby("size")["sample_words"].mean().sort_values().index
    groups = plural(runs["group"].nunique(), "curve")
    span = f"{plural(len(sizes), 'size')} from {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"one size, {sizes[0]}"
    seeds = joined([str(seed) for seed in sorted(runs["seed"].unique())])
    return f"{plural(len(runs), 'run')}: {groups}, {span}, seed{'s' if runs['seed'].nunique() > 1 else ''} {seeds}"


def findings(curves: Curves) -> list[tuple[str, str]]:
    """Main results on all pairs: of which curve, and what; then what two curves have in common."""
    slopes = curves.slopes[curves.slopes["pairs"] == ALL_PAIRS]
    found = []
    for group, rows in slopes.groupby("group", sort=False):
        whole = rows[rows["level"] == "overall"].iloc[0]
        at = curves.accuracies
        at = at[(at["group"] == group) & (at["pairs"] == ALL_PAIRS) & (at["level"] == "overall")].sort_values("words")
        first, last = at.iloc[0], at.iloc[-1]
        if np.isnan(whole["slope"]):
            text = f"overall accuracy {accuracy_text(first['accuracy'])} at {first['size']}; {whole['note']}."
            found.append((str(group), text))
            continue
        rises = "rises" if last["accuracy"] >= first["accuracy"] else "falls"
        interval = "" if np.isnan(whole["low"]) else f", interval {interval_text(whole['low'], whole['high'])}"
        text = (
            f"overall accuracy {rises} from {accuracy_text(first['accuracy'])} at {first['size']} to "
            f"{accuracy_text(last['accuracy'])} at {last['size']}: {slope_text(whole['slope'])} per doubling"
            f"{interval}. "
        )
        phenomena = rows[rows["level"] == "phenomenon"].sort_values("slope", ascending=False)
        if len(phenomena) >= 4:
            text += f"Steepest: {_named(phenomena.iloc[:2])}; shallowest: {_named(phenomena.iloc[:-3:-1])}. "
        if phenomena["low"].notna().any():
            flat = phenomena[~(phenomena["low"] > 0)]
            told = f"; not above 0 for {joined([in_text(name) for name in flat['name']])}" if 0 < len(flat) <= 6 else ""
            above = f"{len(phenomena) - len(flat)} of {plural(len(phenomena), 'phenomenon')}"
            text += f"The interval lies above 0 for {above}{told} (each for itself, not corrected for their number)."
        found.append((str(group), text.strip()))
    wide = slopes[slopes["level"] == "phenomenon"].pivot(index="name", columns="group", values="slope").dropna()
    if wide.shape[1] == 2 and len(wide) >= 4:
        r = float(np.corrcoef(wide.to_numpy().T)[0, 1])
        text = f"over {plural(len(wide), 'phenomenon')} their slopes correlate with r = {r:.2f}."
        found.append((joined(list(wide.columns)), text))
    return found


def _named(rows: pd.DataFrame) -> str:
    return " and ".join(f"{in_text(row['name'])} ({slope_text(row['slope'])})" for _, row in rows.iterrows())


def in_text(name: str) -> str:
    """A phenomenon's name within a sentence: "island effects", but "NPI licensing"."""
    shown = title(name)
    return shown if shown[:2].isupper() and shown[:2].isalpha() else shown[:1].lower() + shown[1:]


def left_out(problems: pd.DataFrame, where: str) -> list[str]:
    """How many runs are not in the curves or tables, by status; nothing where all are."""
    if problems.empty:
        return []
    counts = joined([f"{number} {status}" for status, number in problems["status"].value_counts().items()])
    return [f"{plural(len(problems), 'run')} not in these {where}: {counts} (listed under provenance)."]


def warnings(judged: Judgements) -> list[str]:
    """What a reader has to know before believing the curves."""
    told = [*left_out(judged.problems, "curves"), *judged.notes]
    by_size = judged.runs.sort_values("sample_words").groupby("size", sort=False)
    overlap = by_size["overlap"].max()[by_size["seed"].nunique() > 1]
    high = overlap[overlap > OVERLAP_LIMIT]
    if len(high):
        shares = joined([f"{share:.0%} at {size}" for size, share in high.items()])
        told.append(
            f"Samples of one size share much of their text ({shares}), so runs there differ less than runs on new text "
            "would, and intervals at these sizes are too narrow."
        )
    trained_here = judged.runs[["corpus" in manifest for manifest in judged.runs["manifest"]]]
    digests = trained_here.assign(digest=[m["corpus"]["sample"]["digest"] for m in trained_here["manifest"]])
    at_size = digests.groupby(["group", "size"], sort=False)["digest"]
    same = at_size.size()[at_size.nunique() < at_size.size()]
    if len(same):
        where = joined([f"{group} at {size}" for group, size in same.index])
        told.append(
            f"Some runs of one size were trained on the very same text ({where}): "
            "intervals there do not hold what new samples would change."
        )
    return told


def unknown_words(judged: Judgements) -> str:
    """One sentence on how many pairs are left without <unk>."""
    if judged.of_paradigms and judged.unk.any():
        return "Which pairs hold <unk> was not tracked, only how many do in each run."
    if not judged.unk.any():
        return "No pair holds an unknown word in any run, so all pairs are pairs without <unk>."
    left = int(judged.unk_free.sum())
    if not left:
        return "Every pair holds <unk> in some run: there is nothing to compare without it."
    return f"{left:,} of {len(judged.pairs):,} pairs hold no <unk> in any of the runs compared."


_OVER = (
    "Each pair is judged with {0}, and what it adds to accuracy is the mean over them: all accuracies are means over "
    "{0}, and a pair is one unit wherever pairs are resampled."
)

_BOTH = (
    "add the variance of pairs' own slopes within paradigms, without the chance in single judgements that the spread "
    "between runs holds already; paradigms are fixed"
)


def judging(judged: Judgements, ties: str) -> list[str]:
    """How scores became judgements and accuracies, for a paper."""
    counts = {"wrong": "counts as wrong", "half": "counts half", "right": "counts as right"}[ties]
    paradigms = judged.pairs["paradigm"].nunique()
    return [
        f"A pair counts as right if the {judged.method} score of its good sentence is above that of its bad one; a tie "
        f"{counts}. {judged.label} has {plural(judged.n_pairs, 'pair')} in {plural(paradigms, 'paradigm')}; "
        "accuracies of phenomena and of the whole are means over paradigms.",
        *([_OVER.format(judged.over)] if judged.over else []),
        *_policies(judged),
    ]


def methods(judged: Judgements, curves: Curves, config: CurvesConfig, ties: str) -> list[str]:
    """The methods paragraph, for a paper: what was scored how, what was fitted and what the intervals mean."""
    references = sorted(judged.runs["reference"].unique())
    text = [
        *judging(judged, ties),
        f"Curves are least-squares lines of a run's accuracy on log2 of its distinct training {judged.unit} (of the "
        f"reference tokenizer, {joined(references)}, not the model's tokens): the slope is accuracy gained per "
        "doubling.",
    ]
    used = set(curves.slopes["method"])
    level = f"{config.confidence:.0%}"
    if T_INTERVAL in used:
        text.append(
            f"{level} intervals are t intervals of that regression over runs, as the bootstrap needs five runs at each "
            "size: they say where the slope would lie with new samples of text and new initialisations, for these "
            "pairs, and are wider where the means lie far from a line, as its residuals hold that too. The "
            f"intervals for new pairs too {_BOTH}."
        )
    if T_SEEDS in used:
        text.append(
            f"{level} intervals of nested samples are t intervals over the slopes of seeds, as the runs of a seed "
            f"share their text. The intervals for new pairs too {_BOTH}."
        )
    if BOOTSTRAP in used:
        text.append(
            f"{level} intervals are from a crossed bootstrap ({config.resamples:,} resamples, seed {config.seed}): "
            "they say where the slope would lie with new samples of text and new initialisations, for these pairs. "
            "Runs are drawn within their size (whole seeds where samples are nested) and, for the intervals over new "
            "pairs, pairs within their paradigm in one draw shared by all runs; paradigms are fixed. Limits are "
            "percentiles, scaled to a standard error that counts chance in single judgements once and widened by the "
            "ratio of Student's to the normal quantile (degrees of freedom by Satterthwaite)."
        )
    if RUN_BOOTSTRAP in used:
        text.append(
            f"{level} intervals are from a bootstrap over runs ({config.resamples:,} resamples, seed {config.seed}): "
            "they say where the slope would lie with new samples of text and new initialisations, for these pairs. "
            "Runs are drawn within their size (whole seeds where samples are nested). Limits are percentiles, scaled "
            "to the standard error over runs and widened by the ratio of Student's to the normal quantile (degrees of "
            "freedom by Satterthwaite)."
        )
    if NO_INTERVAL in used:
        text.append("Where a curve has too few runs for an interval, none is given.")
    if UNK_FREE in set(curves.slopes["pairs"]):
        text.append("Everything is also given for the pairs that hold no <unk> in any of the runs compared.")
    text.append(
        "Bands are t intervals over the runs of a size; with fewer than five runs at some size the spread between runs "
        "is taken to be the same at all sizes. Onset is the smallest size studied from which on the lower bound "
        "of these bands exceeds .5; where that is the smallest size, it may lie below. Lines are fitted "
        "to the sizes studied only: nothing here says that they go on, and accuracy cannot exceed 1."
    )
    return text


_HIDDEN = {
    "original": "each token is hidden alone (Salazar et al. 2020)",
    "within_word_l2r": "each token is hidden with those after it in its word (Kauf and Ivanova 2023)",
}


def _policies(judged: Judgements) -> list[str]:
    told: dict[str, list[str]] = {}
    for group, policy in judged.policies.items():
        ends = "is" if policy["score_eos"] else "is not"
        eos = f"{policy['context_tokens']} <eos>"
        before = {"none": "nothing but the begin symbol", "eos": eos, "text": "a fixed text"}[policy["context"]]
        unk = "scored as <unk>" if policy["unk"] == "score" else "skipped"
        text = f"before each stands {before}, its end {ends} scored, unknown words are {unk}"
        if judged.method == "pll":
            text += f", and {_HIDDEN[policy.get('pll') or 'within_word_l2r']}"
        told.setdefault(text, []).append(group)
    what = f"What {judged.method} reads of a pair is" if judged.over else "Sentences are"
    if len(told) == 1:
        return [f"{what} scored alone: {next(iter(told))}."]
    return [f"{what} scored alone. {joined(groups)}: {text}." for text, groups in told.items()]
