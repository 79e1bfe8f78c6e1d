"""Regressions of reading times, against ones written out and other functions of statsmodels; the command."""

import shutil

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from analysis.reading.config import ReadingConfig
from analysis.reading.files import read_times
from analysis.reading.run import log_frequencies
from analysis.reading.times import folds_of, reading_deltas, regression_rows
from pairscale.errors import ConfigError
from tests.support.commands import run_command
from tests.support.reading_files import made_up_table, write_made_up_surprisals
from tests.support.scored_runs import run_folders
from tests.support.simulated_study import SimulatedStudy, as_hub_model

STUDY = SimulatedStudy(models=("lstm_tiny",), pairs=5, sizes=("125k", "250k", "500k"), seeds=(1, 2))
BASELINE = ["position", "length", "log_frequency", "length_1", "log_frequency_1"]


def read(tmp_path, texts=6):
    """Return words with times, and a model whose surprisal slows readers in part."""
    made_up_table(texts=texts).to_csv(tmp_path / "times.csv", index=False)
    words = read_times(tmp_path / "times.csv", ReadingConfig())
    hidden = made_up_table(texts=texts)["hidden"].to_numpy()
    bits = 8 + 3 * hidden + np.random.default_rng(1).normal(size=len(hidden))
    return words, {"surprisal": bits, "tokens": 1, "unk": 0, "log_frequency": words["log_frequency"]}


def fitted(words, model, config):
    rows = regression_rows(words, {"model": pd.DataFrame(model)}, config)
    return reading_deltas(rows, config).iloc[0]


def with_columns(words, surprisal):
    """Return the words of sentences of eight words, without the first and the last, and what predicts their times."""
    words = words.assign(position=words["number"].astype(float), length=words["word"].str.len(), surprisal=surprisal)
    for name in ("length", "log_frequency", "surprisal"):
        words[f"{name}_1"] = words.groupby("text")[name].shift(1)
    return words[~((words["number"] - 1) % 8).isin([0, 7])]


def test_cross_validated_delta_is_that_of_regressions_written_out(tmp_path):
    words, model = read(tmp_path)
    row = fitted(words, model, ReadingConfig(folds=4, seed=5))
    words = with_columns(words, model["surprisal"])
    fold, y, likelihoods = folds_of(words["text"], 4, 5), words["time"].to_numpy(), []
    for columns in (BASELINE, [*BASELINE, "surprisal", "surprisal_1"]):
        x, of = np.column_stack([np.ones(len(words)), words[columns]]), np.empty(len(words))
        for held in (fold == number for number in range(4)):
            coefficients = np.linalg.solve(x[~held].T @ x[~held], x[~held].T @ y[~held])
            variance = ((y[~held] - x[~held] @ coefficients) ** 2).mean()
            of[held] = -np.log(2 * np.pi * variance) / 2 - (y[held] - x[held] @ coefficients) ** 2 / (2 * variance)
        likelihoods.append(of)
    assert row["delta"] == pytest.approx((likelihoods[1] - likelihoods[0]).mean(), abs=1e-9)
    assert row["perplexity"] == pytest.approx(2 ** model["surprisal"].mean())
    own = ReadingConfig(formula=f"time ~ {' + '.join(BASELINE)} + surprisal_1")  # a baseline of one's own
    assert fitted(*read(tmp_path), own)["coefficient"] == pytest.approx(row["coefficient"])


@pytest.mark.parametrize(("texts", "unit"), [(6, "sentence"), (9, "text")])
def test_the_coefficients_interval_is_clustered_by_text_or_sentence(tmp_path, texts, unit):
    words, model = read(tmp_path, texts=texts)
    row = fitted(words, model, ReadingConfig())
    words = with_columns(words, model["surprisal"])
    groups = (words["text"] if unit == "text" else words["text"] + ":" + words["sentence"].astype(str)).factorize()[0]
    whole = smf.ols(f"time ~ {' + '.join(BASELINE)} + surprisal + surprisal_1", words)
    fit = whole.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert row["coefficient"] == pytest.approx(fit.params["surprisal"])
    assert [row["low"], row["high"]] == pytest.approx(fit.conf_int().loc["surprisal"].tolist())


def test_folds_are_of_whole_texts_and_as_many_as_there_are():
    texts = pd.Series(np.repeat(list("abcdefg"), 3))
    fold = folds_of(texts, 3, 1)
    assert pd.Series(fold).groupby(texts).nunique().eq(1).all()
    assert sorted(np.bincount(fold)) == [6, 6, 9]
    assert set(folds_of(texts, 10, 1)) == set(range(7))


@pytest.mark.parametrize("formula", ["length", "time ~ surprisal", "time ~ lenght", "time ~ length +* number"])
def test_a_formula_that_does_not_fit_the_rows_is_refused(tmp_path, formula):
    words, model = read(tmp_path)
    with pytest.raises(ConfigError, match=r"reading.formula="):
        fitted(words, model, ReadingConfig(formula=formula))


def test_words_left_out_have_the_first_reason(tmp_path):
    table = made_up_table(texts=2, sentences=3, words=5)
    table.loc[2, "time"] = None
    table.to_csv(tmp_path / "times.csv", index=False)
    words = read_times(tmp_path / "times.csv", ReadingConfig())
    unk = words["number"].eq(8)  # the eighth word of both texts, and the one after it
    models = {"a": pd.DataFrame({"surprisal": 1.0, "tokens": 1, "unk": unk, "log_frequency": 0.0})}
    excluded = regression_rows(words, models, ReadingConfig())["excluded"].tolist()
    sentence, with_unknown = ["first", "", "", "", "first"], ["first", "", "unknown", "unknown", "first"]
    expected = 2 * [*sentence, *with_unknown, *sentence]
    expected[2] = "no"
    assert [reason.partition(" ")[0] for reason in excluded] == expected


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
    words = folder / "reports/simulated/reading/times.jsonl"
    assert f"python -m eval.surprisal study=simulated text={words} surprisal.context=document" in command(folder, 2)
    hidden = made_up_table()["hidden"].to_numpy()
    for seed, run in enumerate(sorted((folder / "runs/simulated").iterdir())):
        file = folder / f"reports/simulated/surprisal/times/{run.name}.parquet"
        write_made_up_surprisals(file, words, hidden, 0.7, seed)
    return folder


def command(folder, code, *words):
    """Run the command, which must end with `code`; return what it printed."""
    paths = [f"paths.{name}={folder / name}" for name in ("runs", "reports", "store")]
    arguments = ["study=simulated", f"times={folder}/times.csv", "reading.frequency=column"]
    done = run_command("analysis.reading", *arguments, *paths, *words)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_command_writes_a_point_per_run_and_the_slope_through_them(folder):
    printed = command(folder, 0)
    page = folder / "reports/simulated/reading/times"
    models, slopes, excluded = (pd.read_csv(page / f"tables/{name}.csv") for name in ("models", "slopes", "excluded"))
    assert dict(excluded.to_numpy()) == {"left": 180, "first or last word of a sentence": 60}
    assert len(models) == 6
    x = np.log2(models["sample_words"].to_numpy(dtype=float))
    fit = smf.ols("y ~ x", pd.DataFrame({"x": x, "y": models["delta"]})).fit(cov_type="HC3", use_t=True)
    [slope] = slopes.to_dict("records")
    assert [slope["slope"], slope["low"], slope["high"]] == pytest.approx([fit.params["x"], *fit.conf_int().loc["x"]])
    assert f"{1000 * slope['slope']:+.2f}/1000 nats per word" in printed.replace("\N{MINUS SIGN}", "-")
    assert pd.read_parquet(page / "tables/rows.parquet")["excluded"].eq("").sum() == 6 * 180


@pytest.mark.slow
def test_surprisals_of_other_words_read_in_another_way_or_of_unknown_texts_are_refused(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    words = copy / "reports/simulated/reading/times.jsonl"
    file = sorted((copy / "reports/simulated/surprisal/times").glob("*.parquet"))[-1]
    hidden, other = made_up_table()["hidden"].to_numpy(), tmp_path / "other.jsonl"
    other.write_text(words.read_text().replace('"word": "', '"word": "x', 1))
    for text, way, fault in ((words, {"window": 9}, "window=9"), (other, {}, "other words")):
        write_made_up_surprisals(file, text, hidden, 0.7, 0, **way)
        assert fault in command(copy, 2)
    write_made_up_surprisals(file, words, hidden, 0.7, 0)
    for run in run_folders(copy / "runs"):
        as_hub_model(run, path=f"models/{run.path.name}")
    assert "reading.frequency=FILE" in command(copy, 2, "reading.frequency=sample")
    assert "times=FILE" in command(copy, 2, "times=null")
