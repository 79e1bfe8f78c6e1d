"""Compare our scores with a plain loop over a model's own logits, for every kind of model in transformers.

    python -m tests.bench.model_kinds TABLE.csv [KIND ...]

Writes the largest difference of a token's score, in nats, for the models of tests/support/model_kinds.py. The largest
allowed difference, and the kinds that are always tested, are in tests/eval/scorers/test_model_kinds.py.
"""

import sys
import warnings
from pathlib import Path

import pandas as pd
import transformers

from pairscale.errors import PairscaleError
from tests.support.model_kinds import NAMES, NOT_BUILT, worst_difference

HOW = "own pass over one unpadded text; padding = begin = end; new weights with untied head, wide weights with tied"


def row(task: str, kind: str) -> tuple[str, str, str, str, str]:
    if kind in NOT_BUILT:
        return task, kind, NAMES[task][kind], "", f"not built: {NOT_BUILT[kind]}"
    try:
        name, worst = worst_difference(kind, task)
    except PairscaleError as error:
        return task, kind, NAMES[task][kind], "", f"refused: {error}"
    except Exception as error:  # raised by the model's own code in the loop; the other kinds are still measured
        return task, kind, NAMES[task][kind], "", f"fails: {type(error).__name__}: {str(error).splitlines()[0]}"
    return task, kind, name, f"{worst:.2g}", HOW


def main(path: Path, kinds: list[str]) -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    columns = ["task", "kind", "model_class", "worst_difference_nats_per_token", "how"]
    rows = []
    for task, names in NAMES.items():
        for kind in names:
            if not kinds or kind in kinds:
                rows.append(row(task, kind))
                print(*rows[-1][:4], flush=True)
                pd.DataFrame(rows, columns=columns).to_csv(path, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
