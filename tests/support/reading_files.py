"""Make up files of reading times and surprisals. Texts have random words, and surprisal increases reading times."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from eval.scores.files import write_words
from pairscale.files import sha256_file
from tests.support.simulated_study import about

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def made_up_table(
    texts: int = 6, sentences: int = 5, words: int = 8, seed: int = 0, participants: int = 0
) -> pd.DataFrame:
    """Return a table for reading.form=table. Its additional column `hidden` increases reading times."""
    rng = np.random.default_rng(seed)
    rows = []
    for text in range(1, texts + 1):
        for number in range(1, sentences * words + 1):
            word = "".join(rng.choice(LETTERS, rng.integers(2, 9)))
            end = "." if number % words == 0 else ""
            rows.append((f"t{text}", number, word + end, float(rng.integers(1, 1000)), rng.normal()))
    table = pd.DataFrame(rows, columns=["text", "number", "word", "frequency", "hidden"])
    slowed = 300 + 8 * table["word"].str.len() - 5 * np.log2(table["frequency"]) + 15 * table["hidden"]
    if not participants:
        return table.assign(time=slowed + rng.normal(0, 40, len(table)))
    read = [
        table.assign(participant=f"p{one}", time=slowed + rng.normal(0, 20) + rng.normal(0, 40, len(table)))
        for one in range(participants)
    ]
    return pd.concat(read, ignore_index=True)


def write_made_up_surprisals(
    file: Path, words: Path, hidden: np.ndarray, r: float, seed: int, **reading
) -> pd.DataFrame:
    """Write surprisals for a words file of analysis.reading, and return them. Their correlation with `hidden` is r."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame([json.loads(line) for line in words.read_text().splitlines()])
    nats = 8 + 3 * (r * hidden + np.sqrt(1 - r**2) * rng.normal(size=len(hidden)))
    table = pd.DataFrame({
        "text_id": rows["text_id"], "number": rows.groupby("text_id", sort=False).cumcount() + 1, "word": rows["word"],
        "surprisal": nats / np.log(2), "surprisal_nats": nats, "uncorrected": nats / np.log(2),
        "entropy": 5.0, "rank": 3, "tokens": 2, "unk": 0,
    })  # fmt: skip
    parameters = {"context": "document", "window": None, "step": None} | reading
    made = about(words.stem, sha256_file(words), file.stem, parameters=parameters, policy={"unk": "score"})
    file.parent.mkdir(parents=True, exist_ok=True)
    write_words(file, table, made)
    return table
