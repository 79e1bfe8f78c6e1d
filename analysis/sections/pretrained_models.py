"""Pretrained models, trained on a text of unknown size: accuracies on pairs by every method, without a curve.

Each is one training: intervals are over new pairs of the same paradigms, not over initialisations or texts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.fit import Curves
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.accuracies import model_chart
from analysis.exhibits.sentences.curves import in_text, joined, left_out, plural, unknown_words
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.sentences.methods import judging
from analysis.exhibits.tables.text import accuracy_text, per_cent_text
from analysis.measures.accuracies import PEOPLE, at_largest_size, phenomenon_table, wide
from analysis.sections.methods import score_exhibits
from analysis.sections.section import MODELS, TableSection
from analysis.study.collect import UNSCORED, Study, with_problems
from analysis.study.judgements import Judgements, methods_of, one_digest
from eval.published import OVERALL, means_of_paradigms
from eval.scores.accuracy import stratified_trials
from eval.scores.names import benchmark_name
from eval.scores.table import BESIDE
from pairscale.shares import wilson

# analysis.study.judgements.judgements, or its counterpart for W&B
Judge = Callable[[Study, str, str, str], Judgements]
_SHARES = ("tied", "with <unk>")


def models_section(
    study: Study, label: str, judge: Judge, beside: pd.DataFrame, config: CurvesConfig, ties: str
) -> TableSection | None:
    """Return the section of a benchmark of pairs on models of `study.unplaced`; None where none has scores of it.

    `beside`: level, name, model and accuracy of others on this benchmark, people among them. Single pairs are those of
    config.method, where a model has it. Raises the errors of `judge`, and RunError where models were scored on
    different versions of the benchmark.
    """
    confidence = config.confidence
    models = as_runs(study, label)
    if models.runs.empty:
        return None
    by_method = {method: judge(part, label, method, ties) for method, part in _parts(models, label).items()}
    digest = one_digest(label, {f"{method} scores": judged.digest for method, judged in by_method.items()})
    table = pd.concat([accuracies(judged, confidence) for judged in by_method.values()], ignore_index=True)
    table["entry"] = table["model"] if table["method"].nunique() == 1 else table["model"] + ", " + table["method"]
    shown = by_method.get(config.method, next(iter(by_method.values())))
    phenomena = {name: of for judged in by_method.values() for name, of in phenomena_of(judged).items()}
    others = comparable(beside, label, phenomena)
    more = [] if shown.of_paradigms else score_exhibits(models, shown, ties, models.runs, config.method_margin)
    notes = dict.fromkeys(note for judged in by_method.values() for note in judged.notes)
    return TableSection(
        label=label,
        file=f"{label}-models",
        kind=MODELS,
        extent=f"{plural(len(models.runs), 'pretrained model')}, trained on text of unknown size and on no learning "
        f"curve; {benchmark_name(label)}, {shown.pairs_text} in "
        f"{plural(len(phenomena_of(shown)), 'paradigm')}.",
        warnings=[*left_out(models.problems, "tables"), *notes],
        exhibits=[*_exhibits(table, others, phenomena, confidence), *map(_of_models, more)],
        methods=methods(by_method, table, ties, confidence),
        problems=models.problems,
        runs=models.runs[["group", "manifest"]],
        digest=digest,
        findings=findings(table, others, confidence),
        made_by={"ties": ties},
    )


def as_runs(study: Study, label: str) -> Study:
    """Return the models without a curve that have scores of `label`, as a study; sizes are "" and unknown.

    Its problems are the other models and, where no curves list them, all missing runs.
    """
    scored = [run for run in study.unplaced.index if methods_of(study, run, label)]
    runs = study.unplaced.loc[scored]
    twice = runs["group"].duplicated(keep=False)
    names = runs["group"].mask(twice, runs["group"] + ", " + runs.index.to_series())
    runs = runs.assign(group=names, tokenizer=names, size="", reference="", seed=0, sample_words=np.nan)
    others = [run for run in study.unplaced.index if run not in scored]
    listed = study.problems.iloc[:0] if len(study.runs) else study.problems
    listed = listed[~listed["run"].isin(study.unplaced.index)]
    problems = with_problems(listed, others, UNSCORED, f"no scores of {label}")
    return replace(study, runs=runs, problems=problems, notes=[], unplaced=study.unplaced.iloc[:0])


def _parts(models: Study, label: str) -> dict[str, Study]:
    """Return, for each method, a study of the models that have its scores, without problems."""
    parts: dict[str, list[str]] = {}
    for run in models.runs.index:
        for method in methods_of(models, run, label):
            parts.setdefault(method, []).append(run)
    none = models.problems.iloc[:0]
    return {method: replace(models, runs=models.runs.loc[runs], problems=none) for method, runs in parts.items()}


def accuracies(judged: Judgements, confidence: float) -> pd.DataFrame:
    """Return one row per model and unit: model, method, level, name, paradigms, pairs, accuracy, low, high, ...

    Levels as of `units_of`. low, high: Wilson's interval over new pairs of the same paradigms, of a mean with
    eval.scores.accuracy.stratified_trials. `without <unk>`: the accuracy on pairs without `<unk>` in any of these
    models, NaN where all pairs hold it or the pairs that do are unknown.
    """
    units = units_of(judged.pairs)
    table = units.table
    sizes = table.loc[table["level"] == "paradigm", "n_pairs"].to_numpy(dtype=np.float64)
    right, tied, unknown = (
        paradigm_accuracies(of.astype(np.float64), units.bounds) for of in (judged.outcome, judged.tie, judged.unk)
    )
    trials = stratified_trials(right, sizes, units.weights)
    right, tied, unknown = (of @ units.weights for of in (right, tied, unknown))
    rows = []
    for r, model in enumerate(judged.runs["group"]):
        limits = np.asarray([wilson(share, n, confidence) for share, n in zip(right[r], trials[r], strict=True)])
        columns = {"accuracy": right[r], "low": limits[:, 0], "high": limits[:, 1]}
        shares = dict(zip(_SHARES, (tied[r], unknown[r]), strict=True))
        named = table.rename(columns={"n_pairs": "pairs"}).assign(model=model, method=judged.methods[str(model)])
        rows.append(named.assign(**columns, **shares))
    result = pd.concat(rows, ignore_index=True)
    keys = ["model", "level", "name"]
    if judged.of_paradigms or not judged.unk.any() or not judged.unk_free.any():
        known = result["accuracy"] if not judged.unk.any() else np.nan
        return result.assign(**{"without <unk>": known})
    free = accuracies(judged.select(judged.unk_free), confidence)[[*keys, "accuracy"]]
    return result.merge(free.rename(columns={"accuracy": "without <unk>"}), on=keys, how="left")


def phenomena_of(judged: Judgements) -> dict[str, str]:
    """Return the phenomenon of each paradigm that was judged."""
    named = judged.pairs.drop_duplicates("paradigm")
    return dict(zip(named["paradigm"], named["phenomenon"], strict=True))


def comparable(beside: pd.DataFrame, label: str, phenomena: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of `beside` on the same paradigms (keys of `phenomena`), people last.

    Means are over the paradigms that were judged. Others whose accuracies are known by phenomenon alone are left out
    where the label chooses some paradigms.
    """
    parts = []
    for _, rows in beside.groupby("model", sort=False):
        there = rows[(rows["level"] == "paradigm") & rows["name"].isin(phenomena)]
        if len(there) == len(phenomena):
            parts.append(means_of_paradigms(there, phenomena))
        elif there.empty and "+paradigms-" not in label:
            names = {OVERALL, *phenomena.values()}
            parts.append(rows[rows["name"].isin(names)][["level", "name", "model", "accuracy"]])
    if not parts:
        return beside.iloc[:0]
    return pd.concat(parts, ignore_index=True).sort_values("model", key=lambda of: of == PEOPLE, kind="stable")


def published_beside(published: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """Return the published models to show beside ours: "(paper)" follows all names but people."""
    rows = published[published["model"].isin(BESIDE.get(benchmark, {}))]
    named = rows["model"].where(rows["model"] == PEOPLE, rows["model"] + " (paper)")
    return rows.assign(model=named)[["level", "name", "model", "accuracy"]]


def curves_beside(curves: Curves) -> pd.DataFrame:
    """Return accuracies of a study's curves at their largest sizes, named after them, as `published_beside`."""
    at = at_largest_size(curves)
    words = curves.accuracies.groupby("group")["words"].transform("max")
    sizes = curves.accuracies[curves.accuracies["words"] == words].drop_duplicates("group").set_index("group")["size"]
    return at.assign(model=at["model"] + " at " + at["model"].map(sizes))


def _exhibits(
    accuracies: pd.DataFrame, others: pd.DataFrame, phenomena: Mapping[str, str], confidence: float
) -> list[Exhibit]:
    ours = accuracies[["level", "name", "entry", "accuracy"]].rename(columns={"entry": "model"})
    both = pd.concat([part for part in (ours, others) if len(part)], ignore_index=True)
    theirs = "; (paper): published, as are people" if PEOPLE in set(others["model"]) else ""
    every = wide(both, "paradigm").rename_axis(None, axis=1).rename_axis("paradigm").reset_index()
    every.insert(0, "phenomenon", every["paradigm"].map(phenomena))
    every = every.sort_values(["phenomenon", "paradigm"], ignore_index=True)
    drawn = accuracies[accuracies["level"] != "paradigm"]
    people = others[(others["model"] == PEOPLE) & (others["level"] != "paradigm")]
    several = drawn["method"].nunique() > 1
    columns = ["phenomenon", "paradigm", "model", "method", "paradigms", "pairs", "accuracy", "low", "high"]
    numbers = accuracies.assign(
        paradigm=accuracies["name"].where(accuracies["level"] == "paradigm", ""),
        phenomenon=accuracies["phenomenon"].where(accuracies["level"] != OVERALL, OVERALL),
    )[[*columns, "without <unk>", *_SHARES]]
    return [
        Exhibit(
            "accuracies",
            "Accuracy by phenomenon",
            f"Means over paradigms{theirs}.",
            phenomenon_table(both),
            definitions={
                "Lines": f"{confidence:.0%} intervals for new pairs of the same paradigms, with nothing of what "
                "another training of a model would change.",
            },
            charts={
                str(method): partial(model_chart, rows, people, heading=str(method) if several else "")
                for method, rows in drawn.groupby("method", sort=False)
            },
        ),
        Exhibit(
            "paradigms",
            "Accuracy by paradigm",
            f"Accuracy on {plural(len(every), 'paradigm')}{theirs}.",
            every,
        ),
        Exhibit(
            "intervals",
            "All accuracies",
            "Accuracies of the whole, of phenomena and of paradigms, and the shares of pairs that are tied and that "
            "hold <unk>.",
            numbers,
            cells=dict.fromkeys(_SHARES, per_cent_text),
            confidence=confidence,
            definitions={
                f"{confidence:.0%} interval": "For new pairs of the same paradigms.",
                "Without <unk>": "Accuracy on the pairs without <unk> in any model judged by the method.",
            },
            filtered=True,
        ),
    ]


def _of_models(exhibit: Exhibit) -> Exhibit:
    """Return an exhibit of curves as one of models."""
    if exhibit.table is None or "curve" not in exhibit.table:
        return exhibit
    cells = {"model" if name == "curve" else name: cell for name, cell in exhibit.cells.items()}
    return replace(exhibit, table=exhibit.table.rename(columns={"curve": "model"}), cells=cells)


def findings(accuracies: pd.DataFrame, others: pd.DataFrame, confidence: float) -> list[Finding]:
    """Describe each model and method: overall accuracy with its interval, people's beside it, and the extremes."""
    people = others[(others["model"] == PEOPLE) & (others["level"] == OVERALL)]["accuracy"]
    sentences = []
    for entry, rows in accuracies.groupby("entry", sort=False):
        whole = rows[rows["level"] == OVERALL].iloc[0]
        limits = f"[{accuracy_text(whole['low'])}, {accuracy_text(whole['high'])}]"
        text = f"overall accuracy {accuracy_text(whole['accuracy'])}, {confidence:.0%} interval over new pairs {limits}"
        text += f"; people {accuracy_text(float(people.iloc[0]))}" if len(people) else ""
        phenomena = rows[rows["level"] == "phenomenon"].sort_values("accuracy", ascending=False, kind="stable")
        if len(phenomena) >= 4:
            text += f". Highest: {_named(phenomena.iloc[:2])}; lowest: {_named(phenomena.iloc[:-3:-1])}"
        sentences.append(Finding(str(entry), f"{text}."))
    return sentences


def _named(rows: pd.DataFrame) -> str:
    return " and ".join(
        f"{in_text(name)} ({accuracy_text(value)})" for name, value in rows[["name", "accuracy"]].to_numpy()
    )


def methods(by_method: Mapping[str, Judgements], accuracies: pd.DataFrame, ties: str, confidence: float) -> list[str]:
    """Return the methods paragraph, for a paper; methods that differ only in name share a sentence."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for method, judged in by_method.items():
        name = method if judged.over or method == "pll" else ""  # others read a pair alike
        alike.setdefault((name, *judging(replace(judged, method=name, methods={}), ties)), []).append(method)
    named = [replace(by_method[names[0]], method=joined(names), methods={}) for names in alike.values()]
    text = [line for judged in named for line in judging(judged, ties)]
    unknown = dict.fromkeys(unknown_words(judged) for judged in by_method.values())
    return [
        *dict.fromkeys(text),
        *unknown,
        f"{confidence:.0%} intervals are Wilson's, over new pairs of the same paradigms; a mean over paradigms has as "
        "many trials as would vary as much, where pairs vary within paradigms alone (Korn and Graubard 1998). A model "
        "is one training, and paradigms are fixed: nothing here shows what another initialisation, another text or "
        "other paradigms would change.",
    ]
