"""The project's goals of speed compared with the figures of speed.py and peers.py, from the files that they write.

    python tests/bench/goals.py [FOLDER]        all .json files there; reports/bench, where `make bench` puts them

A figure is the median of its rounds. The goals of scoring are for models of base size on whole paradigms of BLiMP.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

SHARE_OF_GAIN = 0.85  # of the gain that is possible by reading every beginning once
PEERS = {  # comparison of peers.py, our way, another: least ratio of our speed to the other
    ("lp", "ours", "minicons"): 2.3,
    ("lp", "ours", "lm-evaluation-harness"): 1.4,
    ("lp", "ours in bf16", "minicons"): 4.0,
    ("lp", "ours in bf16", "lm-evaluation-harness"): 2.5,
    ("pll original", "ours", "minicons"): 1.5,
    ("pll within_word_l2r", "ours", "minicons"): 1.5,
}


@dataclass(frozen=True)
class Goal:
    """One figure with its goal, an upper limit if `at_most`, else a lower one."""

    name: str
    figure: float
    goal: float
    unit: str
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.figure <= self.goal if self.at_most else self.figure >= self.goal

    def row(self) -> list[str]:
        side = "at most" if self.at_most else "at least"
        return [self.name, f"{side} {self.goal:g} {self.unit}", f"{self.figure:.2f}", "met" if self.met else "missed"]


def of_speed(results: dict[str, Any]) -> Iterator[Goal]:
    """Yield the goals in speed.json."""
    for case in results["training_and_scoring"]:
        for other, goal in case["goals"].items():
            if other in case["ratio"]:
                unit = "of the limit" if other == "limit" else f"x the {other}"
                yield Goal(case["name"], case["ratio"][other], goal, unit)
    for command in results["commands"]:
        if command["goal"] is not None:
            yield Goal(command["name"], median(command["values"]), command["goal"], command["unit"], at_most=True)


def of_peers(results: dict[str, dict[str, dict[str, float]]]) -> Iterator[Goal]:
    """Yield the goals for the figures of peers.json."""
    for (comparison, ours, other), goal in PEERS.items():
        if comparison in results:
            rates = results[comparison]
            yield Goal(f"{comparison}, {ours}", rates[ours]["rate"] / rates[other]["rate"], goal, f"x {other}")
    if "lp" in results:
        unshared = results["lp"]["ours, nothing shared"]
        share = (unshared["ratio"] - 1) / (unshared["bound"] - 1)
        yield Goal("lp, what beginnings in common gain", share, SHARE_OF_GAIN, "of the bound's gain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("reports/bench"))
    folder = parser.parse_args().folder
    table = Table("", "goal", "measured", "", box=None)
    files = sorted(folder.glob("*.json"))
    if not files:
        sys.exit(f"{folder}: no .json file of speed.py or peers.py in there; `make bench` writes them")
    for file in files:
        results = json.loads(file.read_text())
        for goal in of_speed(results) if "training_and_scoring" in results else of_peers(results):
            table.add_row(*goal.row())
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    main()
