"""A Python for jobs of tests: `held_python.py FILE -um MODULE ...` trains with a pause at each step while FILE exists.

A run that is to be disturbed is still at it when that happens, on a machine of any speed, and costs no CPU meanwhile.
"""

import os
import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ["PYTHONPATH"].partition(":")[0])

from train.loop.module import LanguageModelling

PAUSE = float(os.environ.get("HELD_PAUSE", "0.3"))  # seconds

hold, _, module, *arguments = sys.argv[1:]
training_step = LanguageModelling.training_step


def held_step(self, batch, batch_idx):
    if Path(hold).exists():
        time.sleep(PAUSE)
    return training_step(self, batch, batch_idx)


LanguageModelling.training_step = held_step
sys.argv = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=True)
