"""Words a second of surprisals: ours beside minicons and surprisal (PyPI), by a GPT-2 of 124M random weights.

    python tests/bench/word_surprisals.py --text FILE [--words N] [--rounds N] [--threads N]

All read the same lines of the text (one of tests/bench/peers.py's) in turns, after a first round that does not count;
speeds are medians of the rounds. Ours has entropies, ranks and the correction too, the others surprisals of tokens
alone. `make peers` installs minicons, `pip install surprisal` the other; one that is missing is left out.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from corpora.sources.lines import lines
from eval import load_scorer, surprisals
from tests.bench.peers import make

Read = Callable[[Sequence[str]], object]


def ours(folder: str) -> Read:
    scorer = load_scorer(folder)
    return lambda texts: surprisals(scorer, texts)


def minicons(folder: str) -> Read:
    from minicons.scorer import IncrementalLMScorer

    scorer = IncrementalLMScorer(folder, "cpu")

    def read(texts: Sequence[str]) -> object:
        batches = [texts[start : start + 32] for start in range(0, len(texts), 32)]
        return [scorer.token_score(batch, surprisal=True, base_two=True, bos_token=True) for batch in batches]

    return read


def surprisal(folder: str) -> Read:
    from surprisal import AutoHuggingFaceModel

    model = AutoHuggingFaceModel.from_pretrained(folder, model_class="causal")
    return lambda texts: [model.surprise(list(texts[start : start + 32])) for start in range(0, len(texts), 32)]


TOOLS: dict[str, Callable[[str], Read]] = {"ours": ours, "minicons": minicons, "surprisal": surprisal}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--words", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    text = [line.strip() for _, line in lines(options.text) if line.strip()]
    texts, words = [], 0
    for line in text:
        if words < options.words:
            texts.append(line)
            words += len(line.split())
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), text, "base")
        tools = {name: load(f"{folder}/causal") for name, load in TOOLS.items() if name == "ours" or find_spec(name)}
        seconds: dict[str, list[float]] = {name: [] for name in tools}
        for number in range(options.rounds + 1):
            for name, read in tools.items():
                start = time.monotonic()
                read(texts)
                seconds[name] += [time.monotonic() - start] if number else []
    speeds = {name: words / statistics.median(of) for name, of in seconds.items()}
    for name, speed in speeds.items():
        print(f"{name:>10} {speed:8,.0f} words/s, ours {speeds['ours'] / speed:.2f} times as fast")


if __name__ == "__main__":
    main()
