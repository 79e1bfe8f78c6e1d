"""The tables that the command writes beside the slopes, from a study of six sizes scored in two ways."""

import dataclasses

import pandas as pd

from analysis.collect import collect
from analysis.config import CurvesConfig
from analysis.curve_tables import context_changes, write_curve_tables
from analysis.judgements import judgements
from eval.published import read_published
from tests.made_up_study import MadeUpStudy

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
SIX = ("125k", "250k", "500k", "1M", "2M", "4M")


def test_tables_are_written(tmp_path):
    made_up = MadeUpStudy(sizes=SIX, pairs=30)
    made_up.write(tmp_path)
    judged = judgements(collect(tmp_path, made_up.name), "blimp", "lp", "wrong")
    again = dataclasses.replace(judged, label="blimp+context-eos-32", outcome=judged.outcome * 0)
    labels = {"blimp": judged, again.label: again}
    published = dict.fromkeys(labels, read_published("blimp"))
    written = write_curve_tables(tmp_path, labels, published, CONFIG)
    tables = {path.name: pd.read_csv(path) for path in written}
    names = [f"{label}-{table}.csv" for label in labels for table in (
        "words-to-people", "shapes", "slope-differences", "mixed-model"
    )]  # fmt: skip
    assert set(tables) == {*names, "blimp+context-eos-32-context.csv"}
    words = tables["blimp-words-to-people.csv"]
    assert set(words["group"]) == {"lstm_tiny", "txl_tiny"}
    assert set(words.loc[words["level"] == "phenomenon", "name"]) == set(made_up.phenomena)
    assert (words["scores"] == "lp").all()
    assert tables["blimp-shapes.csv"].groupby(["group", "level", "name"])["preferred"].sum().eq(1).all()
    change = tables["blimp+context-eos-32-context.csv"]
    assert (change["difference"] == -change["first"]).all()
    other = write_curve_tables(tmp_path, {"blimp": judged}, published, dataclasses.replace(CONFIG, method="mean_lp"))
    assert other[0].name == "blimp-mean_lp-words-to-people.csv"


def test_only_what_differs_by_context_is_compared(tmp_path):
    made_up = MadeUpStudy(models=("lstm_tiny",), pairs=20)
    made_up.write(tmp_path)
    judged = judgements(collect(tmp_path, made_up.name), "blimp", "lp", "wrong")
    labels = ["blimp", "blimp+unk-skip", "blimp+context-eos-32+unk-skip", "blimp+context-eos-9+pairs-10"]
    assert list(context_changes(dict.fromkeys(labels, judged), 0.95)) == ["blimp+context-eos-32+unk-skip"]
