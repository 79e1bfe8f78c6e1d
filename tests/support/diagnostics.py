"""Write the files of the three diagnostics, with the items that are printed in the paper."""

import shutil

from eval.benchmarks.config import DiagnosticConfig
from tests.support import ROOT

INPUTS = ROOT / "tests" / "golden" / "inputs"
FOLDERS = {"cprag": "CPRAG-102", "role": "ROLE-88", "neg": "NEG-136"}


def write_files(folder):
    """Write the folders of the three diagnostics below `folder`, and return it."""
    for name in FOLDERS.values():
        shutil.copytree(INPUTS / name, folder / name)
    return folder


def config(name, folder, **values):
    default = {"shuffles": 3, "seed": 1, "quote_marks": "as_published", "top_words": 5}
    return DiagnosticConfig(name=name, path=str(folder / FOLDERS[name]), **default | values)
