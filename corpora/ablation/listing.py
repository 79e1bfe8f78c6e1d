"""The list of the sentences that an ablation leaves out or rewrites, as a CSV file.

Columns: line of the sentence in the text (text.txt), from 1; action, "left out" or "rewritten"; words, of the sentence
as it was; sentence; rewritten, its new form; control_of, the line of the sentence in whose place it is removed.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from corpora.ablation.intervention import Intervention
from pairscale.tables import write_csv


def write_listing(path: Path, intervention: Intervention) -> int:
    """Write the list of an intervention and return its number of rows."""
    rewritten = intervention.rewritten
    chosen = np.union1d(intervention.skipped, rewritten)
    new = dict(zip(rewritten.tolist(), intervention.text.sentences(rewritten), strict=True))
    stands_for: dict[int, int] = {}
    if (control := intervention.control) is not None:
        stands_for = dict(zip(control.controls.tolist(), (control.sentences + 1).tolist(), strict=True))
    table = pd.DataFrame(
        {
            "line": chosen + 1,
            "action": np.where(np.isin(chosen, rewritten), "rewritten", "left out"),
            "words": intervention.original.words[chosen],
            "sentence": list(intervention.original.sentences(chosen)),
            "rewritten": [new.get(index, "") for index in chosen.tolist()],
            "control_of": [str(stands_for.get(index, "")) for index in chosen.tolist()],
        }
    )
    write_csv(path, table)
    return len(table)
