"""The report's part on BabyLM's tasks, from made-up accuracies, and texts that no report may show."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from analysis.__main__ import run as analyse
from analysis.babylm import babylm_part
from analysis.run import read_study
from eval.babylm import COLUMNS
from eval.benchmarks.load import load_benchmark
from eval.scores.files import read_metadata, write_table
from eval.scores.schemas import SCORES
from eval.submission import GLUE
from pairscale.command.compose import compose
from pairscale.errors import InputError
from tests.support.commands import exit_code
from tests.support.simulated_study import SimulatedStudy

ONE, TWO = [50, 54, 58], [60, 60, 60]


@pytest.fixture
def study(tmp_path):
    """Write a study of two models with three seeds, and its accuracies. Return the folder and words to read it."""
    simulated = SimulatedStudy(sizes=("125k",), seeds=(1, 2, 3), pairs=5, benchmark="babylm_blimp")
    runs = [folder.path.name for folder in simulated.write(tmp_path / "runs")]
    rows = []
    for run, one, two in zip(runs[:3], ONE, TWO, strict=True):
        rows += [(run, "main", None, "blimp", name, 9, value) for name, value in (("one", one), ("two", two))]
        rows += [
            (run, "main", None, "reading", "spr", None, 1.5),
            *((run, "main", None, "glue", of, 9, one) for of in GLUE),
        ]
        rows += [(run, None, 10_000 * k + one, "blimp", "one", 9, k * one / 2) for k in (1, 2)]
    rows += [(runs[3], "main", None, "blimp", "one", 9, 40), (runs[3], "main", None, "blimp", "two", 9, 60)]
    rows += [(runs[3], "main", None, "glue", "boolq", 9, 99), ("no-run", "main", None, "blimp", "one", 9, 99)]
    (tmp_path / "reports/simulated/babylm").mkdir(parents=True)
    pd.DataFrame(rows, columns=COLUMNS).to_csv(tmp_path / "reports/simulated/babylm/accuracies.csv", index=False)
    return tmp_path, ["study=simulated", f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports"]


def part_of(words):
    config = compose("analysis", words)
    return babylm_part(read_study(config), config)


def test_means_and_intervals_are_over_runs_and_stand_beside_published_baselines(study):
    (exhibit,) = part_of(study[1]).exhibits
    table = exhibit.table.set_index("model")
    means = np.mean([ONE, TWO], axis=0) / 100
    low, high = t.interval(0.95, 2, means.mean(), means.std(ddof=1) / np.sqrt(3))
    row = table.loc["LSTM, 125k words"]
    assert row[["runs", "BLiMP", "low BLiMP", "high BLiMP"]].tolist() == pytest.approx([3, means.mean(), low, high])
    assert row["GLUE"] == pytest.approx(0.54)
    assert np.isnan(table.loc["Transformer-XL, 125k words", "GLUE"])  # it has one task of seven
    assert row["SPR"] == pytest.approx(0.015)
    assert table.loc["Transformer-XL, 125k words", ["runs", "BLiMP"]].tolist() == [1, 0.5]
    assert table.loc["GPT-2, strict-small (published)", "BLiMP"] == 0.6508
    texts = exhibit.texts.set_index("model")["BLiMP"]
    assert texts.iloc[:2].tolist() == [f".570 [{low:.3f}, {high:.3f}]".replace("0.", "."), ".500"]


def test_snapshots_of_all_seeds_are_points_of_one_curve_with_a_band_and_chance(study):
    (exhibit,) = part_of(study[1]).exhibits
    assert [*exhibit.charts] == ["BLiMP"]
    layers = {(one["mark"]["type"], *one["mark"]): one["data"]["values"] for one in exhibit.drawn["BLiMP"]["layer"]}
    (band,) = (values for (kind, *_), values in layers.items() if kind == "area")
    assert [(row["sample_words"], row["curve"]) for row in band] == [
        (10_054, "LSTM, 125k words"), (20_054, "LSTM, 125k words"),
    ]  # fmt: skip
    values = np.array(ONE) / 200
    assert band[0]["low"] == pytest.approx(t.interval(0.95, 2, values.mean(), values.std(ddof=1) / np.sqrt(3))[0])
    assert {"name": "chance", "accuracy": 0.5} in [row for rows in layers.values() for row in rows]


def test_the_report_leads_with_these_tasks_unless_another_benchmark_is_chosen(study, capsys):
    folder, words = study
    assert exit_code("analysis", analyse, *words, "format=md") == 0
    page = (folder / "reports/simulated/report.md").read_text()
    assert re.findall(r"^## (.*)", page, flags=re.MULTILINE)[:2] == ["BabyLM", "BLiMP (BabyLM)"]
    for name in ("tables/babylm.csv", "tables/babylm.tex", "figures/babylm.pdf"):
        assert (folder / "reports/simulated/babylm" / name).is_file()
    assert "LSTM, 125k words: accuracy on BLiMP is 57% (mean over 3 runs; 95%" in capsys.readouterr().out.replace(
        "\n", " "
    )
    assert exit_code("analysis", analyse, *words, "benchmark=babylm_blimp", "format=md") == 0
    assert not (folder / "reports/simulated/babylm/tables").exists()
    (folder / "reports/simulated/babylm/accuracies.csv").write_text("run,task\n")
    with pytest.raises(InputError, match=r"no column revision.*accuracies\.csv"):
        part_of(words)


def test_texts_that_must_not_be_published_are_in_no_report(tmp_path):
    (tmp_path / "one.jsonl").write_text('{"Domain": "d", "Context1": "a", "Context2": "b", "Target1": "c"}\n')
    config = compose("eval", ["benchmark=ewok", f"benchmark.path={tmp_path}"]).benchmark
    assert load_benchmark(config).described["show_texts"] is False
    for folder in SimulatedStudy(sizes=("125k",), pairs=5, benchmark="ewok").write(tmp_path / "runs"):
        path = folder.scores("ewok") / "lp.parquet"
        metadata = read_metadata(path)
        metadata["benchmark"]["show_texts"] = False
        write_table(path, pd.read_parquet(path), SCORES, metadata)
    words = ["study=simulated", f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports"]
    assert exit_code("analysis", analyse, *words) == 0
    report = tmp_path / "reports/simulated"
    assert (report / "tables/hardest-pairs.csv").is_file()
    written = [path for path in report.rglob("*") if path.suffix in (".html", ".csv", ".tex", ".svg")]
    assert not [path for path in written if "A cat sleep" in path.read_text()]
