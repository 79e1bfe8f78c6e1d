"""Run a module for a job. `held_python.py FILE -um MODULE ...` pauses at each training step while FILE exists.

A run is then still training when a test disturbs it, however fast the machine is. It uses no CPU until then.
"""

import os
import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ["PYTHONPATH"].partition(":")[0])

from train.loop.training import LanguageModelling

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
