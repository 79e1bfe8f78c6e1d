"""The paragraph on methods: what a report judged, fitted and tested."""

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.designs import Design, design_of
from analysis.curves.fit import ALL_PAIRS, CHANCE_BASELINE, UNK_FREE, Curves
from analysis.curves.groups import NO_INTERVAL
from analysis.curves.intervals import MOST_BENT, Interval
from analysis.curves.p_values import ALPHA
from analysis.curves.words_to_people import published_people
from analysis.exhibits.sentences.curves import FEW_PAIRS, TIE_COUNTS, TIE_LIMIT, UNK_LIMIT, joined, plural
from analysis.exhibits.tables.slopes import banded_lines
from analysis.exhibits.tables.text import accuracy_text
from analysis.study.judgements import Judgements
from eval.published import number_of_paradigms
from eval.scores.names import benchmark_has, benchmark_name

_OVER = (
    "Each pair is judged with {0}: all accuracies are means over {0}, and a pair is one unit wherever pairs are "
    "resampled."
)


def judging(judged: Judgements, ties: str) -> list[str]:
    """Describe how scores became judgements and accuracies, for a paper."""
    if judged.origin:
        return [
            f"Accuracies are those of {judged.origin}: what counts as right, and what ties and unknown words count as, "
            f"is its authors' choice. {_extent(judged)}; "
            f"accuracies of phenomena and of the whole are means over paradigms."
        ]
    return [
        f"A pair counts as right if the {judged.method_names} score of its good sentence is above that of its bad "
        f"one; a tie {TIE_COUNTS[ties]}. {_extent(judged)}; "
        f"accuracies of phenomena and of the whole are means over paradigms.",
        *([_OVER.format(judged.over)] if judged.over else []),
        *_policies(judged),
    ]


def _extent(judged: Judgements) -> str:
    """Say how many pairs and paradigms were scored, and of how many, where the study has a part of a benchmark."""
    number, total = judged.pairs["paradigm"].nunique(), number_of_paradigms(judged.label.partition("+")[0])
    if total is not None and number < total:
        part = f"The study's part of {benchmark_name(judged.label)} has {judged.pairs_text}"
        return f"{part} in {number} of {total} paradigms"
    return f"{benchmark_has(judged.label)} {judged.pairs_text} in {plural(number, 'paradigm')}"


def methods(judged: Judgements, curves: Curves, config: CurvesConfig, ties: str) -> list[str]:
    """Return the methods paragraph, for a paper: what was scored and fitted, and what the intervals mean."""
    whole = curves.slopes[(curves.slopes["pairs"] == ALL_PAIRS) & (curves.slopes["level"] == "overall")]
    designs = {str(group): design_of(runs) for group, runs in judged.runs.groupby("group", sort=False)}
    text = [*judging(judged, ties), *_lines(judged, whole), *_interval_methods(whole, designs, config)]
    people = published_people(judged.label.partition("+")[0], config.people_correlation)
    if people and people.design_effect > 1:
        text.append(
            f"The sampling error of published people's accuracy takes the {people.judgements} judgements of a pair as "
            f"correlated (intraclass correlation {accuracy_text(people.correlation).rstrip('0')})."
        )
    if UNK_FREE in set(curves.slopes["pairs"]):
        text.append("All results are also given for the pairs without <unk> in any of the runs compared.")
    text += [*_bands(curves, whole, designs), *_tests(whole, config)]
    text.append(
        f"A warning appears where, at any size, {UNK_LIMIT:.0%} of the pairs or more hold <unk>, or {TIE_LIMIT:.0%} or "
        f"more are tied, and where the benchmark or a phenomenon has fewer than {FEW_PAIRS} pairs."
    )
    return text


def _alpha() -> str:
    return f"{ALPHA:g}".removeprefix("0")


def _lines(judged: Judgements, whole: pd.DataFrame) -> list[str]:
    """Describe the fit of the lines; `whole`: rows of Curves.slopes, one a group."""
    sizes = whole.loc[whole["slope"].notna(), "sizes"]
    if sizes.empty:
        return ["With one size, accuracies have no slope."]
    if judged.over_training:
        words = f"the {judged.unit.removesuffix(' seen')} that a checkpoint was trained on"
    elif judged.origin:
        words = f"the {judged.unit} of its training text, as its source counts them"
    else:
        references = joined(sorted(judged.runs["reference"].unique()))
        words = (
            f"its distinct training {judged.unit} (of the reference tokenizer, {references}, not the model's tokens)"
        )
    text = [
        f"Curves are least-squares lines of a run's accuracy on log2 of {words}: the slope is the accuracy gained per "
        "doubling. Sizes weigh equally, however many runs of each are finished. Lines are fitted to the sizes studied: "
        "nothing here shows that they continue, and accuracy cannot exceed 1."
    ]
    if (sizes == 2).any():
        text.append("With two sizes, the slope is their difference per doubling.")
    return text


def _bands(curves: Curves, whole: pd.DataFrame, designs: Mapping[str, Design]) -> list[str]:
    """Describe the bands of the figures, the limits of the means of sizes, and the onset read from them."""
    counts = {count for design in designs.values() for count in design.counts}
    text = []
    if banded_lines(curves)["low"].notna().any():
        text.append(
            "Bands are Student's limits of the fitted line at each point, for new runs on these pairs, with the "
            "standard error and degrees of freedom of that point, estimated as the slope's are."
        )
    if max(counts) < 2:
        return [*text, "No size has two runs, so no mean of a size has limits of its own, and no curve an onset."]
    lone = "; a size with one run has none" if 1 in counts else ""
    two = ", so that two runs give wide limits" if 2 in counts else ""
    unfitted = set(curves.accuracies["group"]) - set(curves.lines["group"])
    drawn = ", the bands of curves without a fitted line," if unfitted else ""
    text.append(
        f"Limits of the mean of a size{drawn} are Wilson's, with Student's quantile, over new runs for these pairs: "
        f"the variance is that of the runs of the size itself, and at least that of chance in single "
        f"judgements{two}{lone}."
    )
    if whole["slope"].notna().any():
        text.append(
            f"Onset is the smallest size from which on the lower limits of these means exceed {_baselines(curves)}, "
            "for curves that rise; an onset at the smallest size studied may lie below it."
        )
    return text


def _tests(whole: pd.DataFrame, config: CurvesConfig) -> list[str]:
    """Describe the tests of lines and of differences between them, if any."""
    text = []
    if whole["lack_of_fit"].notna().any():
        text.append(
            f"A line is rejected where the test of its lack of fit (Brunner, Dette and Munk 1997) has p < {_alpha()}."
        )
    if (whole["method"] != Interval.NONE).sum() > 1:
        text.append(
            "Curves are compared over the sizes that both have, with the errors that the curve with the fewest runs at "
            "a size needs, and run by run where both trained on the same text with the same seed. They differ where "
            f"Holm's p < {_alpha()}, and do not differ where both the interval and two one-sided tests, also by Holm, "
            f"place the difference within {accuracy_text(config.equivalence_margin)} per doubling."
        )
    return text


_STUDENT = "the ratio of Student's to the normal quantile (degrees of freedom by Satterthwaite)"
_T_INTERVALS = {  # by whether samples are nested
    (Interval.T_SIZES, False): (
        "t intervals in which each size has the spread of its own runs (degrees of freedom by Satterthwaite)"
    ),
    (Interval.T_HC3, False): (
        "t intervals with HC3 errors about the line (degrees of freedom of Bell and McCaffrey 2002), as some size has "
        f"two runs and errors about the line are at most {MOST_BENT} times those of sizes' own spreads"
    ),
    (Interval.T_POOLED, False): (
        "t intervals in which each size has the spread of its own runs (degrees of freedom by Satterthwaite, from the "
        f"spreads of all paradigms together), as some size has two runs and errors about the line are over {MOST_BENT} "
        "times as large"
    ),
    (Interval.T_HC2, False): (
        "t intervals with HC2 errors (degrees of freedom of Bell and McCaffrey 2002), as some size has one run"
    ),
    (Interval.T_HC2, True): (
        "t intervals with CR2 errors by seed (Pustejovsky and Tipton 2018), as samples are nested and some size has "
        "one run"
    ),
    (Interval.T_SEEDS, True): (
        "t intervals over seeds (CR2, Pustejovsky and Tipton 2018), as samples are nested and the runs of a seed share "
        "their text"
    ),
}


def _interval_methods(whole: pd.DataFrame, designs: Mapping[str, Design], config: CurvesConfig) -> list[str]:
    """Describe the intervals of slopes; `whole`: rows of Curves.slopes, one a group."""
    left_out = whole["note"].str.startswith(NO_INTERVAL)
    groups: dict[tuple[str, bool], list[str]] = {}
    for group, method in whole.loc[~left_out, ["group", "method"]].itertuples(index=False):
        if method != Interval.NONE:
            groups.setdefault((method, designs[group].nested), []).append(group)
    none = whole[left_out | (whole["method"] == Interval.NONE)]
    without = none["group"].groupby(none["note"].str.removeprefix(NO_INTERVAL), sort=False).agg(list)
    named = "; ".join(f"{joined(names)} ({note})" for note, names in without.items())
    text = [f"Without an interval: {named}."] if named else []
    if not groups:
        return text
    about = (
        f"{config.confidence:.0%} intervals are for the slope with new samples of text and new initialisations, on "
        "these pairs"
    )
    new_pairs = "; those for new pairs too are for new pairs of the same paradigms as well"
    details = [about + (new_pairs if whole["low_new_pairs"].notna().any() else "") + "."]
    resampled = {key: names for key, names in groups.items() if key not in _T_INTERVALS}
    for key, names in groups.items():
        if key in _T_INTERVALS:
            details.append(f"{'They' if len(groups) == 1 else f'Those of {joined(names)}'} are {_T_INTERVALS[key]}.")
    if resampled:
        names = [name for of_key in resampled.values() for name in of_key]
        subject = "They" if len(resampled) == len(groups) else f"Those of {joined(names)}"
        details += _bootstrap(
            subject, {nested for _, nested in resampled}, Interval.RUN_BOOTSTRAP in {m for m, _ in groups}, config
        )
    if len(resampled) < len(groups):
        details += _t_details(groups, whole, config)
    overlaps = [designs[name].overlap for names in groups.values() for name in names]
    if any(overlap is not None and overlap.max() > 0.005 for overlap in overlaps):
        details.append("Variances over runs are increased for the text that samples of one size share.")
    details.append(
        "Variances over runs are no smaller than chance in single judgements alone makes them in one of 20 studies."
    )
    return [" ".join(details), *text]


def _bootstrap(subject: str, nested: set[bool], of_runs: bool, config: CurvesConfig) -> list[str]:
    """Describe the bootstrap; `of_runs`: judgements of single pairs are not known."""
    drawn = {
        frozenset({False}): "Runs are drawn within their size",
        frozenset({True}): "Seeds are drawn with all of their runs, as samples are nested",
    }.get(frozenset(nested), "Runs are drawn within their size, and whole seeds where samples are nested")
    pairs, error = (
        ("", "the standard error over runs")
        if of_runs
        else (
            "; for new pairs too, pairs are drawn within their paradigm, in one draw shared by all runs",
            "a standard error that counts chance in single judgements once",
        )
    )
    return [
        f"{subject} are from a {'bootstrap over runs' if of_runs else 'crossed bootstrap'} ({config.resamples:,} "
        f"resamples, seed {config.seed}). {drawn}{pairs}. Limits are percentiles, scaled to {error} and widened by "
        f"{_STUDENT}."
    ]


def _t_details(
    groups: Mapping[tuple[str, bool], Sequence[str]], whole: pd.DataFrame, config: CurvesConfig
) -> list[str]:
    """Describe t intervals of any errors: the reason for them, and those for new pairs too."""
    text = []
    robust = [name for name, nested in (("HC2", False), ("CR2", True)) if (Interval.T_HC2, nested) in groups]
    if robust:
        text.append(f"{joined(robust)} errors include the distance of a bent curve from its line.")
    if config.interval == "t":
        text.append("They were chosen over a bootstrap (analysis.interval=t).")
    else:
        text.append("A bootstrap needs five runs at each size.")
    of_t = whole[~whole["method"].isin([Interval.BOOTSTRAP, Interval.RUN_BOOTSTRAP, Interval.NONE])]
    if of_t["low_new_pairs"].notna().any():
        text.append(
            "For new pairs too, t intervals add the variance of pairs' own slopes within paradigms, without the chance "
            "in single judgements that the spread between runs already includes."
        )
    return text


def _baselines(curves: Curves) -> str:
    """Name the baseline of onsets, by group where it differs."""
    named = curves.slopes[["group", "onset_baseline"]].drop_duplicates()
    texts = {name: str(name).replace(CHANCE_BASELINE, "chance (.5)") for name in named["onset_baseline"]}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return joined([f"{texts[name]} ({group})" for group, name in named.itertuples(index=False)])


_HIDDEN = {
    "original": "each token is hidden alone (Salazar et al. 2020)",
    "within_word_l2r": "each token is hidden with those after it in its word (Kauf and Ivanova 2023)",
}


def _policies(judged: Judgements) -> list[str]:
    by_text: dict[str, list[str]] = {}
    for group, policy in judged.policies.items():
        contexts = {"none": "nothing but the begin symbol", "eos": f"{policy['context_tokens']} <eos>",
                    "text": "a fixed text"}  # fmt: skip
        ends = "scored" if policy["score_eos"] else "not scored"
        unk = "scored as <unk>" if policy["unk"] == "score" else "skipped"
        text = f"after {contexts[policy['context']]}, with its end {ends} and unknown words {unk}"
        if judged.methods.get(group, judged.method) == "pll":
            text += f"; {_HIDDEN[policy.get('pll') or 'within_word_l2r']}"
        by_text.setdefault(text, []).append(group)
    subject = f"What {judged.method_names} reads of a pair is" if judged.over else "Each sentence is"
    if len(by_text) == 1:
        return [f"{subject} scored alone, {next(iter(by_text))}."]
    return [f"{subject} scored alone. {joined(groups)}: {text}." for text, groups in by_text.items()]
