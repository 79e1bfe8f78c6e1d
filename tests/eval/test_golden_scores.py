"""Training, scoring, tokenizers and generated pairs against their numbers before the redesign of issue 50.

The tables are in tests/golden/, with the generator whose functions are called here. Tolerances stand in TABLES: texts,
ids and counts must be equal. A failure names kind of model, settings, method and pair. The models of one study
(tests.golden.kinds) are made together, so `-k lstm_bpe` takes as long as all tests of its study.
"""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.golden.kinds import KINDS
from tests.golden.make_scores import FOLDER, read_generated, read_study

pytestmark = pytest.mark.slow
Compute = Callable[[str], dict[str, pd.DataFrame]]
TEXT_NATS, NATS = 1e-4, 2e-5  # of a text, of a token
# Of each table: the columns that name a row, and the tolerance of others, relative in metrics.csv and of probabilities.
# The other columns must be equal.
TABLES: dict[str, tuple[list[str], dict[str, float]]] = {
    "metrics": (["step"], dict.fromkeys(("lr", "train_nats_per_token", "valid_nats_per_word", "valid_ppl",
                "valid_ppl_without_eos", "valid_ppl_without_unk", "valid_pseudo_nats_per_word", "valid_pseudo_ppl",
                "epoch", "valid_oov_rate"), 1e-5)),
    "scores": (["settings", "method", "template", "pair_id"], {"good": TEXT_NATS, "bad": TEXT_NATS}),
    "tokens": (["pair_id", "position"], {"logprob": NATS}),
    "ratings": (["sentence"], {"lp": TEXT_NATS, "unigram_lp": TEXT_NATS}),
    "ids": (["sentence"], {}),
    "cloze": (["benchmark", "item", "condition", "role", "word", "place"], {"prob": NATS, "rank": 1}),
    "regions": (["suite", "item", "condition", "region"], {"surprisal": TEXT_NATS}),
    "success": (["suite", "item", "prediction", "comparison"], {}),
    "words": (["context", "text_id", "number"], dict.fromkeys(
        ("surprisal", "uncorrected", "entropy"), 2 * NATS) | {"rank": 1}),
    "generated": (["paradigm"], {}),
}  # fmt: skip
WEIGHTS = 1e-5  # of the norm of a tensor, or of 0.5 if that is smaller: some biases are nothing but noise
TEXT = dict.fromkeys(("template", "comparison", "item"), str)  # columns that are read as text
EMPTY = pd.DataFrame(columns=["kind"])


def golden(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv", dtype=TEXT)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Compute:
    """A function from a study, or "" for generated pairs, to its tables, which are computed once."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}

    def compute(study: str) -> dict[str, pd.DataFrame]:
        if study not in tables:
            folder = tmp_path_factory.mktemp(study or "generated")
            made = read_study(folder, study) if study else {"generated": read_generated(folder)}
            tables[study] = {name: pd.read_csv(io.StringIO(text(table)), dtype=TEXT)
                             for name, table in made.items()}  # fmt: skip
        return tables[study]

    return compute


def text(table: pd.DataFrame) -> str:
    return table.to_csv(index=False, float_format="%.8g")


def kinds() -> list[Any]:
    """Return all kinds. Those of models that other tests compare with transformers and minicons wait for a release."""
    release = ("networks", "masked", "others")
    marked = [pytest.param(kind, marks=[pytest.mark.release] * (of.study in release)) for kind, of in KINDS.items()]
    return [*marked, *golden("generated")["kind"].unique()]


@pytest.mark.parametrize("kind", kinds())
def test_same_numbers(kind: str, computed: Compute, request: pytest.FixtureRequest) -> None:
    study = KINDS[kind].study if kind in KINDS else ""
    if study == "counted":
        request.getfixturevalue("lmplz")
    found: list[str] = []
    for name in (*TABLES, "weights"):
        old, new = (table[table["kind"] == kind] for table in (golden(name), computed(study).get(name, EMPTY)))
        if len(old) or len(new):
            here = other_weights(old, new) if name == "weights" else other_rows(name, old, new)
            found += [f"{len(here)} differences from {name}.csv"] * bool(here) + here[:8]
    assert not found, "\n".join(["", *found])


def other_rows(name: str, old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Return a sentence for each value that differs by more than its tolerance, and for rows without a counterpart."""
    keys, tolerances = TABLES[name]
    old, new = (table.fillna({key: "" for key in keys if table[key].isna().any()}) for table in (old, new))
    assert not old.duplicated(keys).any(), "rows without names of their own"
    both = old.merge(new, on=["kind", *keys], how="outer", suffixes=("", "_new"), indicator=True)
    found = []
    for column in [name for name in old.dropna(axis=1, how="all") if name not in ("kind", *keys)]:
        before, now = both[column], both.get(f"{column}_new")
        if now is None:
            found.append(f"no column {column}")
            continue
        if column in tolerances:
            scale = before.abs() if name == "metrics" or column == "prob" else 1
            same = ((before - now).abs() <= tolerances[column] * scale) | (before.isna() & now.isna())
        else:
            same = (before == now) | (before.isna() & now.isna())
        for at in np.flatnonzero(~same & (both["_merge"] == "both")):
            row = ", ".join(f"{key} {both[key][at]}" for key in keys if both[key][at] != "")
            found.append(f"{both['kind'][at]}: {row}: {column} is {now[at]}, was {before[at]}")
    for at in np.flatnonzero(both["_merge"] != "both"):
        row = ", ".join(f"{key} {both[key][at]}" for key in keys)
        found.append(f"{both['kind'][at]}: {row}: {'missing' if both['_merge'][at] == 'left_only' else 'new'}")
    return found


def other_weights(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Return a sentence for each tensor that the other model lacks, whatever the tensors are called."""
    found, rest = [], new.to_dict("records")
    for row in old.to_dict("records"):
        size = np.sqrt(np.prod([int(part) for part in str(row["shape"]).split("x")]))
        most = WEIGHTS * max(row["norm"], 0.5)
        allowed = {"norm": most, "sum": size * most}
        allowed["wave"] = allowed["sum"]
        same = [other for other in rest if other["shape"] == row["shape"]
                and all(abs(other[key] - row[key]) <= most for key, most in allowed.items())]  # fmt: skip
        if same:
            rest.remove(same[0])
        else:
            found.append(f"{row['kind']}: no tensor of shape {row['shape']}, " + ", ".join(
                f"{key} {row[key]}" for key in allowed))  # fmt: skip
    return found + [f"{row['kind']}: a new tensor {row}" for row in rest]
