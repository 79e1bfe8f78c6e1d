"""Make up words' ages of acquisition and surprisals. Models learn the words in about the same order as children."""

from pathlib import Path

import numpy as np
import pandas as pd

from eval.scores.files import read_words, write_words
from tests.support.simulated_study import SimulatedStudy, about
from train.runs.folder import RunFolder

VOCABULARY = 1024
WORDS = [f"{first}{second}{third}" for first in "bdg" for second in "aeiou" for third in ("l", "m", "nn", "rrr")]  # 60
STUDY = SimulatedStudy(models=("lstm_tiny",), pairs=5, sizes=("125k", "250k", "500k", "1M", "2M"), seeds=(1, 2))


def ages(seed: int = 0) -> pd.DataFrame:
    """Return the words and their ages of acquisition, in months."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"word": WORDS, "age": 16 + 24 * rng.permutation(len(WORDS)) / len(WORDS)})


def write_study(folder: Path, noise: float = 0.3, occurrences: int = 6) -> pd.DataFrame:
    """Write runs and their surprisals for a text below `folder`. Return the ages of acquisition.

    A word's surprisal falls from 10 bits (chance) along a sigmoid, plus noise. The sigmoid's middle is later for words
    that children learn later. Each word occurs `occurrences` to `occurrences` + 4 times.
    """
    table = ages()
    middle = 17.5 + 3 * (table["age"].to_numpy() - 16) / 24  # log2 of the number of words, from 185k to 1.5M words
    for number, run in enumerate(STUDY.write(folder / "runs")):
        manifest = run.read_manifest()
        run.update_manifest(vocabulary=VOCABULARY)
        rng = np.random.default_rng(number)
        x = np.log2(manifest["sample_words"])
        bits = 10 - 6 / (1 + np.exp(-1.5 * (x - middle))) + noise * rng.normal(size=len(WORDS))
        times = occurrences + np.arange(len(WORDS)) % 5
        rows = pd.DataFrame({"word": np.repeat([word.title() + "," for word in WORDS], times)})
        surprisal = np.repeat(bits, times)
        rows = rows.assign(
            text_id="t", number=range(1, len(rows) + 1), surprisal=surprisal, surprisal_nats=surprisal * np.log(2),
            uncorrected=surprisal, entropy=5.0, rank=3, tokens=1, unk=0,
        )  # fmt: skip
        made = about("childes", "ab" * 32, run.path.name, parameters={"context": "text"})
        file = folder / f"reports/simulated/surprisal/childes/{run.path.name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_words(file, rows, made)
    return table


def write_snapshots(runs: Path, surprisals: Path, text: str) -> str:
    """Write the surprisals of all sizes of seed 1 as those of the snapshots of one run, and return its name.

    In the folder `text` beside `surprisals`, words that begin with "ba" are targets, and all others are contexts.
    """
    of_seed = [run for run in map(RunFolder, sorted(runs.iterdir())) if run.read_config()["seed"] == 1]
    first = min(run.path.name for run in of_seed)
    for number, run in enumerate(of_seed, start=1):
        rows, made = read_words(surprisals / f"{run.path.name}.parquet")
        is_target = rows["word"].str.startswith("Ba")
        rows = rows.assign(target=is_target.map({True: "true", False: "false"}))
        rows["surprisal"] = rows["surprisal"].where(is_target, 99.0)
        seen = {"step": number, "words_seen": run.read_manifest()["sample_words"]}
        for moment, table in ((seen, rows), ({"step": 0, "words_seen": 0}, rows.assign(surprisal=1.0))):
            file = surprisals.parent / text / f"{first}@{moment['step']}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            write_words(file, table, made | moment)
    return first
