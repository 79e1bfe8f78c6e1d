"""The Python code of the pages about ablation, acquisition and methods runs on simulated studies."""

import re

import pandas as pd
import pytest

from tests.support import ROOT
from tests.support.ablation_study import write_ablations
from tests.support.simulated_study import SimulatedStudy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    SimulatedStudy(name="mine").write(folder / "runs")
    write_ablations(folder / "runs", name="ablation_small", sizes=("125k", "250k"), seeds=(1, 2), pairs=5)
    return folder


@pytest.mark.parametrize(("page", "blocks"), [("ablation", 1), ("acquisition", 3), ("methods", 3)])
def test_code_runs(folder, page, blocks, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text(encoding="utf-8")
    codes = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(codes) == blocks
    for code in codes:
        names = {}
        exec(code, names)
        tables = [value for value in names.values() if isinstance(value, pd.DataFrame)]
        assert all(len(table) for table in tables)
    if page == "ablation":
        assert set(names["effects"]["kind"]) == {"treatment - control", "treatment - full", "control - full"}
