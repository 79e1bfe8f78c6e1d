"""Share of generated sentences that an independent parser accepts, Debian's link-grammar.

    python -m eval.generate paths.reports=reports
    python tests/bench/parsed_pairs.py reports/generated+en [--pairs 100] [--json OUT]

The folder holds BLiMP-format JSONL, ours or BLiMP's own, one file a paradigm. A sentence is accepted if
link-parser (packages link-grammar, link-grammar-dictionaries-en) links all of its words within --seconds. The parser
knows agreement and the forms of verbs, but not meaning (selection, polarity, quantifiers) and gender: there the two
shares are alike.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

PARSER = "link-parser"
# No null links, no guesses at unknown words; each sentence is repeated, so that verdicts find their sentences.
OPTIONS = ("-null=0", "-spell=0", "-panic=0", "-graphics=0", "-verbosity=1", "-echo=1")
_LINKAGES = re.compile(r"Found \d+ linkages? \((\d+)")  # those without a violation in post-processing


def accepted(sentences: list[str], seconds: int) -> list[bool]:
    """Return True for each sentence of which the parser links all words within `seconds`.

    Raises RuntimeError if its output does not repeat the sentences in order.
    """
    command = [PARSER, "en", *OPTIONS, f"-timeout={seconds}"]
    text = "\n".join(sentences) + "\n"
    output = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    )  # stderr has only its greeting
    lines = output.stdout.splitlines()
    starts = []
    for sentence in sentences:
        try:
            starts.append(lines.index(sentence, starts[-1] + 1 if starts else 0))
        except ValueError:
            raise RuntimeError(f"{PARSER} gave no verdict on '{sentence}'") from None
    verdicts = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        linkages = [match for match in map(_LINKAGES.match, lines[start + 1 : end]) if match]
        verdicts.append(bool(linkages) and int(linkages[0][1]) > 0)
    return verdicts


def shares(folder: Path, pairs: int, seconds: int, seed: int) -> Iterator[dict[str, str | int | float]]:
    """Yield for each paradigm the shares of accepted good and bad sentences, in a random sample of `pairs` pairs."""
    for file in sorted(folder.glob("*.jsonl")):
        items = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        sample = random.Random(f"{seed} {file.stem}").sample(items, min(pairs, len(items)))
        good, bad = (accepted([item[side] for item in sample], seconds) for side in ("sentence_good", "sentence_bad"))
        yield {
            "paradigm": file.stem,
            "phenomenon": sample[0]["linguistics_term"],
            "pairs": len(sample),
            "good": sum(good) / len(sample),
            "bad": sum(bad) / len(sample),
            "only_good": sum(g and not b for g, b in zip(good, bad, strict=True)) / len(sample),
            "only_bad": sum(b and not g for g, b in zip(good, bad, strict=True)) / len(sample),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=5, help="for a sentence")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if shutil.which(PARSER) is None:
        sys.exit(f"{PARSER} is not installed: apt-get install link-grammar link-grammar-dictionaries-en")
    if not list(options.folder.glob("*.jsonl")):
        sys.exit(f"{options.folder}: holds no *.jsonl")
    table = Table("paradigm", "pairs", "good", "bad", "only good", "only bad")
    rows = []
    for row in shares(options.folder, options.pairs, options.seconds, options.seed):
        rows.append(row)
        table.add_row(
            str(row["paradigm"]),
            str(row["pairs"]),
            *(f"{row[name]:.2f}" for name in ("good", "bad", "only_good", "only_bad")),
        )
    Console(highlight=False, width=110).print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), "utf-8")


if __name__ == "__main__":
    main()
