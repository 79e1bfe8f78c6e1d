"""Sections of the report that read score files."""

import numpy as np
import pandas as pd
import pytest

from analysis.sections.methods import score_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.scores.files import TOKENS, read_items, read_scores, score_path, write_scores, write_tokens
from tests.support.simulated_study import SimulatedStudy


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a study of two models, sizes and seeds, scored by lp (with tokens), mean_lp and two templates."""
    runs = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(3)
    for folder in SimulatedStudy(sizes=("125k", "1M"), pairs=30).write(runs):
        scores = folder.scores("blimp")
        lp, metadata = read_scores(score_path(scores, "lp"))
        lp["good_tokens"] = rng.integers(4, 8, len(lp))
        write_scores(score_path(scores, "lp"), lp, metadata)
        write_scores(score_path(scores, "mean_lp"), lp, metadata | {"method": "mean_lp"})
        filled = pd.concat([lp.assign(template=name) for name in ("a", "b")], ignore_index=True)
        filled["good"] += rng.normal(0, 2, len(filled))
        write_scores(score_path(scores, "in_template_lp"), filled, metadata | {"method": "in_template_lp"})
        items, _ = read_items(scores)
        rows = [
            (pair, paradigm, side, n, start, end, float(rng.normal(-4, 1)), False)
            for pair, paradigm in items.loc[items["pair_id"].astype(int) < 20, ["pair_id", "paradigm"]].to_numpy()
            for side, last in (("good", 12), ("bad", 11))
            for n, (start, end) in enumerate([(0, 1), (1, 5), (5, last), (last, last + 2)])
        ]
        tokens = pd.DataFrame(rows, columns=list(TOKENS.names))
        write_tokens(scores, tokens, {"policy": {}, "benchmark": metadata["benchmark"]})
    return collect(runs, "simulated")


def exhibits(study, method="lp"):
    return {one.name: one for one in score_exhibits(study, judgements(study, "blimp", method, "wrong"), "wrong")}


def test_each_section_appears_if_its_score_files_exist(study, tmp_path):
    sections = exhibits(study)
    assert list(sections) == [
        "methods", "methods-compared", "methods-by-size", "lengths", "method-differences", "predictors",
        "disagreement", "learned", "flips", "hardest", "where", "errors",
    ]  # fmt: skip
    for one in sections.values():
        one.write(tmp_path, "blimp-")
        assert one.for_page("blimp-")["rows"]
        assert (tmp_path / f"blimp-{one.name}.csv").stat().st_size > 50
        assert (tmp_path / f"blimp-{one.name}.svg").exists() == bool(one.charts)


def test_methods_are_means_over_the_runs_at_the_largest_size(study):
    table = exhibits(study)["methods"].table.set_index(["curve", "method"])
    runs = study.runs[(study.runs["group"] == "txl_tiny") & (study.runs["size"] == "1M")].index
    accuracies = []
    for run in runs:
        lp, _ = read_scores(score_path(study.folders[run].scores("blimp"), "lp"))
        accuracies.append((lp["good"] > lp["bad"]).groupby(lp["paradigm"]).mean().mean())
    assert table.loc[("txl_tiny", "lp"), "accuracy"] == pytest.approx(np.mean(accuracies))
    assert np.isnan(table.loc[("txl_tiny", "lp"), "±"])
    assert table.loc[("txl_tiny", "in_template_lp"), "±"] > 0
    assert "share of A" not in table
    by_size = exhibits(study)["methods-by-size"].table.set_index(["curve", "method"])
    assert by_size.loc[("txl_tiny", "lp"), "1M"] == pytest.approx(np.mean(accuracies))
    assert by_size.loc[("txl_tiny", "lp"), "125k"] != by_size.loc[("txl_tiny", "lp"), "1M"]


def test_errors_are_wrong_pairs_with_their_tokens(study):
    table = exhibits(study)["errors"].table
    for _, row in table.iterrows():
        run = study.runs[(study.runs["group"] == row["curve"]) & (study.runs["size"] == "1M")].index[0]
        lp, _ = read_scores(score_path(study.folders[run].scores("blimp"), "lp"))
        judged = lp[(lp["paradigm"] == row["paradigm"]) & (lp["pair_id"] == row["pair"])].iloc[0]
        assert judged["good"] < judged["bad"]
        assert row["good"].startswith("A \N{MINUS SIGN}")
        assert "[sleeps " in row["good"]
    assert table.groupby(["paradigm", "curve"]).size().max() <= 2
