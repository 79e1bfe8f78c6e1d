"""The code of docs/statistics.md runs, on a small study."""

import re

import numpy as np
import pandas as pd
import pytest

import analysis
from tests.support import ROOT
from tests.support.long_table import random_curve

PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


@pytest.fixture
def study(monkeypatch):
    """Give `from analysis import accuracies` and the like a study of two curves."""
    table = pd.concat([random_curve(5, curve=name, rng=i) for i, name in enumerate(("lstm", "txl"))], ignore_index=True)
    table["benchmark"], table["phenomenon"] = "blimp", table["phenomenon"].map({"p0": "binding", "p1": "ellipsis"})
    judged = table.loc[table.index.repeat(10)].assign(pair_id=np.tile([f"{i}" for i in range(10)], len(table)))
    judged["correct"] = np.random.default_rng(0).uniform(size=len(judged)) < judged["accuracy"]
    monkeypatch.setattr(analysis, "accuracies", lambda *_, **__: table, raising=False)
    monkeypatch.setattr(analysis, "pairs", lambda *_, **__: judged, raising=False)


def test_the_code_of_the_page_runs(study):
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block.replace(".summary()", "").replace("smf.ols", "fit = smf.ols"), names)
    overall = names["slopes"].query("level == 'overall' and curve == 'lstm'").iloc[0]
    assert overall["se"] == pytest.approx(names["fit"].bse["doublings"])
    assert [overall["low"], overall["high"]] == pytest.approx(names["fit"].conf_int().loc["doublings"].tolist())
    assert np.isfinite(overall["high_new_items"])
    assert names["differences"]["paired"].all()
    assert set(names["needed"]["name"]) == {"overall", "binding", "ellipsis"}
