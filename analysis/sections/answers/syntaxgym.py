"""SG scores of SyntaxGym's suites: by circuit over training text, by suite and by comparison, beside Hu et al. 2020."""

from functools import partial

import pandas as pd

from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.figures.diagnostics import beside_chart, size_chart
from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import count, mean_count_text
from analysis.measures.diagnostics import KEYS, Answers, at_largest, over_sizes
from analysis.measures.syntaxgym import chance_scores, suite_scores
from analysis.sections.section import SUITES, TableSection
from analysis.study.collect import Study
from eval.published import read_published
from eval.syntaxgym.measures import ALL_ITEMS, ALL_SUITES, CIRCUIT, COMPARISON, OVERALL, SG_SCORE, SUITE
from pairscale.shares import wilson

PAPER = " (paper)"
CHANCE = "chance"
_MODELS = ("GRNN", "JRNN", "Transformer-XL", "GPT-2", "GPT-2-XL")  # of the paper, beside ours: those that came trained
_OVER_ITEMS = "Wilson's 95% intervals, for new items."
_CHANCE = "The score of surprisals that are independent and alike in all regions."


def suites_section(study: Study, label: str, confidence: float) -> TableSection:
    """Read the scores of a study's runs on suites; raises the errors of `suite_scores`."""
    answers = suite_scores(study, label)
    placed = answers.runs[answers.runs["sample_words"].notna()]
    beside = len(answers.runs) - len(placed)
    extent = [sentences.extent(placed)] if len(placed) else []
    extent += [f"{plural(beside, 'pretrained model')} trained on text of unknown size"] if beside else []
    first = answers.measured[answers.measured["run"] == answers.runs.index[0]]
    items = first.set_index(KEYS).at[(OVERALL, ALL_ITEMS), "items"]
    suites = plural(int((first["level"] == SUITE).sum()), "suite")
    return TableSection(
        label=label,
        file=label,
        kind=SUITES,
        extent=f"Formulas over the surprisal of regions, {items:,} items of {suites} (Hu et al. 2020). "
        f"{'; '.join(extent)}.",
        warnings=[*sentences.left_out(answers.problems, "tables"), *answers.notes, *_unknown(answers)],
        exhibits=suite_exhibits(answers, chance_scores(study, answers), confidence),
        methods=_methods(answers),
        problems=answers.problems,
        runs=answers.runs,
        digest=answers.digest,
    )


def suite_exhibits(answers: Answers, chance: pd.DataFrame, confidence: float) -> list[Exhibit]:
    """Return the exhibits of a study's scores; `chance`: of `chance_scores`."""
    means = over_sizes(answers, confidence)
    ours = at_largest(means).rename(columns={"group": "model"})
    theirs = _published(ours)
    return existing([
        _circuits(ours, theirs, chance),
        _sizes(answers, means, theirs, chance, confidence),
        _parts(ours, theirs, chance, SUITE, "suites", "By suite"),
        _parts(ours, theirs, chance, COMPARISON, "comparisons", "Single comparisons"),
        _everything(means, confidence),
    ])  # fmt: skip


def _published(ours: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's scores of models that came trained, as rows of ours."""
    rows = read_published("syntaxgym")
    rows = rows[rows["model"].isin(_MODELS)].assign(model=lambda rows: rows["model"] + PAPER)
    rows = rows.merge(ours.drop_duplicates(KEYS)[[*KEYS, "items"]], on=KEYS)
    limits = [wilson(share, items) for share, items in rows[["accuracy", "items"]].to_numpy()]
    return rows.assign(low_items=[low for low, _ in limits], high_items=[high for _, high in limits])


def _circuits(ours: pd.DataFrame, theirs: pd.DataFrame, chance: pd.DataFrame) -> Exhibit:
    """Return a row for each model: SG score, circuits, all suites and all items; a figure of the first of these."""
    rows = pd.concat([ours, theirs, chance.assign(model=CHANCE)])
    rows = rows[rows["level"].isin([OVERALL, CIRCUIT])]
    names = list(dict.fromkeys(ours.loc[ours["level"].isin([OVERALL, CIRCUIT]), "name"]))
    shown = [name for name in names if name not in (ALL_SUITES, ALL_ITEMS)] or names
    columns = [*shown, *(name for name in names if name not in shown)]
    table = rows.pivot(index="model", columns="name", values="accuracy")
    table = table.reindex(index=list(dict.fromkeys(rows["model"])), columns=columns).rename_axis(None, axis=1)
    drawn = rows[rows["name"].isin(shown) & (rows["model"] != CHANCE)]
    drawn = drawn.assign(measure=drawn["name"], low=drawn["low_items"], high=drawn["high_items"])
    drawn = drawn.sort_values("measure", key=lambda name: name.map(shown.index), kind="stable")
    return Exhibit(
        "circuits",
        "SG scores",
        "Share of items whose prediction holds: means over suites, of ours over the runs at each curve's largest size, "
        "beside those that follow from the per-item results of Hu et al. 2020.",
        table.reset_index(),
        charts={"models": partial(beside_chart, drawn)},
        definitions={
            SG_SCORE: "Mean over the suites in the six circuits, as in the authors' analysis.",
            ALL_ITEMS.capitalize(): "Share of the items of all suites, which weigh as many as they are.",
            CHANCE.capitalize(): _CHANCE,
            "Lines": _OVER_ITEMS,
        },
    )


def _sizes(
    answers: Answers, means: pd.DataFrame, theirs: pd.DataFrame, chance: pd.DataFrame, confidence: float
) -> Exhibit | None:
    """Return curves over training text of the SG score and of each circuit, of groups with several sizes."""
    placed = means[means["words"].notna() & means["level"].isin([OVERALL, CIRCUIT])]
    several = placed.groupby("group")["size"].nunique()
    placed = placed[placed["group"].isin(several.index[several > 1])]
    if placed.empty:
        return None
    placed = placed[~placed["name"].isin([ALL_SUITES, ALL_ITEMS]) | (SG_SCORE not in set(placed["name"]))]
    unit = "tokens" if set(answers.runs["reference"].dropna()) == {"tokens"} else "words"
    charts, tables = {}, []
    beside = pd.concat([theirs[theirs["model"] == f"GPT-2{PAPER}"], chance.assign(model=CHANCE)])
    for number, name in enumerate(placed["name"].unique()):
        rows, others = (table[table["name"] == name] for table in (placed, beside))
        levels = pd.DataFrame({"name": others["model"], "accuracy": others["accuracy"]})
        charts[f"sizes-{number}"] = partial(size_chart, rows, levels, name, unit=unit)
        tables.append(rows.assign(measure=name))
    table = pd.concat(tables)[["measure", "group", "size", "runs", "accuracy", "low", "high"]]
    return Exhibit(
        "sizes",
        "By training text",
        "Means over the runs of a size; no line is fitted. Level lines: chance, and GPT-2 of the paper.",
        table.rename(columns={"group": "curve", "accuracy": "score"}),
        charts=charts,
        confidence=confidence,
        definitions={
            "Bands": f"{confidence:.0%} intervals for new runs on these items, at least as wide as Wilson's of as many "
            "independent answers.",
            CHANCE.capitalize(): _CHANCE,
        },
    )


def _parts(
    ours: pd.DataFrame, theirs: pd.DataFrame, chance: pd.DataFrame, level: str, name: str, heading: str
) -> Exhibit | None:
    """Return a row for each suite, or comparison, and model of ours, with chance and the paper's models beside."""
    rows = ours[ours["level"] == level]
    if rows.empty:
        return None
    columns = {"name": level, "model": "curve", "size": "size", "items": "items", "accuracy": "score"}
    columns |= {"low_items": "low", "high_items": "high"}
    rows = rows.merge(chance.rename(columns={"accuracy": CHANCE}), on=KEYS)
    published = theirs[theirs["level"] == level].pivot(index="name", columns="model", values="accuracy")
    table = rows[[*columns, CHANCE]].rename(columns=columns).join(published, on=level)
    about = {
        SUITE: "Share of the suite's items whose prediction holds, at each curve's largest size.",
        COMPARISON: "The same of each comparison that a prediction joins with others, alone: a model without any "
        "expectation can be right half the time, and in a conjunction never, as where one form is always preferred.",
    }[level]
    definitions = {"95% interval": _OVER_ITEMS, CHANCE.capitalize(): _CHANCE}
    return Exhibit(name, heading, about, table, cells={"items": mean_count_text}, definitions=definitions)


def _everything(means: pd.DataFrame, confidence: float) -> Exhibit:
    columns = {
        "level": "level", "name": "name", "group": "curve", "size": "size", "runs": "runs", "items": "items",
        "accuracy": "score", "low": "low", "high": "high", "ties": "ties", "unknown": "with <unk>",
        "known": "without these",
    }  # fmt: skip
    return Exhibit(
        "scores",
        "All scores",
        "Means over the runs of a size.",
        means[list(columns)].rename(columns=columns),
        cells={"runs": count, **dict.fromkeys(("items", "ties", "with <unk>"), mean_count_text)},
        confidence=confidence,
        definitions={
            "Ties": "Items with a comparison of equal surprisals, which does not hold.",
            "With <unk>": "Items with an unknown word in a region that the formula names.",
        },
    )


def _unknown(answers: Answers) -> list[str]:
    """Return a warning where `<unk>` stands in regions that formulas name."""
    items = answers.measured[answers.measured["name"] == ALL_ITEMS]
    share = float((items["unknown"] / items["items"]).max())
    if not share:
        return []
    return [
        f"<unk> stands in regions that the formulas name, in up to {share:.0%} of the items of a run; the table of all "
        "scores has the scores without these."
    ]


def _methods(answers: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    policies = answers.policies.values()
    text = [
        "The surprisal of a region is the sum over its tokens (bits), each given all text before it in the sentence; a "
        "token belongs to the region of its first character other than white space. An item succeeds if its suite's "
        "first prediction holds; a tie is no success. The SG score is the mean over suites of the share of their items "
        "that succeed (Hu et al. 2020).",
    ]
    if any(policy.get("score_eos") for policy in policies):
        text.append("The end of a sentence counts in its last region, where a model has a symbol for it.")
    before = {str(policy.get("context", "none")) for policy in policies}
    if before != {"none"}:
        text.append(f"Before each sentence: {sentences.joined(sorted(before))}.")
    return text
