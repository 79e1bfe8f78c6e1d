"""BabyLM's scores of reading, against regressions written out; the command on a table of the same form."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from analysis.reading.babylm import EYE_TRACKING, SELF_PACED, babylm_scores, read_babylm
from analysis.reading.config import ReadingConfig
from analysis.reading.files import read_times
from eval.scores.files import read_words, write_words
from tests.support.commands import run_command
from tests.support.reading_files import write_made_up_surprisals
from tests.support.simulated_study import SimulatedStudy

STUDY = SimulatedStudy(models=("lstm_tiny",), pairs=5, sizes=("125k", "250k", "500k"), seeds=(1,))


def made_up_rows(sentences=60, seed=1):
    """Return rows in the form of reading_data.csv: all words of sentences but the first, with their contexts."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(sentences):
        words = ["".join(rng.choice(list("abcdefgh"), rng.integers(1, 9))) for _ in range(7)]
        for at in range(1, 7):
            before = words[:at]
            rows.append({
                "item": " ".join(before), "word": words[at], "prev_item": " ".join(before[:-1]),
                "prev_length": len(before[-1]) if at > 1 else -1,
                "Subtlex_log10": rng.normal() if rng.random() > 0.1 else np.nan,
                **{measure: 200 + 60 * rng.random() for measure in (SELF_PACED, *EYE_TRACKING)},
            })  # fmt: skip
    return pd.DataFrame(rows).sample(frac=1, random_state=seed)


def share_left(outcome, predictors, surprisal):
    """Return 100 (R2 with - R2 without) / (1 - R2 without), by the normal equations, of predictors and products."""
    products = [one * other for one, other in combinations(predictors, 2)]
    without = np.column_stack([np.ones(len(outcome)), *predictors, *products])
    residuals = []
    for x in (without, np.column_stack([without, surprisal])):
        fitted = x @ np.linalg.pinv(x.T @ x) @ x.T @ outcome
        residuals.append(((outcome - fitted) ** 2).sum())
    return 100 * (residuals[0] - residuals[1]) / residuals[0]


def by_hand(table, nats_of):
    """Return both scores. `nats_of` has the surprisal of a word by the text that ends with it."""
    known = table[table["Subtlex_log10"].notna()]
    nats = np.array([nats_of[f"{item} {word}"] for item, word in zip(known["item"], known["word"], strict=True)])
    own = [known["Subtlex_log10"].to_numpy(), known["word"].str.len().to_numpy(float)]
    own.append(known["item"].str.split().str.len().to_numpy(float))
    tracking = np.mean([share_left(known[measure].to_numpy(), own, nats) for measure in EYE_TRACKING])
    late = known["prev_item"].ne("").to_numpy() & known["prev_item"].ne("None").to_numpy()
    before = np.array([nats_of[item] for item in known["item"][late]])
    previous = [column[late] for column in own] + [known["prev_length"].to_numpy(float)[late], before]
    return {
        "self_paced_r2": share_left(known[SELF_PACED].to_numpy()[late], previous, nats[late]),
        "eye_tracking_r2": tracking,
    }


def test_scores_are_those_of_regressions_written_out(tmp_path):
    table = made_up_rows()
    none = table.index[table["item"].str.split().str.len() == 2][0]
    sentence = table.loc[none, "item"]
    table["item"] = table["item"].str.replace(f"^{sentence}", "None of", regex=True)  # as one sentence of the data
    table["prev_item"] = table["item"].str.split().str[:-1].str.join(" ")
    table.to_csv(tmp_path / "reading_data.csv", index=False)
    words = read_times(tmp_path / "reading_data.csv", ReadingConfig(form="babylm"))
    bits = pd.Series(np.random.default_rng(2).gamma(3, 3, len(words)))
    texts, nats_of = {}, {}
    for text, word, value in zip(words["text"], words["word"], bits, strict=True):
        texts[text] = f"{texts.get(text, '')} {word}".strip()
        nats_of.setdefault(texts[text], value * np.log(2))
    scores = babylm_scores(read_babylm(tmp_path / "reading_data.csv"), words, bits)
    assert scores == pytest.approx(by_hand(table, nats_of), rel=1e-6)
    assert babylm_scores(read_babylm(tmp_path / "reading_data.csv"), words, 7 - 3 * bits) == pytest.approx(scores)
    table.drop(columns="RTgopast").to_csv(tmp_path / "fewer.csv", index=False)
    assert read_babylm(tmp_path / "fewer.csv") is None


@pytest.mark.slow
def test_the_command_adds_the_scores_of_runs_and_of_snapshots(tmp_path):
    STUDY.write(tmp_path / "runs")
    made_up_rows().to_csv(tmp_path / "reading_data.csv", index=False)
    paths = [f"paths.{name}={tmp_path / name}" for name in ("runs", "reports", "store")]
    words = [f"times={tmp_path}/reading_data.csv", "reading.form=babylm", "reading.frequency=column"]
    command = ["analysis.reading", "study=simulated", "reading.edges=none", *words, *paths]
    assert run_command(*command).returncode == 2  # no surprisals yet
    file = tmp_path / "reports/simulated/reading/reading_data.jsonl"
    hidden = np.random.default_rng(3).normal(size=len(file.read_text().splitlines()))
    folder = tmp_path / "reports/simulated/surprisal/reading_data"
    runs = sorted(run.name for run in (tmp_path / "runs/simulated").iterdir())
    for seed, run in enumerate(runs):
        write_made_up_surprisals(folder / f"{run}.parquet", file, hidden, 0.7, seed)
    for step in (5, 10):
        rows = write_made_up_surprisals(folder / f"{runs[0]}@{step}.parquet", file, hidden, 0.2, step)
        made = read_words(folder / f"{runs[0]}@{step}.parquet")[1]
        write_words(folder / f"{runs[0]}@{step}.parquet", rows, made | {"step": step, "words_seen": 1000 * step})
    done = run_command(*command)
    assert done.returncode == 0, done.stderr
    models, snapshots = (
        pd.read_csv(tmp_path / f"reports/simulated/reading/reading_data/tables/{name}.csv")
        for name in ("models", "snapshots")
    )
    rows = read_babylm(tmp_path / "reading_data.csv")
    texts = read_times(tmp_path / "reading_data.csv", ReadingConfig(form="babylm"))
    for table, name in ((models, "{run}"), (snapshots, "{run}@{step}")):
        for row in table.to_dict("records"):
            path = folder / f"{name.format(**row, step=row.get('words_seen', 0) // 1000)}.parquet"
            scores = babylm_scores(rows, texts, read_words(path)[0]["uncorrected"])
            assert {key: row[key] for key in scores} == pytest.approx(scores)
    assert sorted(models["run"]) == runs
    assert snapshots["words_seen"].tolist() == [5000, 10_000]
    assert "self_paced_r2" in (tmp_path / "reports/simulated/reading/reading_data/report.html").read_text()
