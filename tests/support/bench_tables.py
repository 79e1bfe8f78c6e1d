"""Tables of simulated designs that can be made design by design, as each has random numbers of its own."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pairscale.files import write_text


def write_designs(file: Path, table: pd.DataFrame, names: Sequence[str], column: str = "design") -> None:
    """Write the rows of designs to a CSV file, in place of their former rows; all rows in the order of `names`.

    `column` names the designs. Rows of designs that are not in `names` are dropped.
    """
    if file.exists():
        former = pd.read_csv(file, dtype={"runs": str})
        table = pd.concat([former[~former[column].isin(table[column])], table], ignore_index=True)
    table = table[table[column].isin(names)]
    order = table[column].map({name: place for place, name in enumerate(names)})
    table = table.iloc[order.argsort(kind="stable")]
    write_text(file, table.to_csv(index=False, lineterminator="\n"))
