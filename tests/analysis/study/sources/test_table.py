"""Others' tables as studies: curves equal to those of hand-made judgements, and one line for each wrong table."""

import numpy as np
import pandas as pd
import pytest

from analysis.config import CurvesConfig
from analysis.curves.ablations.ablations import compare_ablations
from analysis.curves.designs import is_trajectory
from analysis.curves.fit import fit_curves
from analysis.curves.intervals import Interval
from analysis.curves.units import units_of
from analysis.exhibits.figures.style import amount_of
from analysis.exhibits.sentences.curves import lead, ruled_out, warnings
from analysis.measures.ablations import direct_paradigms
from analysis.study.judgements import score_labels
from analysis.study.sources.source import requested_source, sources
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.commands import run_command

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)
SIZES = {"125k": 125_000, "500k": 500_000, "2M": 2_000_000}


def rows(seeds=(1, 2), models=("a",), paradigms=("x", "y", "z")):
    """Return accuracies of every model, size, seed and paradigm, and how many pairs they are of."""
    rng = np.random.default_rng(1)
    return pd.DataFrame([
        {"model": model, "size": size, "seed": seed, "paradigm": paradigm, "phenomenon": "p" if paradigm < "z" else "q",
         "accuracy": round(0.5 + 0.02 * np.log2(words / 1e5) + rng.uniform(0, 0.05), 4), "n": 200}
        for model in models for size, words in SIZES.items() for seed in seeds for paradigm in paradigms
    ])  # fmt: skip


def read(tmp_path, table, *overrides, name="results.csv"):
    """Return the study of a table, and its judgements."""
    path = tmp_path / name
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        path.write_text(table if isinstance(table, str) else table.to_csv(index=False))
    config = compose("analysis", ["source=table", f"path={path}", *overrides])
    (study,) = sources()["table"].collect(config)
    return study, sources()["table"].judge(study, score_labels(study)[0], "lp", "wrong")


@pytest.mark.parametrize("name", ["results.csv", "results.parquet"])
def test_slopes_are_those_of_the_accuracies(tmp_path, name):
    table = rows()
    study, judged = read(tmp_path, table, name=name)
    assert list(judged.runs["size"].unique()) == list(SIZES)
    assert (judged.n_pairs, judged.unit, judged.of_paradigms) == (600, "words", True)
    curves = fit_curves(judged, CONFIG).slopes.set_index("name")
    words = table["size"].map(SIZES)
    for paradigm, of in table.groupby("paradigm"):
        by_hand = np.polyfit(np.log2(words[of.index]), of["accuracy"], 1)[0]
        assert curves.loc[paradigm, "slope"] == pytest.approx(by_hand)
    whole = table.groupby(["size", "seed"])["accuracy"].mean()
    by_hand = np.polyfit(np.log2([SIZES[size] for size, _ in whole.index]), whole, 1)[0]
    assert curves.loc["overall", "slope"] == pytest.approx(by_hand)
    assert curves["low_new_pairs"].isna().all()
    assert curves.loc["overall", "method"] == Interval.T_POOLED
    assert study.name == "results"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_cells_of_a_csv_file_may_lie_between_semicolons_or_tabs(tmp_path, separator):
    table = rows()
    _, judged = read(tmp_path, table.to_csv(index=False, sep=separator))
    assert judged.outcome.tolist() == read(tmp_path, table)[1].outcome.tolist()
    with pytest.raises(InputError, match=r"line 2: accuracy is '0,\d+', must be an accuracy such as 0\.63"):
        read(tmp_path, table.to_csv(index=False, sep=separator, decimal=","))


def test_rows_of_pairs_give_judgements_of_pairs(tmp_path):
    rng = np.random.default_rng(2)
    table = pd.DataFrame([
        {"model": "a", "size": size, "seed": seed, "paradigm": paradigm, "pairID": pair, "correct": rng.integers(0, 2)}
        for size in ("1k", "4k") for seed in (1, 2) for paradigm in ("x", "y") for pair in range(20)
    ])  # fmt: skip
    _, judged = read(tmp_path, table)
    assert (judged.of_paradigms, judged.n_pairs) == (False, 40)
    run = judged.runs.index[0]
    of_run = table[(table["size"] == "1k") & (table["seed"] == 1)].sort_values(
        ["paradigm", "pairID"], key=lambda c: c.astype(str)
    )
    assert run == "a-1k-1"
    assert judged.outcome[0].tolist() == of_run["correct"].tolist()
    assert fit_curves(judged, CONFIG).slopes["low_new_pairs"].notna().any()
    some = table.drop(index=table.index[0])
    study, judged = read(tmp_path, some)
    assert judged.n_pairs == 39
    assert "Left out, as some run lacks them: 1 of 40 pairs." in study.notes
    _, counted = read(tmp_path, table.drop(columns="pairID"))
    assert counted.of_paradigms
    assert counted.pairs["n_pairs"].tolist() == [20, 20]
    means = table.groupby(["size", "seed", "paradigm"])["correct"].mean()
    assert counted.outcome[0] == pytest.approx(means["1k", 1].to_numpy())


def test_a_share_of_pairs_is_not_of_one_pair(tmp_path):
    table = rows().rename(columns={"accuracy": "correct"})
    for cell in ("0.513", "2", "", "nan", "maybe"):
        with pytest.raises(InputError, match=r"line 2: correct is .*, must be .* share .* columns\.accuracy=correct"):
            read(tmp_path, table.assign(correct=cell))
    assert read(tmp_path, table, "columns.accuracy=correct")[1].n_pairs == 600
    _, judged = read(tmp_path, table.assign(correct=[0, 0.5, 1] * 6))
    assert judged.outcome.tolist() == [[0, 0.5, 1]] * 6


def test_what_a_table_lacks_is_told_and_left_out(tmp_path):
    table = rows(seeds=(1,)).drop(columns=["seed", "n", "phenomenon"])
    _, judged = read(tmp_path, table)
    text = " ".join(warnings(judged, "wrong"))
    assert "No seeds are given: one run a size" in text
    assert "Of how many pairs an accuracy is a mean is not known" in text
    assert "not judgements of pairs: there are no intervals over new pairs" in text
    assert judged.n_pairs is None
    assert np.isinf(units_of(judged.pairs).pairs).all()
    assert "an unknown number of pairs" in lead(judged)
    assert "<unk>" not in ruled_out(judged)
    assert "tied" not in ruled_out(judged)
    assert judged.pairs["phenomenon"].tolist() == ["x", "y", "z"]
    curves = fit_curves(judged, CONFIG)
    assert set(curves.slopes["method"]) == {Interval.T_HC2}
    assert curves.accuracies["low"].isna().all()
    known, _ = read(tmp_path, table, "results.n=1000")
    assert not any("Of how many pairs" in note for note in known.notes)


def test_without_their_number_pairs_add_no_variance(tmp_path):
    table = rows(seeds=(1, 2, 3))
    limits = []
    for of in (table, table.drop(columns="n"), table.assign(n=10**9)):
        curves = fit_curves(read(tmp_path, of)[1], CONFIG).slopes
        limits.append(curves[["low", "high"]].to_numpy())
    assert limits[1] == pytest.approx(limits[2], abs=1e-6)
    assert (limits[0][:, 1] - limits[0][:, 0] >= limits[1][:, 1] - limits[1][:, 0] - 1e-12).all()
    at_the_top = table.assign(accuracy=1.0).drop(columns="n")
    curves = fit_curves(read(tmp_path, at_the_top)[1], CONFIG)
    assert curves.accuracies["low"].isna().all()  # a band from 1 to 1 would say that all else is excluded
    assert curves.slopes["low"].isna().all()


def test_few_pairs_of_one_run_do_not_stand_for_all(tmp_path):
    table = rows().assign(n=lambda of: np.where(of.index == 0, 2, 200))
    study, judged = read(tmp_path, table)
    assert judged.pairs["n_pairs"].tolist() == [11, 200, 200]  # 6 / (1 / 2 + 5 / 200) = 11.4
    note = "Runs have different numbers of pairs, from 2 to 200, of x (1 of 3 paradigms): chance"
    assert any(of.startswith(note) for of in study.notes)
    assert not any("different numbers" in of for of in read(tmp_path, rows())[0].notes)


def test_texts_of_runs_of_a_size(tmp_path):
    table = rows(seeds=(1, 2, 3))
    notes = {text: read(tmp_path, table, f"results.text={text}")[0].notes for text in ("null", "own", "shared")}
    assert any(note.startswith("Nothing says whether runs of one size") for note in notes["null"])
    assert not any("same text" in note for note in notes["own"])
    _, judged = read(tmp_path, table, "results.text=shared")
    slopes = fit_curves(judged, CONFIG).slopes
    assert set(slopes["method"]) == {Interval.NONE}
    assert slopes["low"].isna().all()


@pytest.mark.parametrize(
    ("unit", "text", "axis"),
    [
        ("sentences", "125k sentences", "sentences of training text"),
        ("tokens", "125k tokens", "tokens of training text"),
        ("words_seen", "125k words seen", "words seen in training"),
        ("steps", "125k steps", "steps of training"),
    ],
)
def test_units_are_stated_and_checkpoints_are_a_trajectory(tmp_path, unit, text, axis):
    study, judged = read(tmp_path, rows(seeds=(1,)), f"results.unit={unit}")
    assert judged.runs["size"].iloc[0] == text
    assert amount_of(judged.unit) == axis
    seen = unit != "sentences"
    assert (judged.over_training, is_trajectory(judged.runs)) == (seen, seen)
    assert any("checkpoints of one training" in note for note in study.notes) == seen
    assert ("at checkpoints of their training" in lead(judged)) == seen
    assert (set(fit_curves(judged, CONFIG).slopes["method"]) == {Interval.NONE}) == seen


def test_checkpoints_of_several_trainings_are_not_called_those_of_one(tmp_path):
    table = pd.concat([rows(seeds=(1, 2, 3)), rows(seeds=(1,), models=("b",))])
    study, _ = read(tmp_path, table, "results.unit=steps")
    (note,) = (note for note in study.notes if "checkpoints" in note)
    assert note.startswith("The points of a curve are checkpoints of up to 3 trainings, by steps, repeats included.")
    assert note.endswith("no interval, test or rank: intervals over trainings are not computed.")
    study, _ = read(tmp_path, rows(seeds=(1, 2)), "results.unit=words_seen")
    assert any("checkpoints of 2 trainings, by words seen," in note for note in study.notes)


def test_one_checkpoint_a_training_makes_no_trajectory(tmp_path):
    """Seed 1 ends at one size, seed 2 at another, and so on: trainings apart, which a line is fitted to."""
    table = rows(seeds=(1, 2, 3, 4))
    table = table[table["size"].map([*SIZES].index) == table["seed"] % len(SIZES)]
    study, judged = read(tmp_path, table, "results.unit=tokens")
    assert not any("checkpoints" in note for note in study.notes)
    assert fit_curves(judged, CONFIG).slopes["low"].notna().any()


def test_checkpoints_that_lie_close_have_labels_of_their_own(tmp_path):
    table = rows(seeds=(1,)).assign(size=lambda of: of["size"].replace({"125k": 1000, "500k": 10_000, "2M": 10_003}))
    _, judged = read(tmp_path, table, "results.unit=steps")
    assert judged.runs["size"].tolist() == ["1k steps", "10k steps", "10.003k steps"]
    assert judged.runs.index.tolist() == ["a-1k-steps-1", "a-10k-steps-1", "a-10.003k-steps-1"]


def test_seeds_that_each_have_sizes_of_their_own_are_not_missed(tmp_path):
    table = rows(seeds=(1, 2, 3)).assign(size=lambda of: of["size"].map(SIZES) + 37 * of["seed"])
    assert not any("no scored run" in note for note in read(tmp_path, table)[1].notes)
    some = rows(seeds=(1, 2, 3)).query("size != '2M' or seed == 1")
    assert "a: no scored run at 2M words with seeds 2, 3." in read(tmp_path, some)[1].notes


def test_size_0_has_no_place(tmp_path):
    table = rows(seeds=(1,)).assign(size=lambda of: of["size"].replace("125k", "0"))
    study, judged = read(tmp_path, table, "results.unit=steps")
    assert study.problems.to_dict("records") == [
        {"run": "a-0-steps-1", "status": "untrained", "reason": "size 0 has no place on a logarithmic axis"}
    ]
    assert len(judged.runs) == 2


def test_paradigms_that_runs_lack_are_listed(tmp_path):
    table = rows().drop(index=0)
    study, judged = read(tmp_path, table)
    assert judged.pairs["paradigm"].tolist() == ["y", "z"]
    assert any("some runs lack them: x (1 of 3 paradigms; runs without some: a-125k-1)" in note for note in study.notes)
    study, judged = read(tmp_path, table, "results.missing=runs")
    assert judged.pairs["paradigm"].tolist() == ["x", "y", "z"]
    assert study.problems["run"].tolist() == ["a-125k-1"]
    apart = table.assign(paradigm=table["paradigm"] + table["size"])
    with pytest.raises(InputError, match="no paradigm is in all of the 6 runs"):
        read(tmp_path, apart)
    with pytest.raises(InputError, match="every run lacks some of the 9 paradigms"):
        read(tmp_path, apart, "results.missing=runs")


def test_columns_have_any_names_and_sizes_any_names(tmp_path):
    table = rows().rename(columns={"model": "arch", "size": "corpus", "accuracy": "score", "paradigm": "circuit"})
    table = table.assign(
        kind="big", score=100 * table["score"], corpus=table["corpus"].map({"125k": "S", "500k": "M", "2M": "L"})
    )
    _, judged = read(
        tmp_path, table, "columns.model=[arch,kind]", "columns.size=corpus", "columns.accuracy=score",
        "columns.paradigm=circuit", "results.percent=true", "results.sizes={S:125k,M:500k,L:2M}",
        "results.benchmark=sg",
    )  # fmt: skip
    assert judged.label == "sg"
    assert set(judged.runs["group"]) == {"a, big"}
    assert sorted(judged.runs["sample_words"].unique()) == sorted(SIZES.values())
    assert judged.outcome[0, 0] == pytest.approx(table["score"][0] / 100)
    fixed = rows(seeds=(1,)).query("size == '2M'").drop(columns="size")
    assert read(tmp_path, fixed, "results.size=2M")[1].runs["sample_words"].tolist() == [2_000_000]


def test_names_of_sizes_may_be_numbers(tmp_path):
    table = rows().assign(size=lambda of: of["size"].map({"125k": "1", "500k": "2.0", "2M": "0.5"}))
    _, judged = read(tmp_path, table, "results.sizes={1.0:125k,2:500k,.5:2M}")
    assert sorted(judged.runs["sample_words"].unique()) == sorted(SIZES.values())
    with pytest.raises(InputError, match=r"no size in the table results\.csv is named 3, S; sizes there: 125k, 500k"):
        read(tmp_path, table, "results.sizes={1:125k,2:500k,.5:2M,3:8M,S:4M}")
    with pytest.raises(InputError, match=r"size is '0\.5', which results\.sizes does not name"):
        read(tmp_path, table, "results.sizes={1:125k,2:500k}")


def test_phenomena_of_blimp_are_the_published_ones(tmp_path):
    table = rows(paradigms=("adjunct_island", "wh_island")).drop(columns="phenomenon")
    assert set(read(tmp_path, table, "results.benchmark=blimp")[1].pairs["phenomenon"]) == {"island_effects"}
    two = rows().assign(phenomenon=lambda of: of["size"])
    with pytest.raises(InputError, match="paradigm x is of several phenomena: 125k, 2M, 500k"):
        read(tmp_path, two)


def test_texts_without_a_construction_are_compared_with_the_full_text(tmp_path):
    full, filtered = rows(seeds=(1, 2, 3)), rows(seeds=(1, 2, 3))
    table = pd.concat([full.assign(corpus="full"), filtered.assign(corpus="npi", accuracy=filtered["accuracy"] - 0.1)])
    table["target"] = (table["corpus"] == "npi") & (table["paradigm"] == "x")
    study, judged = read(
        tmp_path, table, "columns.removed=corpus", "columns.tests=target", "results.full=full", "results.benchmark=sg"
    )
    assert set(judged.runs["group"]) == {"a, full text", "a, npi removed"}
    direct = direct_paradigms(judged.runs, study.config, "sg")
    assert direct == {"npi": {"x"}}
    ablations = compare_ablations(judged, direct, CONFIG)
    whole = ablations.differences.query("level == 'overall' and over == 'all sizes'")
    assert whole["difference"].tolist() == pytest.approx([-0.1])
    (comparison,) = ablations.comparisons
    assert not comparison.paired  # seeds of others have nothing in common


def test_sizes_that_may_count_millions_of_words_are_questioned(tmp_path):
    table = rows()
    table["size"] = table["size"].map({size: 10 ** (i + 1) for i, size in enumerate(table["size"].unique())})
    question = f"The largest size is {table['size'].max()} words: results.scale=1000000 if sizes count millions."
    assert question in read(tmp_path, table)[0].notes
    for said in ("results.scale=1000000", "results.unit=sentences"):
        assert not any("The largest size" in note for note in read(tmp_path, table, said)[0].notes)


@pytest.mark.parametrize(("yes", "no"), [("1.0", "0.0"), ("Yes", "no"), ("TRUE", "False"), (1, 0)])
def test_whether_a_paradigm_tests_what_is_removed_is_told_in_several_ways(tmp_path, yes, no):
    table = pd.concat([rows().assign(removed="", tests=""), rows().assign(removed="npi", tests=no)], ignore_index=True)
    table.loc[(table["removed"] != "") & (table["paradigm"] == "x"), "tests"] = yes
    study, judged = read(tmp_path, table, "results.benchmark=sg")
    assert direct_paradigms(judged.runs, study.config, "sg") == {"npi": {"x"}}
    for wrong in ("x", "2", ""):
        with pytest.raises(InputError, match=rf"line 21: tests is '{wrong}', must be true, false, yes, no, 1 or 0"):
            read(tmp_path, table.astype({"tests": object}).astype(str).replace({"tests": {str(no): wrong}}))


@pytest.mark.parametrize(
    ("change", "overrides", "message"),
    [
        ({}, ["columns.accuracy=acuracy"], r"line 2: no column 'acuracy' \(columns\.accuracy\); near it: accuracy"),
        ({"drop": "paradigm"}, [], r"line 2: no column for the paradigm; give columns\.paradigm=NAME; there are"),
        ({"drop": "size"}, [], r"no column for the size; give columns\.size=NAME \(or results\.size=SIZE"),
        ({"drop": "accuracy"}, [], r"no column for the accuracy; give columns\.accuracy=NAME \(or columns\.correct"),
        ({"accuracy": "63.5"}, [], r"line 2: accuracy is 63\.5, must be from 0 to 1; for per cent say"),
        ({"accuracy": "101"}, ["results.percent=true"], r"line 2: accuracy is 101, must be from 0 to 100"),
        ({"accuracy": "good"}, [], r"line 2: accuracy is 'good', must be an accuracy"),
        ({"accuracy": ""}, [], r"line 2: accuracy is .*, must be an accuracy"),
        ({"size": "large"}, [], r"line 2: size is 'large', must be a number such as 125k.*results\.sizes="),
        ({"size": "0.5"}, [], r"line 2: size is 0\.5: must be 1 or more, or 0; results\.scale=1000000 where"),
        ({"size": "0.5"}, ["results.scale=.001"], r"line 2: size is 0\.5, 0\.0005 by results\.scale: must be 1 or"),
        ({"size": "-5"}, [], r"line 2: size is -5, must be 0 or more"),
        ({"size": "7"}, ["results.scale=1e20"], r"line 2: size is 7, 7e\+20 by results\.scale, must be .* below 1e18"),
        ({"seed": "one"}, [], r"line 2: seed is 'one', must be a whole number from 0 \(seed\)"),
        ({"seed": ""}, [], r"line 2: seed is '', must be a whole number from 0 \(seed\)"),
        ({"n": "10.5"}, [], r"line 2: n is '10\.5', must be a whole number from 1 \(n\)"),
        ({"n": ""}, [], r"line 2: no number of pairs \(n\), but others have one .*line 3.*results\.n=NUMBER is that"),
        ({}, ["results.n=9"], r"results\.n=9: every row says how many pairs it is of; leave results\.n out"),
        ({"paradigm": "a\x1b[31m"}, [], r"line 2: paradigm is 'a\\x1b\[31m', must consist of printable characters"),
        ({"phenomenon": "a\ufffe"}, [], r"line 2: phenomenon is 'a\\ufffe', must consist of printable characters"),
        ({"model": "a\nb\tc"}, [], r"line 2: model is 'a\\nb\\tc', must consist of printable characters"),
        ({"paradigm": "v", "phenomenon": "Overall"}, [], r"2: .* \(of paradigm v\) is 'Overall', which names"),
        ({"paradigm": "overall", "phenomenon": ""}, [], r"2: .* \(of paradigm overall\) is 'overall', which names"),
        ({"paradigm": ""}, [], r"line 2: paradigm is empty, must name the paradigm"),
        ({"drop": "seed"}, [], r"line 5: a second row of model a, size 125000, seed 1, paradigm x \(first: .*line 2\); "
         r"what tells them apart is named by columns\.model, columns\.size and columns\.seed"),
        ({}, ["results.benchmark=syntaxgym"], r"results\.benchmark=syntaxgym: names items, not pairs"),
    ],
)  # fmt: skip
def test_wrong_tables_are_told_in_one_line(tmp_path, change, overrides, message):
    table = rows().astype(str)
    for column, value in change.items():
        if column == "drop":
            table = table.drop(columns=value)
        else:
            table.loc[0, column] = value
    with pytest.raises((InputError, ConfigError), match=message) as error:
        read(tmp_path, table, *overrides)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["source=table"], r"source=table: give path=FILE, a folder, or a list of them"),
        (["source=table", "path=nowhere.csv"], r"path=nowhere\.csv: no such file or folder"),
        (["path=x.csv"], r"path=x\.csv: of source=babylm\|lm_eval\|table, but source=files"),
        (["columns.n=k"], r"columns\.n=k: of source=table, but source=files"),
        (["source=tabel"], r"source=tabel: must be one of babylm, files, lm_eval, table, wandb"),
        (["source=table", "results.unit=pages"], r"results\.unit=pages: must be one of characters, sentences, steps"),
        (["source=table", "results.pattern='(?P<sise>.)'"], r"results\.pattern=.*: must have named groups, of"),
        (["source=table", "results.sizes={S:1M,M:big}"], r"results\.sizes: M is 'big', must be a size such as 125k"),
        (["source=table", "columns.model=[]"], r"columns\.model=\[\]: must be a column, or a list of columns"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(overrides, message):
    with pytest.raises((InputError, ConfigError), match=message):
        collected(overrides)


def collected(overrides):
    config = compose("analysis", overrides)
    return requested_source(config).collect(config)


@pytest.mark.slow
def test_the_command_writes_a_report_and_its_own_command(tmp_path):
    path = tmp_path / "others.csv"
    rows(models=("a", "b")).to_csv(path, index=False)
    words = ["source=table", f"path={path}", "results.text=own", f"paths.reports={tmp_path}", "analysis.resamples=50"]
    done = run_command("analysis", *words)
    assert done.returncode == 0, done.stderr
    assert "Not our numbers: read from the table others.csv" in done.stderr
    page = (tmp_path / "others+table" / "report.html").read_text()
    assert f"source=table path={path}" in page
    assert "results.text=own" in page
    for of_runs in ("The runs used", "finished runs are skipped"):
        assert of_runs not in page
    wrong = run_command("analysis", "source=table", f"path={path}", "columns.accuracy=acuracy")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
