"""Regressions of reading times, against ones written out and other functions of statsmodels; the command."""

import shutil

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from analysis.reading.config import ReadingConfig
from analysis.reading.files import read_times
from analysis.reading.results import read_results
from analysis.reading.times import (
    cluster_column,
    folds_of,
    formulas,
    held_out,
    log_frequencies,
    reading_deltas,
    reading_slopes,
    regression_rows,
    within_limits,
)
from pairscale.errors import ConfigError
from tests.support.commands import run_command
from tests.support.reading_files import made_up_table, write_made_up_surprisals
from tests.support.scored_runs import run_folders
from tests.support.simulated_study import SimulatedStudy, as_hub_model

STUDY = SimulatedStudy(models=("lstm_tiny",), pairs=5, sizes=("125k", "250k", "500k"), seeds=(1, 2))
BASELINE = ["position", "length", "log_frequency", "length_1", "log_frequency_1"]


def read(tmp_path, participants=0, texts=6):
    """Return times, and a model whose surprisal slows readers in part."""
    made_up_table(texts=texts, participants=participants).to_csv(tmp_path / "times.csv", index=False)
    times = read_times(tmp_path / "times.csv", ReadingConfig())
    hidden = made_up_table(texts=texts)["hidden"].to_numpy()
    bits = 8 + 3 * hidden + np.random.default_rng(1).normal(size=len(hidden))
    model = {"surprisal": bits, "tokens": 1, "unk": 0, "log_frequency": times.words["log_frequency"]}
    return times, {"model": pd.DataFrame(model)}


def fitted(times, models, config):
    rows, _ = regression_rows(times, models, config)
    return reading_deltas(times, rows, models, config).iloc[0], rows


def with_columns(times, surprisal):
    """Return the words of sentences of eight words, without the first and the last, and what predicts their times."""
    words = times.words.assign(position=times.words["number"].astype(float), length=times.words["word"].str.len())
    words["surprisal"] = np.asarray(surprisal)
    for name in ("length", "log_frequency", "surprisal"):
        words[f"{name}_1"] = words.groupby("text")[name].shift(1)
    return words[~((words["number"] - 1) % 8).isin([0, 7])]


def test_cross_validated_delta_is_that_of_regressions_written_out(tmp_path):
    times, models = read(tmp_path)
    row, _ = fitted(times, models, ReadingConfig(folds=4, seed=5))
    words = with_columns(times, models["model"]["surprisal"])
    words["time"] = times.readings.set_index("word")["time"]
    fold, y, likelihoods = folds_of(words["text"], 4, 5), words["time"].to_numpy(), []
    for columns in (BASELINE, [*BASELINE, "surprisal", "surprisal_1"]):
        x, of = np.column_stack([np.ones(len(words)), words[columns]]), np.empty(len(words))
        for held in (fold == number for number in range(4)):
            coefficients = np.linalg.solve(x[~held].T @ x[~held], x[~held].T @ y[~held])
            variance = ((y[~held] - x[~held] @ coefficients) ** 2).mean()
            of[held] = -np.log(2 * np.pi * variance) / 2 - (y[held] - x[held] @ coefficients) ** 2 / (2 * variance)
        likelihoods.append(of)
    assert row["delta"] == pytest.approx((likelihoods[1] - likelihoods[0]).mean(), abs=1e-9)
    assert row["perplexity"] == pytest.approx(2 ** models["model"]["surprisal"].mean())


@pytest.mark.parametrize(("texts", "unit"), [(6, "sentence"), (9, "text")])
def test_the_coefficients_interval_is_clustered_by_text_or_sentence(tmp_path, texts, unit):
    times, models = read(tmp_path, texts=texts)
    row, rows = fitted(times, models, ReadingConfig())
    assert cluster_column(rows) == unit
    words = with_columns(times, models["model"]["surprisal"])
    words["time"] = times.readings.set_index("word")["time"]
    groups = (words["text"] if unit == "text" else words["text"] + ":" + words["sentence"].astype(str)).factorize()[0]
    model = smf.ols(formulas(ReadingConfig())[1], words)
    whole = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert row["coefficient"] == pytest.approx(whole.params["surprisal"])
    assert [row["low"], row["high"]] == pytest.approx(whole.conf_int().loc["surprisal"].tolist())


def test_mixed_delta_is_the_difference_of_log_likelihoods_with_intercepts_of_participants(tmp_path):
    times, models = read(tmp_path, participants=3)
    config = ReadingConfig(regression="mixed", lowest=250.0)
    row, _ = fitted(times, models, config)
    words = with_columns(times, models["model"]["surprisal"])
    readings = times.readings[times.readings["time"].between(250, 3000)]
    table = readings.merge(words.drop(columns="word"), left_on="word", right_index=True)
    llf = [smf.mixedlm(formula, table, groups=table["participant"]).fit(reml=False).llf for formula in formulas(config)]
    assert row["delta"] == pytest.approx((llf[1] - llf[0]) / len(table), abs=1e-8)
    assert (~within_limits(times, config)).sum() == len(times.readings) - len(readings) > 0


def test_folds_are_of_whole_texts_and_as_many_as_there_are():
    texts = pd.Series(np.repeat(list("abcdefg"), 3))
    fold = folds_of(texts, 3, 1)
    assert pd.Series(fold).groupby(texts).nunique().eq(1).all()
    assert sorted(np.bincount(fold)) == [6, 6, 9]
    assert set(folds_of(texts, 10, 1)) == set(range(7))


def test_surprisal_that_says_nothing_costs_half_a_nat_on_held_out_words():
    gains = []
    for seed in range(40):
        time, length, surprisal = np.random.default_rng(seed).normal(size=(3, 400))
        fold, x = np.repeat(np.arange(10), 40), np.column_stack([np.ones(400), length])
        gains.append((held_out(time, np.column_stack([x, surprisal]), fold) - held_out(time, x, fold)).sum())
    assert np.mean(gains) == pytest.approx(-0.5 / 0.9, abs=0.35)


def test_formulas_add_what_the_baseline_lacks():
    baseline, full = formulas(ReadingConfig(spillover=2))
    assert full == f"{baseline} + surprisal + surprisal_1 + surprisal_2"
    own = formulas(ReadingConfig(formula="np.log(time) ~ length * log_frequency + surprisal_1"))
    assert own[1] == "np.log(time) ~ length * log_frequency + surprisal_1 + surprisal"
    with pytest.raises(ConfigError, match="time ~ surprisal"):
        formulas(ReadingConfig(formula="time ~ surprisal"))


@pytest.mark.parametrize("formula", ["time ~ lenght", "time ~ length +* position", "time ~ np.log(position - 5)"])
def test_a_formula_that_does_not_fit_the_rows_is_refused(tmp_path, formula):
    times, models = read(tmp_path)
    with np.errstate(all="ignore"), pytest.raises(ConfigError, match=r"reading.formula="):
        fitted(times, models, ReadingConfig(formula=formula))


def test_words_left_out_are_counted_by_reason(tmp_path):
    table = made_up_table(texts=2, sentences=3, words=5)
    table.loc[2, "time"] = None
    table.to_csv(tmp_path / "times.csv", index=False)
    times = read_times(tmp_path / "times.csv", ReadingConfig())
    unk = times.words["number"].eq(8)  # the eighth word of both texts, and the one after it
    models = {"a": pd.DataFrame({"tokens": 1, "unk": unk, "log_frequency": 0.0})}
    assert regression_rows(times, models, ReadingConfig())[1]["words"].tolist() == [1, 12, 0, 4, 13]


def test_frequency_is_that_of_the_rarest_part_whatever_its_capitals():
    counts = pd.Series({"The": 2, "the": 6, "well": 1, ",": 90, "known": 1})
    per_million = 2 ** log_frequencies(pd.Series(["The", "the,", "unseen."]), counts, "treebank")
    assert per_million.tolist() == pytest.approx([8.5e4, 8.5e4, 0.5e4])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a study, times, and the surprisals that the command asked for."""
    folder = tmp_path_factory.mktemp("reading")
    STUDY.write(folder / "runs")
    made_up_table().to_csv(folder / "times.csv", index=False)
    asked = command(folder)
    assert asked.returncode == 2
    words = folder / "reports/simulated/reading/times.jsonl"
    assert f"python -m eval.surprisal study=simulated text={words} surprisal.context=document" in asked.stderr
    hidden = made_up_table()["hidden"].to_numpy()
    for seed, run in enumerate(sorted((folder / "runs/simulated").iterdir())):
        file = folder / f"reports/simulated/surprisal/times/{run.name}.parquet"
        write_made_up_surprisals(file, words, hidden, 0.7, seed)
    return folder


def command(folder, *words):
    paths = [f"paths.{name}={folder / name}" for name in ("runs", "reports", "store")]
    arguments = ["study=simulated", f"times={folder}/times.csv", "reading.frequency=column"]
    return run_command("analysis.reading", *arguments, *paths, *words)


@pytest.mark.slow
def test_the_command_writes_a_point_per_run_and_the_slope_through_them(folder):
    done = command(folder)
    assert done.returncode == 0, done.stderr
    [result] = read_results(folder / "reports", "simulated")
    assert result.settings["full"] == result.settings["baseline"] + " + surprisal + surprisal_1"
    assert (result.settings["texts"], result.settings["rows"]) == (6, 180)
    assert result.excluded["words"].tolist() == [0, 60, 0, 0, 180]
    assert len(result.models) == 6
    x = np.log2(result.models["sample_words"].to_numpy(dtype=float))
    fit = smf.ols("y ~ x", pd.DataFrame({"x": x, "y": result.models["delta"]})).fit(cov_type="HC3", use_t=True)
    [slope] = result.slopes.to_dict("records")
    assert [slope["slope"], slope["low"], slope["high"]] == pytest.approx([fit.params["x"], *fit.conf_int().loc["x"]])
    assert f"{1000 * slope['slope']:+.2f}/1000 nats per doubling" in done.stdout
    again = reading_slopes(result.models, result.name, 0.95)
    assert again["slope"].item() == pytest.approx(slope["slope"])


@pytest.mark.slow
def test_surprisals_of_other_words_or_read_in_another_way_are_refused(folder, tmp_path):
    words = folder / "reports/simulated/reading/times.jsonl"
    file = sorted((folder / "reports/simulated/surprisal/times").glob("*.parquet"))[-1]
    before, hidden = file.read_bytes(), made_up_table()["hidden"].to_numpy()
    other = tmp_path / "other.jsonl"
    other.write_text(words.read_text().replace('"word": "', '"word": "x', 1))
    try:
        for text, way, fault in ((words, {"window": 9}, "window=9"), (other, {}, "other words")):
            write_made_up_surprisals(file, text, hidden, 0.7, 0, **way)
            assert fault in command(folder).stderr
    finally:
        file.write_bytes(before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "fault"),
    [(["times=null"], "times=null"), (["reading.formula='time ~ lenght'"], "reading.formula=time ~ lenght")],
)
def test_what_is_wrong_is_said_in_one_line(folder, words, fault):
    asked = command(folder, *words)
    assert asked.returncode == 2
    assert fault in asked.stderr
    assert len(asked.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_words_cannot_be_counted_in_texts_that_are_not_known(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    for run in run_folders(tmp_path / "copy" / "runs"):
        as_hub_model(run, path=f"models/{run.path.name}")
    asked = command(tmp_path / "copy", "reading.frequency=sample")
    assert asked.returncode == 2
    assert "reading.frequency=FILE" in asked.stderr
    assert len(asked.stderr.strip().splitlines()) == 1
