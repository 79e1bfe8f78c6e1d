"""Reading times in the report: what surprisal adds over training text and over perplexity, and its U-turn."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.figures.reading import delta_chart
from analysis.exhibits.sentences.curves import extent, plural
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.tables.text import DASH, as_it_is, count, short_text, supported_digits
from analysis.measures.reading.config import MIXED, NONE
from analysis.measures.reading.result import Result, read_results
from analysis.measures.reading.tables import PERPLEXITY, SIZES
from analysis.sections.section import READING, TableSection
from analysis.study.collect import PROBLEMS, Study
from pairscale.sizes import readable_size

_DELTA = "delta (1/1000 nats)"
_PER_WORD = ["delta", "low", "high", "low_words", "high_words", "slope", "before", "before_low", "before_high", "after",
             "after_low", "after_high"]  # fmt: skip
LICENCES = {
    "natural_stories": "Natural Stories (Futrell et al. 2021), CC BY-NC-SA 4.0",
    "babylm": "times of Frank et al. 2013 and de Varda et al. 2023, as in the BabyLM evaluation",
    "table": "a table of the user's",
}


def reading_sections(reports: str, study: Study, confidence: float) -> list[TableSection]:
    """Return a section for each result that `python -m analysis.reading` wrote for a study; raises RunError."""
    return [reading_section(result, study, confidence) for result in read_results(Path(reports), study.name)]


def reading_section(result: Result, study: Study, confidence: float) -> TableSection:
    """Return the section of one result; its intervals are those that it was computed with."""
    confidence = float(result.settings["confidence"])
    tables = {name: _thousandths(table) for name, table in result.tables.items()}
    runs = study.runs[study.runs.index.isin(result.tables["runs"]["model"])]
    placed = [f"{extent(runs)}."] if len(runs) else []
    others = int(result.tables["runs"]["sample_words"].isna().sum())
    placed += [f"{plural(others, 'model')} trained on text of unknown size."] if others else []
    settings = result.settings
    exhibits = [_deltas(tables, settings, confidence, study), _turns(tables["curves"], settings, confidence)]
    exhibits += [_models(tables["runs"], settings, confidence), _excluded(tables["excluded"], settings)]
    return TableSection(
        label=result.name,
        file=f"reading-{result.name}",
        kind=READING,
        extent=f"Log-likelihood that surprisal adds to a regression of the times in {settings['file']}: "
        f"{settings['rows']:,} {_rows(settings)} of {plural(settings['texts'], 'text')}. {' '.join(placed)}",
        warnings=[*result.notes, *_stale(result, study)],
        exhibits=existing(exhibits),
        methods=_methods(settings, confidence),
        problems=pd.DataFrame(columns=list(PROBLEMS)),
        runs=runs,
        digest=result.digest,
        findings=[
            finding for group in _groups(tables["curves"]) for finding in _findings(tables["curves"], group, confidence)
        ],
    )


def _rows(settings: dict[str, Any]) -> str:
    return "readings" if settings["regression"] == MIXED and settings["participants"] else "words"


def _thousandths(table: pd.DataFrame) -> pd.DataFrame:
    scaled = [name for name in _PER_WORD if name in table]
    return table.assign(**{name: pd.to_numeric(table[name]) * 1000 for name in scaled})


def _groups(curves: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(curves["group"])) if len(curves) else []


def _stale(result: Result, study: Study) -> list[str]:
    later = [run for run in study.runs.index if run not in set(result.tables["runs"]["model"])]
    return [f"{plural(len(later), 'run')} of the study not in these numbers; again: {result.command}"] if later else []


def _findings(curves: pd.DataFrame, group: str, confidence: float) -> list[Finding]:
    """Say of a curve what its intervals allow: direction over text, and the U-turns over text and perplexity."""
    rows = curves[curves["group"] == group].set_index("axis")
    row = rows.loc[SIZES]
    texts: list[str] = []
    if pd.isna(row["slope"]):
        return []
    if pd.isna(row["low"]):
        texts.append(
            f"{row['slope']:+.2f}/1000 nats a word per doubling of the text, without an interval ({row['note']})."
        )
    else:
        digits = supported_digits(row["low"], row["high"])
        low, high = (f"{row[name]:+.{digits}f}" for name in ("low", "high"))
        over = "" if row["over"] == "words and runs" else f" over {row['over']} alone"
        slope = f"{row['slope']:+.{digits}f}/1000 nats a word per doubling"
        size = f"{slope} ({confidence:.0%} interval{over} [{low}, {high}])"
        if row["low"] > 0 or row["high"] < 0:
            texts.append(f"What surprisal adds {'rises' if row['low'] > 0 else 'falls'} with the text: {size}.")
        else:
            texts.append(f"No change over the text that {plural(int(row['runs']), 'run')} can show: {size}.")
    texts += [_turn_text(rows.loc[axis], axis) for axis in (SIZES, PERPLEXITY)]
    return [Finding(group, " ".join(texts))]


def _turn_text(row: pd.Series, axis: str) -> str:
    if row["turn"] is None or pd.isna(row["turn"]):
        return f"A U-turn over {axis} cannot be tested: {row['note']}."
    if not row["turn"]:
        return f"No U-turn over {axis} that {plural(int(row['runs']), 'run')} can show."
    size = readable_size(f"{row['at']:.0f}")
    at = f"{size} words" if axis == SIZES else f"a perplexity of {short_text(row['at'])}"
    return f"A U-turn over {axis}: it rises up to {at}, and falls from there."


def _deltas(tables: dict[str, pd.DataFrame], settings: dict[str, Any], confidence: float, study: Study) -> Exhibit:
    means, runs = tables["means"], tables["runs"]
    unit = "tokens" if len(study.runs) and set(study.runs["reference"]) == {"tokens"} else "words"
    charts: dict[str, Callable[..., Any]] = {}
    if len(means):
        charts["text"] = partial(delta_chart, runs, means, "sample_words", unit=unit)
    charts["perplexity"] = partial(delta_chart, runs, means, "perplexity")
    table = means[["group", "size", "runs", "perplexity", "delta", "low", "high", "over"]]
    return Exhibit(
        "deltas",
        "What surprisal adds",
        "Log-likelihood a word that surprisal adds to the baseline, over training text and over perplexity: means over "
        "the runs of a size (filled) and single runs (hollow).",
        table.rename(columns={"group": "curve", "delta": _DELTA}),
        cells={_DELTA: _signed, "perplexity": short_text},
        charts=charts,
        columns=1,
        confidence=confidence,
        heads={"over": "interval over"},
        definitions={
            "Added log-likelihood": _ADDED[settings["regression"]],
            "Interval over": f"words: new {settings['clusters']}s for these runs; words and runs: new runs, too.",
            "Perplexity": "2 to the mean surprisal of all words of the texts that have one, in bits.",
        },
    )


_ADDED = {
    "cross_validated": "Of words in texts that the regression was not fitted on: normal log-likelihood with surprisal, "
    "of the word and of those before, less that without. Below 0, surprisal makes predictions worse.",
    "mixed": "Of the rows that the regression was fitted to, by maximum likelihood: with surprisal, of the word and of "
    "those before, less that without. It is never below 0, and above 0 by chance: by about half a nat for each added "
    "coefficient, over all rows.",
}


def _turns(curves: pd.DataFrame, settings: dict[str, Any], confidence: float) -> Exhibit | None:
    if curves.empty or curves["slope"].isna().all():
        return None
    verdict = {True: "yes", False: "not shown"}
    table = pd.DataFrame({
        "curve": curves["group"], "over": curves["axis"], "per doubling": curves["slope"],
        "low": curves["low"], "high": curves["high"],
        "U-turn": [verdict.get(turn, DASH) for turn in curves["turn"]], "break": pd.to_numeric(curves["at"]),
        "up to it": pd.to_numeric(curves["before"]), "before_low": curves["before_low"],
        "before_high": curves["before_high"], "from it": pd.to_numeric(curves["after"]),
        "after_low": curves["after_low"], "after_high": curves["after_high"], "note": curves["note"].map(as_it_is),
    })  # fmt: skip
    for name in ("low", "high", "before_low", "before_high", "after_low", "after_high"):
        table[name] = pd.to_numeric(table[name])
    return Exhibit(
        "turns",
        "Slopes and U-turns",
        "Slopes of what surprisal adds (1/1000 nats a word) per doubling of the training text and per doubling of "
        "perplexity, and the two lines of the break at which a U-turn shows most clearly.",
        table,
        cells=dict.fromkeys(("per doubling", "up to it", "from it"), _signed) | {"break": short_text},
        intervals={
            f"{confidence:.0%} interval": ("per doubling", "low", "high"),
            "limits up to it": ("up to it", "before_low", "before_high"),
            "limits from it": ("from it", "after_low", "after_high"),
        },
        definitions={
            "U-turn": "For some break the line up to it rises and the line from it falls (Simonsohn 2018), both by "
            "one-sided tests at 5% over the number of breaks, whose limits the table gives: at most 5% of curves that "
            "only rise, only fall or are flat show one by mistake. Not corrected for the number of curves.",
        },
    )  # fmt: skip


def _models(runs: pd.DataFrame, settings: dict[str, Any], confidence: float) -> Exhibit:
    table = pd.DataFrame({
        "model": runs["model"], "size": runs["size"].map(as_it_is), "perplexity": runs["perplexity"],
        _DELTA: runs["delta"], "low": runs["low"], "high": runs["high"], "per bit": runs["coefficient"],
        "coefficient_low": runs["coefficient_low"], "coefficient_high": runs["coefficient_high"],
        "note": runs["note"].map(as_it_is),
    })  # fmt: skip
    return Exhibit(
        "models",
        "Single models",
        f"Intervals over new {settings['clusters']}s, for this model. Per bit: the coefficient of the word's own "
        "surprisal on all rows, in the unit of the times (ms).",
        table,
        cells={_DELTA: _signed, "per bit": _signed, "perplexity": short_text},
        intervals={
            f"{confidence:.0%} interval": (_DELTA, "low", "high"),
            "interval per bit": ("per bit", "coefficient_low", "coefficient_high"),
        },
        confidence=confidence,
    )  # fmt: skip


def _excluded(excluded: pd.DataFrame, settings: dict[str, Any]) -> Exhibit:
    about = "Words of the texts, in the order in which they are left out; the same words for all models."
    if settings["participants"]:
        limits = [f"below {settings['lowest']:g} ms"] if settings["lowest"] is not None else []
        limits += [f"above {settings['highest']:g} ms"] if settings["highest"] is not None else []
        if limits:
            about += f" {settings['readings_excluded']:,} single readings {' or '.join(limits)} do not count."
    return Exhibit("excluded", "Words left out", about, excluded, cells={"words": count})


def _methods(settings: dict[str, Any], confidence: float) -> list[str]:
    """Return the paragraphs that a reader needs to check the numbers."""
    if settings["regression"] == MIXED:
        fitted = (
            f"Linear mixed models with a random intercept for each {settings['intercepts']}, by maximum likelihood "
            "(MixedLM of statsmodels); log-likelihoods are of the rows that they were fitted to."
        )
    else:
        fitted = (
            f"Ordinary least squares (statsmodels), cross-validated in {settings['folds']} folds of whole texts; the "
            "normal log-likelihood of each held-out word, with the variance of the other folds' residuals."
        )
    frequencies = {"sample": "in each run's own training sample", "column": "as the file has it"}
    frequency = frequencies.get(settings["frequency"], f"as {settings['frequency']} has it")
    people = settings["participants"]
    times = "means over participants, as the file has them" if not people else f"of {plural(people, 'participant')}"
    if people and settings["regression"] != MIXED:
        times += ", averaged for each word"
    edges = "" if settings["edges"] == NONE else f" First and last words of each {settings['edges']} are left out."
    window = settings["reading"]
    seen = "texts" if window["context"] == "document" else "sentences"
    return [
        f"Baseline: {settings['baseline']}. With surprisal: {settings['full']}. {fitted}",
        f"Times: {settings['measure'] or 'the usual measure'} of {settings['file']} ({LICENCES[settings['form']]}), "
        f"{times}. Length: characters. Log-frequency of the word: {frequency}. A suffix _1, _2: of the word so many "
        f"before.{edges}",
        f"Surprisal (bits) is that of models that read whole {seen}, alone. Words that are unknown to any of the "
        "models are left out for all.",
        f"Intervals ({confidence:.0%}) over words draw new {settings['clusters']}s ({settings['cluster_count']:,}); "
        "over words and runs the variance over runs is added and what both hold subtracted once. Regressions are not "
        "fitted again.",
    ]


def _signed(value: float, digits: int = 3) -> str:
    return DASH if value != value else f"{value:+.{digits}f}"
