"""Anyone's tables as the long table: the cells of the file, and one clear sentence for each wrong file."""

import numpy as np
import pandas as pd
import pytest

from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.study.long_table import ACCURACY_COLUMNS, accuracies, runs
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS
from pairscale.errors import ConfigError, InputError
from pairscale.tables import write_csv
from tests.support.simulated_study import SimulatedStudy

SIZES = {"125k": 125_000, "500k": 500_000, "2M": 2_000_000}
HEADER = "model,size,seed,paradigm,accuracy,n"


def rows(seeds=(1, 2), models=("a",), paradigms=("x", "y", "z")):
    """Return accuracies of every model, size, seed and paradigm, and how many pairs they are of."""
    rng = np.random.default_rng(1)
    return pd.DataFrame([
        {"model": model, "size": size, "seed": seed, "paradigm": paradigm, "phenomenon": "p" if paradigm < "z" else "q",
         "accuracy": round(rng.uniform(0.4, 0.9), 4), "n": 200}
        for model in models for size in SIZES for seed in seeds for paradigm in paradigms
    ])  # fmt: skip


def read(tmp_path, table, columns=None, name="results.csv", **results):
    path = tmp_path / name
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        path.write_text(table if isinstance(table, str) else table.to_csv(index=False))
    return read_source("table", str(path), OutcomeColumns(**(columns or {})), ResultsConfig(**results))


@pytest.mark.parametrize(
    ("name", "separator"), [("results.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.csv", "|"), ("a.parquet", None)]
)
def test_accuracies_are_the_cells_of_the_file(tmp_path, name, separator):
    table = rows() if name == "a.parquet" else rows().to_csv(index=False, sep=separator)
    found = read(tmp_path, f"sep=|\n{table}" if separator == "|" else table, name=name)  # as Excel says it
    assert list(found.accuracies.columns) == list(ACCURACY_COLUMNS)
    assert list(found.runs.columns) == [*RUN_COLUMNS, *FURTHER_COLUMNS]
    assert found.pairs is None
    table = rows().drop(columns="n").assign(study=name.partition(".")[0], pairs=200)
    table["correct"], table["sample_words"] = 200 * table["accuracy"], table["size"].map(SIZES)
    table["run"] = "a-" + table["size"] + "-s" + table["seed"].astype(str)
    keys = ["run", "paradigm"]
    ours = found.accuracies[list(table.columns)].sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(ours, table.sort_values(keys, ignore_index=True), check_dtype=False)
    assert found.accuracies[["ties", "pairs_with_unk", "sample"]].isna().all(axis=None)


def test_rows_of_pairs_are_judgements_of_pairs(tmp_path):
    rng = np.random.default_rng(2)
    table = pd.DataFrame([
        {"model": "a", "size": size, "seed": seed, "paradigm": paradigm, "pairID": pair, "correct": rng.integers(0, 2)}
        for size in ("1k", "4k") for seed in (1, 2) for paradigm in ("x", "y") for pair in range(20)
    ])  # fmt: skip
    found = read(tmp_path, table)
    means = table.groupby(["size", "seed", "paradigm"])["correct"].mean()
    by_run = found.accuracies.set_index(["size", "seed", "paradigm"])["accuracy"]
    assert by_run.loc[means.index].to_numpy() == pytest.approx(means.to_numpy(), abs=1e-12)
    assert found.accuracies["pairs"].tolist() == [20] * 8
    assert found.pairs["correct"].sum() == table["correct"].sum()
    assert found.pairs["pair_id"].nunique() == 20
    counted = read(tmp_path, table.drop(columns="pairID"))
    assert counted.pairs is None
    assert (counted.accuracies["accuracy"] == found.accuracies["accuracy"]).all()


def test_what_a_table_lacks_is_missing_or_given_by_settings(tmp_path):
    found = read(tmp_path, rows(seeds=(1,)).drop(columns=["seed", "n", "phenomenon"]))
    assert found.accuracies[["pairs", "correct"]].isna().all(axis=None)
    assert (found.accuracies["phenomenon"] == found.accuracies["paradigm"]).all()
    blimp = rows(paradigms=("adjunct_island", "wh_island")).drop(columns="phenomenon")
    assert set(read(tmp_path, blimp, benchmark="blimp").accuracies["phenomenon"]) == {"island_effects"}
    assert set(read(tmp_path, rows().drop(columns="n"), n=1000).accuracies["pairs"]) == {1000}
    assert len(read(tmp_path, rows().drop(index=0)).accuracies) == len(rows()) - 1  # a paradigm that some runs lack
    table = rows().drop(columns="paradigm").groupby(["model", "size", "seed", "phenomenon"], as_index=False).first()
    whole = table.drop_duplicates(["size", "seed"]).assign(phenomenon="Overall", accuracy=0.6)
    found = read(tmp_path, pd.concat([table, whole])).accuracies
    assert found["paradigm"].isna().all()
    assert found.loc[found["phenomenon"].isna(), "accuracy"].tolist() == [0.6] * 6
    assert len(found) == 18
    with pytest.raises(InputError, match="line 20: paradigm is ''"):
        read(tmp_path, pd.concat([rows(), whole.assign(paradigm="")]))


def test_a_table_of_ours_comes_back_as_it_was(tmp_path):
    SimulatedStudy(pairs=5, sizes=("125k", "1M")).write(tmp_path)
    table, known = accuracies("simulated", folder=tmp_path), runs("simulated", folder=tmp_path)
    write_csv(tmp_path / "accuracies.csv", table)
    write_csv(tmp_path / "runs.csv", known)
    found = read_source("table", str(tmp_path), OutcomeColumns(), ResultsConfig())
    pd.testing.assert_frame_equal(found.accuracies, table, check_dtype=False)
    assert found.runs["valid_ppl"].tolist() == pytest.approx(known["valid_ppl"].tolist())
    for name, one in (("accuracies", table), ("runs", known)):  # two studies with runs of the same names
        write_csv(tmp_path / f"{name}.csv", pd.concat([one, one.assign(study="other")]))
    assert len(read_source("table", str(tmp_path), OutcomeColumns(), ResultsConfig()).runs) == 2 * len(known)


@pytest.mark.parametrize(
    ("unit", "sizes", "texts"),
    [
        ("words", (0, 31_250, 66_400_000), ["0", "31250", "66400k"]),
        ("sentences", (125_000, 500_000, 2_000_000), ["125k sentences", "500k sentences", "2M sentences"]),
        ("words_seen", (0, 1000, 10_000), ["0 words seen", "1k words seen", "10k words seen"]),
        ("steps", (1000, 10_000, 10_003), ["1000 steps", "10000 steps", "10003 steps"]),
    ],
)
def test_sizes_are_told_apart_with_their_unit_and_size_0_is_untrained(tmp_path, unit, sizes, texts):
    table = rows(seeds=(1,)).assign(size=lambda of: of["size"].map(dict(zip(SIZES, sizes, strict=True))))
    found = read(tmp_path, table, unit=unit)
    assert found.runs["size"].tolist() == texts
    assert found.runs["sample_words"].tolist() == list(sizes)
    assert set(found.runs["unit"]) == {unit.replace("_", " ")}
    assert found.runs["baseline"].tolist() == ["untrained" if size == 0 else "" for size in sizes]


def test_columns_have_any_names_and_sizes_any_names(tmp_path):
    table = rows().rename(columns={"model": "arch", "size": "corpus", "accuracy": "score", "paradigm": "circuit"})
    names = {"125k": "S", "500k": "2.0", "2M": "L"}
    table = table.assign(kind="big", score=100 * table["score"], corpus=table["corpus"].map(names))
    columns = {"model": ["arch", "kind"], "size": "corpus", "accuracy": "score", "paradigm": "circuit"}
    found = read(tmp_path, table, columns, percent=True, sizes={"S": "125k", 2: "500k", "L": "2M"}, benchmark="sg")
    assert set(found.accuracies["curve"]) == {"a, big"}
    assert set(found.accuracies["benchmark"]) == {"sg"}
    assert sorted(found.runs["sample_words"].unique()) == sorted(SIZES.values())
    assert found.accuracies["accuracy"].sum() == pytest.approx(table["score"].sum() / 100)
    fixed = rows(seeds=(1,)).query("size == '2M'").drop(columns="size")
    assert read(tmp_path, fixed, size="2M").runs["sample_words"].tolist() == [2_000_000]
    assert read(tmp_path, fixed.assign(size=2), scale=1e6).runs["sample_words"].tolist() == [2_000_000]


def test_texts_without_a_construction_have_their_own_curves(tmp_path):
    table = pd.concat([rows().assign(corpus="full"), rows().assign(corpus="npi")])
    table["target"] = (table["corpus"] == "npi") & (table["paradigm"] == "x")
    found = read(tmp_path, table, {"removed": "corpus", "tests": "target"}, full="full")
    assert set(found.runs["curve"]) == {"a, npi removed", "a, full text"}
    removed = found.runs[found.runs["construction"] == "npi"]
    assert removed[["action", "dose", "base"]].drop_duplicates().to_numpy().tolist() == [["remove", "0", "a"]]
    assert found.accuracies.loc[found.accuracies["tests"], "paradigm"].unique().tolist() == ["x"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,1M,1,x,1.2,10", "accuracy is '1.2'"),
        ("a,big,1,x,.5,10", "size is 'big'"),
        ("a,0.5,1,x,.5,10", "size is '0.5'.*results.scale=1000000"),
        ("a,1M,1,x,.7,1", "accuracy is '.7'.* pair"),
        (",1M,1,x,.5,10", "model is ''"),
        ("a,1M,1,Overall,.5,10", "phenomenon is 'Overall'"),
        ("a,2M,1,x,.5,10\na,2M,1,x,.6,10", "second row for model a, size 2000000"),
    ],
)
def test_a_wrong_cell_is_told_with_its_line(tmp_path, line, message):
    number = 3 if "2M" in line else 2
    with pytest.raises(InputError, match=rf"line {number}: .*{message}"):
        read(tmp_path, f"{HEADER}\n{line}\n")


@pytest.mark.parametrize(
    ("columns", "results", "message"),
    [
        ({"model": "mdl"}, {}, r"'mdl'.* columns\.model\. The columns are model,"),
        ({"accuracy": ""}, {}, r"columns\.accuracy=NAME or columns\.correct=NAME"),
        ({"size": ""}, {}, r"line 2: .*columns\.size=NAME, results\.size=SIZE"),
        ({}, {"size": "1M"}, "second row"),
        ({}, {"sizes": {"125k": "four"}}, "size is '125k'"),
        ({}, {"pattern": "("}, r"results\.pattern=\("),
        ({}, {"percent": True}, r"results\.percent"),
        ({"run": "model"}, {}, "run is 'a'"),
    ],
)
def test_a_wrong_setting_is_told(tmp_path, columns, results, message):
    with pytest.raises((InputError, ConfigError), match=message):
        read(tmp_path, rows(), columns, **results)


def test_a_misspelt_column_is_told(tmp_path):
    with pytest.raises(InputError, match=r"does column 'paradgm' contain the paradigm"):
        read(tmp_path, rows().rename(columns={"paradigm": "paradgm"}))


@pytest.mark.parametrize(("path", "message"), [(None, "path"), ("x.csv", r"path=x\.csv")])
def test_paths_are_checked(path, message):
    with pytest.raises((ConfigError, InputError), match=message):
        read_source("table", path, OutcomeColumns(), ResultsConfig())
