"""Put small faults (mutants) into the code one at a time, and check that its tests catch them.

    python tests/bench/mutants.py --count 200 [--areas samples scorers] [--repository FOLDER] [--table mutants.csv]

A mutant changes one operator, comparison, condition or whole number in a module of AREAS. It is caught if a test of the
area fails, or if the tests take longer than `--limit` seconds. For the same code, the same seed draws the same mutants.
Each row of the table is a mutant. Run the command again to continue. Mutants that aren't caught are printed.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from rich.progress import track

AREAS = {  # files and folders of code, and of the tests that guard them
    "samples": (
        ["corpora/samples.py"],
        [f"tests/corpora/test_{name}.py" for name in ("samples", "domains", "shuffling")],
    ),
    "store": (
        ["corpora/store.py", "corpora/text.py"],
        [f"tests/corpora/test_{name}.py" for name in ("store", "sources", "samples", "domains", "together")],
    ),
    "batches": (["train/loop/batches.py"], ["tests/train/loop/test_batches.py", "tests/train/loop/test_perplexity.py"]),
    "resume": (["train/loop/state.py", "train/loop/snapshots.py"], ["tests/train/loop"]),
    "scorers": (["eval/scorers"], ["tests/eval/scorers", "tests/eval/surprisal", "tests/eval/diagnostics"]),
    "methods": (["eval/methods"], ["tests/eval/methods", "tests/eval/ratings/test_ratings_run.py"]),
    "curves": (
        ["analysis/curves"],
        [
            f"tests/analysis/test_{name}.py"
            for name in ("curves", "comparisons", "units", "shapes", "ablations", "acquisition")
        ],
    ),
}
SWAPPED: dict[Any, Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changes(tree: ast.Module) -> Iterator[tuple[Any, str]]:
    """Yield each place of a module that can be changed, and a description of the change."""
    for node in ast.walk(tree):
        operator = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
        if type(operator) in SWAPPED:
            yield node, f"{type(operator).__name__} becomes {SWAPPED[type(operator)].__name__}"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, f"{node.value} becomes {node.value + 1}"
        elif isinstance(node, (ast.If, ast.IfExp)):
            yield node, "the condition is negated"


def mutated(source: str, number: int) -> tuple[str, int, str]:
    """Apply change number `number` to a module. Return the new source, the line of the change and its description."""
    tree = ast.parse(source)
    node, change = list(changes(tree))[number]
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        node.op = SWAPPED[type(node.op)]()
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, (ast.If, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    return ast.unparse(tree), getattr(node, "lineno", 0), change


def drawn(repository: Path, areas: list[str], count: int, seed: int) -> Iterator[tuple[str, Path, int]]:
    """Yield the area, module and number of `count` changes, with equally many per area."""
    for area in areas:
        modules = [repository / name for name in AREAS[area][0]]
        files = sorted(file for of in modules for file in ([of] if of.is_file() else of.rglob("*.py")))
        places = [(file, n) for file in files for n, _ in enumerate(changes(ast.parse(file.read_text("utf-8"))))]
        for file, n in random.Random(f"{seed}:{area}").sample(places, min(len(places), count // len(areas))):
            yield area, file.relative_to(repository), n


def caught(copy: Path, area: str, limit: float) -> bool:
    """Return True if a test of an area fails in a copy of the repository."""
    tests = [name for name in AREAS[area][1] if (copy / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not slurm"]
    try:
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([*command, *tests], cwd=copy, env=environment, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--repository", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--table", type=Path, default=Path("mutants.csv"))
    arguments = parser.parse_args()
    key = ["area", "file", "number"]
    rows: list[Any] = pd.read_csv(arguments.table).to_dict("records") if arguments.table.exists() else []
    known = {tuple(row[name] for name in key) for row in rows}
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        for file in subprocess.check_output(["git", "ls-files", "-z"], cwd=arguments.repository, text=True).split("\0"):
            if (source_file := arguments.repository / file).is_file():  # because a tracked file may have been deleted
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source_file, copy / file)
        for area in arguments.areas:
            if caught(copy, area, arguments.limit):
                sys.exit(f"{area}: the tests of this area fail even without a mutant. Repair them first.")
        todo = list(drawn(copy, arguments.areas, arguments.count, arguments.seed))
        for area, file, number in track(todo, "mutants"):
            if (area, str(file), number) in known:
                continue
            source = (copy / file).read_text("utf-8")
            text, line, change = mutated(source, number)
            (copy / file).write_text(text, "utf-8")
            outcome = caught(copy, area, arguments.limit)
            (copy / file).write_text(source, "utf-8")
            rows.append({"area": area, "file": str(file), "number": number, "line": line, "change": change})
            rows[-1]["caught"] = outcome
            pd.DataFrame(rows).to_csv(arguments.table, index=False, lineterminator="\n")
    table = pd.DataFrame(rows)
    print(table[~table["caught"]].to_string(index=False))
    print(table.groupby("area")["caught"].agg(["mean", "size"]).to_string())


if __name__ == "__main__":
    main()
