"""How much the surprisal of a study's runs adds to regressions of reading times.

For each run, a baseline regression (length, frequency, position) and one with surprisal are fitted to the same words.
Delta is the log-likelihood with surprisal less that without it, in nats per word (per reading with single readings and
mixed models). Each run is one point: `reading_slopes` fits its curve over training text as `fit_curves` does.
"""

import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.fit import fit_curves
from analysis.reading.config import MIXED, NONE, SENTENCE, ReadingConfig
from analysis.reading.files import ReadingTimes
from corpora.word_counts import Counts
from corpora.words import words as reference_words
from eval.surprisal.files import read_surprisals
from pairscale.errors import ConfigError, RunError
from pairscale.files import sha256_file, write_text
from pairscale.tables import write_csv

Array = npt.NDArray[np.float64]
MIN_TEXTS = 8  # from which on standard errors are clustered by text: few clusters say little; else by sentence
METHOD = "surprisal"
_RESULTS = ("models", "slopes", "excluded")
_DELTAS = ["run", "delta", "coefficient", "low", "high", "perplexity", "note"]


@dataclass(frozen=True)
class Formulas:
    """The two regressions: `full` also has the surprisal of the word, and of the words before it."""

    baseline: str
    full: str

    @classmethod
    def of(cls, config: ReadingConfig) -> "Formulas":
        """Return the formulas of a configuration. Raises ConfigError for a baseline with the word's surprisal."""
        lags = ["", *(f"_{lag}" for lag in range(1, config.spillover + 1))]
        terms = [f"{name}{lag}" for lag in lags for name in ("length", "log_frequency")]
        baseline = config.formula or " + ".join(["time ~ position", *terms])
        present = set(re.findall(r"\w+", baseline))
        if METHOD in present:
            raise ConfigError(f"reading.formula={baseline}: the baseline must not contain the surprisal of the word.")
        added = [f"{METHOD}{lag}" for lag in lags if f"{METHOD}{lag}" not in present]
        return cls(baseline, " + ".join([baseline, *added]))


@dataclass(frozen=True)
class RegressionRows:
    """The words that count, the same for all models.

    Attributes:
        table: one row per row of the regressions: word (a row of ReadingTimes.words), time, participant, text, sentence
            and position.
        excluded: reason and words: how many words each further reason leaves out, and last how many are left.
        readings_excluded: how many single readings are outside the limits.
    """

    table: pd.DataFrame
    excluded: pd.DataFrame
    readings_excluded: int

    @property
    def clusters(self) -> str:
        """The column by which standard errors are clustered."""
        return "text" if self.table["text"].nunique() >= MIN_TEXTS else SENTENCE


def write_words(path: Path, times: ReadingTimes) -> None:
    """Write the words for `python -m eval.surprisal`: a text per sentence, a document per text."""
    words = times.words
    names = words["text"] + ":" + words["sentence"].astype(str)
    rows = zip(names, words["text"], words["word"], strict=True)
    lines = [
        json.dumps({"text_id": name, "document": text, "word": word}, ensure_ascii=False) for name, text, word in rows
    ]
    text = "\n".join(lines) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def read_models(folder: Path, words: Path, times: ReadingTimes, again: str) -> dict[str, pd.DataFrame]:
    """Return surprisal, tokens and unk of each word for each model that has surprisals in `folder`.

    Args:
        folder: files of `python -m eval.surprisal`, named after models.
        words: the file of `write_words`.
        again: the command that makes the surprisals, for errors.

    Raises:
        RunError: for surprisals of other words, and for models that read the words in different ways.
    """
    models, settings = {}, {}
    for file in sorted(folder.glob("*.parquet")):
        rows, made = read_surprisals(file)
        if made["text"] != sha256_file(words) or rows["word"].tolist() != times.words["word"].tolist():
            pairs = enumerate(zip(rows["word"], times.words["word"], strict=False), start=1)
            other = next((f"word {n} is {a!r}, not {b!r}" for n, (a, b) in pairs if a != b), "other sentences")
            raise RunError(f"{file}: surprisals of other words than {words} ({other}). Make them again: {again}")
        models[file.stem] = rows[["surprisal", "tokens", "unk"]]
        settings[file.stem] = {**made["policy"], **made["reading"]}
        first = next(iter(settings))
        for name, value in settings[file.stem].items():
            if value != settings[first].get(name):
                values = f"{name}={settings[first].get(name)} of {first}, {name}={value} of {file.stem}"
                raise RunError(f"{folder}: models read the words in different ways: {values}")
    return models


def regression_rows(times: ReadingTimes, known: npt.NDArray[np.bool_], config: ReadingConfig) -> RegressionRows:
    """Return the rows of the regressions: a word and its mean time, or a reading if the regression is mixed.

    Args:
        known: (W,) False for a word that is unknown to some model or has no frequency.
    """
    words, readings = times.words, times.readings
    within = pd.Series(True, index=readings.index)
    if times.participants:
        low = -np.inf if config.lowest is None else config.lowest
        within = readings["time"].between(low, np.inf if config.highest is None else config.highest)
    kept = readings[within]
    before = with_lags(words.assign(known=known.astype(float)), ["known"], config.spillover).filter(regex=r"^known")
    unit = words["text"] + ":" + words["sentence"].astype(str) if config.edges == SENTENCE else words["text"]
    at_edge = (unit != unit.shift(1)) | (unit != unit.shift(-1))
    reasons: dict[str, Any] = {
        "no time, or none within the limits": ~words.index.isin(kept["word"]),
        f"first or last word of a {config.edges}": at_edge & (config.edges != NONE),
        f"fewer than {config.spillover} words before it": before.isna().any(axis=1),
        "unknown to a model, or without a frequency; or the word before is": (before == 0).any(axis=1),
    }
    is_left = pd.Series(True, index=words.index)
    counts = []
    for reason, is_out in reasons.items():
        counts.append((reason, int((is_left & is_out).sum())))
        is_left &= ~is_out
    counts.append(("left", int(is_left.sum())))
    table = kept[is_left.to_numpy()[kept["word"]]].reset_index(drop=True)
    if config.regression != MIXED:
        table = table.groupby("word", as_index=False)["time"].mean().assign(participant="")
    of_rows = words.loc[table["word"]].reset_index(drop=True)
    sentence = of_rows["text"] + ":" + of_rows["sentence"].astype(str)
    table = table.assign(text=of_rows["text"], sentence=sentence, position=of_rows["number"].astype(float))
    return RegressionRows(table, pd.DataFrame(counts, columns=["reason", "words"]), int((~within).sum()))


def with_lags(words: pd.DataFrame, names: list[str], spillover: int) -> pd.DataFrame:
    """Add the columns NAME_1, NAME_2, ... of the words before, within a text."""
    of_text = words.groupby("text", sort=False)
    lags = {f"{name}_{lag}": of_text[name].shift(lag) for lag in range(1, spillover + 1) for name in names}
    return words.assign(**lags)


def log_frequencies(words: pd.Series, counts: Counts, reference: str) -> Array:
    """Return log2 of occurrences per million, plus half an occurrence, of each word's rarest part.

    Parts are reference words (corpora/words.py) that aren't punctuation. Capitals don't count.
    """
    lowered: dict[str, int] = {}
    for word, number in counts.of.items():
        lowered[word.lower()] = lowered.get(word.lower(), 0) + number
    known = {}
    for word in words.unique():
        parts = [part for part in reference_words(word, reference) if any(map(str.isalnum, part))] or [word]
        known[word] = min((lowered.get(part.lower(), 0) + 0.5) / counts.words * 1e6 for part in parts)
    logarithms: Array = np.log2([known[word] for word in words])
    return logarithms


def reading_deltas(
    times: ReadingTimes,
    rows: RegressionRows,
    models: Mapping[str, pd.DataFrame],
    frequency: Callable[[str], Array],
    config: ReadingConfig,
) -> pd.DataFrame:
    """Fit the regressions of each model.

    Args:
        frequency: returns the (W,) log-frequencies of the words for a model.

    Returns:
        One row per model: run (its name), delta, the coefficient of the word's own surprisal on all rows (in the unit
        of the times, per bit) with its 95% interval low, high, perplexity (2 to the mean surprisal of the words), and a
        note about a fit that didn't converge.

    Raises:
        ConfigError: for a formula that the rows don't fit.
    """
    formulas, deltas = Formulas.of(config), []
    for name, surprisal in models.items():
        words = times.words.assign(length=times.words["word"].str.len().astype(float), surprisal=surprisal["surprisal"])
        words = words.assign(log_frequency=frequency(name))
        words = with_lags(words, ["length", "log_frequency", METHOD], config.spillover)
        of_rows = words.loc[rows.table["word"]].reset_index(drop=True)
        table = rows.table.join(of_rows[[one for one in of_rows if one not in rows.table]])
        fit = _fit_mixed(table, formulas) if config.regression == MIXED else _fit_ols(table, formulas, config, rows)
        deltas.append({"run": name, **fit, "perplexity": float(2 ** surprisal["surprisal"].mean())})
    return pd.DataFrame(deltas)[_DELTAS]


def _fit_ols(table: pd.DataFrame, formulas: Formulas, config: ReadingConfig, rows: RegressionRows) -> dict[str, Any]:
    """Compare held-out log-likelihoods of least squares; the coefficient's interval is clustered (Student's t)."""
    fold = folds_of(table["text"], config.folds, config.seed)
    import statsmodels.formula.api as smf  # here, because the report imports this module and needs no regression

    without, full = (held_out(*design_matrices(formula, table), fold) for formula in (formulas.baseline, formulas.full))
    groups = table[rows.clusters].factorize()[0]
    whole = smf.ols(formulas.full, table).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    low, high = whole.conf_int().loc[METHOD]
    return {"delta": (full - without).mean(), "coefficient": whole.params[METHOD], "low": low, "high": high, "note": ""}


def _fit_mixed(table: pd.DataFrame, formulas: Formulas) -> dict[str, Any]:
    """Compare mixed models with random intercepts, by maximum likelihood on the rows that they are fitted to."""
    import statsmodels.formula.api as smf
    from statsmodels.tools.sm_exceptions import ConvergenceWarning

    fits, notes = [], []
    for formula in (formulas.baseline, formulas.full):
        design_matrices(formula, table)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            fits.append(smf.mixedlm(formula, table, groups=table[grouping(table)]).fit(reml=False))
        notes += [str(one.message).splitlines()[0] for one in caught if issubclass(one.category, ConvergenceWarning)]
    without, full = fits
    low, high = full.conf_int().loc[METHOD]
    return {
        "delta": (full.llf - without.llf) / len(table), "coefficient": full.params[METHOD], "low": low, "high": high,
        "note": "; ".join(dict.fromkeys(notes)),
    }  # fmt: skip


def grouping(table: pd.DataFrame) -> str:
    """Return the column with random intercepts: participants, or texts if the times are means."""
    return "participant" if (table["participant"] != "").any() else "text"


def folds_of(texts: pd.Series, folds: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row: texts in random order, dealt out one by one; at most as many folds as texts."""
    names = texts.drop_duplicates().to_numpy()
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {names[text]: place % min(folds, len(names)) for place, text in enumerate(order)}
    return texts.map(fold).to_numpy(dtype=np.intp)


def design_matrices(formula: str, table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the (N,) outcome and (N, K) predictors of a formula. Raises ConfigError if they are not in the table."""
    import statsmodels.formula.api as smf

    try:
        model = smf.ols(formula, table)
    except Exception as error:  # whatever patsy, or what a formula calls, raises
        names = ", ".join(name for name in table.columns if name not in ("word", "text", "sentence", "participant"))
        reason = str(error).splitlines()[0]
        raise ConfigError(f"reading.formula={formula}: {reason}; the columns are {names}") from None
    if len(model.endog) < len(table):
        raise ConfigError(f"reading.formula={formula}: has no value for {len(table) - len(model.endog):,} rows")
    return model.endog, model.exog


def held_out(outcome: Array, predictors: Array, fold: npt.NDArray[np.intp]) -> Array:
    """Return the (N,) normal log-likelihood (nats) of each row under the regression on the rows of the other folds.

    The variance is the maximum-likelihood estimate.
    """
    from scipy.stats import norm
    from statsmodels.regression.linear_model import OLS

    likelihood = np.empty(len(outcome))
    for number in range(int(fold.max()) + 1):
        held = fold == number
        fit = OLS(outcome[~held], predictors[~held]).fit()
        deviation = np.sqrt(fit.ssr / (~held).sum())
        likelihood[held] = norm.logpdf(outcome[held], predictors[held] @ fit.params, deviation)
    return likelihood


def as_accuracies(models: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return deltas in the form of the long table, `accuracy` being delta, for `fit_curves`, `compare` and figures.

    Args:
        models: columns of `analysis.runs` and delta.
        name: of the file of times, which takes the place of a benchmark.
    """
    rows = models[models["sample_words"].notna() & (models["baseline"].isna() | models["baseline"].eq(""))]
    none = dict.fromkeys(("phenomenon", "paradigm", "pairs", "correct", "ties", "pairs_with_unk"))
    return rows.assign(baseline="", benchmark=name, method=METHOD, accuracy=rows["delta"], **none)


def reading_slopes(models: pd.DataFrame, name: str, confidence: float) -> pd.DataFrame:
    """Fit delta over log2 of the training text for each curve: the interval of `fit_curves`, in nats per doubling."""
    table = fit_curves(as_accuracies(models, name), confidence)
    names = {"smallest_accuracy": "smallest_delta", "largest_accuracy": "largest_delta"}
    return table.drop(columns=["benchmark", "method", "level", "name", "paradigms", "pairs"]).rename(columns=names)


@dataclass(frozen=True)
class ReadingResult:
    """What `python -m analysis.reading` computed for one file of times.

    Attributes:
        name: of the file, with its measure and regression unless they are the usual ones.
        settings: what was read and fitted: baseline, full, rows, texts, clusters, command, ...
        models: one row per model: columns of `analysis.runs` (missing for a model outside the study) and of
            `reading_deltas`.
        slopes: one row per curve, as `reading_slopes` returns it.
        excluded: how many words were left out, by reason.
    """

    name: str
    settings: dict[str, Any]
    models: pd.DataFrame
    slopes: pd.DataFrame
    excluded: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write each table as CSV, and the settings as JSON."""
        for name in _RESULTS:
            write_csv(folder / f"{name}.csv", getattr(self, name))
        write_text(folder / "settings.json", json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n")


def read_results(reports: Path, study: str) -> list[ReadingResult]:
    """Return what `python -m analysis.reading` wrote for a study, by name, for its report.

    Raises RunError for a damaged file.
    """
    results = []
    texts = dict.fromkeys(("run", "curve", "size"), str)
    for file in sorted((reports / study / "reading").glob("*/settings.json")):
        try:
            settings = json.loads(file.read_text(encoding="utf-8"))
            tables = [pd.read_csv(file.with_name(f"{name}.csv"), dtype=texts) for name in _RESULTS]
        except (OSError, ValueError) as error:
            raise RunError(f"{file.parent}: cannot be read ({error}). Run python -m analysis.reading again.") from None
        results.append(ReadingResult(file.parent.name, settings, *tables))
    return results
