"""Compare scores and speed with minicons and lm-evaluation-harness, using the same model and sentences in one process.

    make peers
    python tests/bench/peers.py --size base --text english.txt.xz --benchmark BLIMP


The models are a GPT-2 and a BERT, with 124M and 110M weights in the base size. The weights are random, because speed
and agreement do not depend on them. The programs take turns in rounds, so that other load slows all of them. Our rates
are measured on whole paradigms, whose sentences share beginnings. The peers don't exploit this, so we measure them on a
sample of the same sentences.
"""

import argparse
import itertools
import json
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerBase

sys.path.insert(0, str(Path(__file__).parents[2]))

from corpora.sources.lines import lines
from eval.benchmarks.load import load_benchmark
from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.load import load_scorer
from eval.scorers.masked import MaskedScorer
from eval.scorers.pretrained import load_pretrained
from pairscale.command.compose import compose
from pairscale.progress import with_progress
from tests.support.small_pretrained import byte_level, word_pieces
from train.loop.device import set_up_cpu

PARADIGMS = [
    "adjunct_island", "anaphor_number_agreement", "determiner_noun_agreement_1", "ellipsis_n_bar_1",
    "regular_plural_subject_verb_agreement_1", "superlative_quantifiers_1",
]  # fmt: skip
COMPARISONS = ("lp", "pll")
SIZES = {  # width, layers, heads, and the vocabulary sizes of the causal and the masked model
    "base": (768, 12, 12, 50_257, 30_522),
    "tiny": (32, 2, 2, 500, 500),
}
GOALS = {  # smallest ratio of our speed to a peer's, by comparison and peer, for models of base size
    ("lp", "minicons"): 2.3,
    ("lp", "lm-evaluation-harness"): 1.4,
    ("pll original", "minicons"): 1.5,
    ("pll within_word_l2r", "minicons"): 1.5,
}
console = Console(highlight=False, width=110)


def make(folder: Path, text: list[str], size: str) -> None:
    """Write a GPT-2 to folder/causal and a BERT to folder/masked, with tokenizers fitted to `text`."""
    width, layers, heads, of_causal, of_masked = SIZES[size]
    torch.manual_seed(0)
    causal, masked = byte_level(text, of_causal), word_pieces(text, of_masked)
    gpt2 = GPT2Config(
        vocab_size=len(causal), n_embd=width, n_layer=layers, n_head=heads, bos_token_id=0, eos_token_id=0
    )
    bert = BertConfig(vocab_size=len(masked), hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                      intermediate_size=4 * width)  # fmt: skip
    for name, model, tokenizer in (
        ("causal", GPT2LMHeadModel(gpt2), causal), ("masked", BertForMaskedLM(bert), masked)
    ):  # fmt: skip
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)


@dataclass
class Way:
    """A way to score sentences. `sums` returns each sentence's sum of log-probabilities, in nats."""

    name: str
    sums: Callable[[list[str]], list[float]]
    at_once: int | None = None  # number of sentences per round; None for all


def our_way(name: str, scorer: CausalScorer | MaskedScorer, **policy: str) -> Way:
    config = compose("eval", [f"policy.{key}={value}" for key, value in policy.items()]).policy

    def sums(sentences: list[str]) -> list[float]:
        return [float(score.logprobs.sum()) for score in scorer.score(sentences, config)]

    return Way(name, sums)


def unshared(way: Way, scorer: CausalScorer) -> Way:
    """Return a way that scores like `way`, but doesn't share the beginnings of sentences."""

    def sums(sentences: list[str]) -> list[float]:
        scorer.model.reads_trees = False
        try:
            return way.sums(sentences)
        finally:
            scorer.model.reads_trees = True

    return Way("ours, nothing shared", sums, 1000)


def minicons_way(model: torch.nn.Module, tokenizer: object, pll: str | None, batch: int, at_once: int) -> Way:
    from minicons import scorer as minicons

    total = {"reduction": lambda scores: scores.sum(0).item()}
    if pll:
        # minicons 0.3.39 uses a name that transformers 5 has dropped.
        PreTrainedTokenizerBase.batch_encode_plus = PreTrainedTokenizerBase.__call__
        peer, options = minicons.MaskedLMScorer(model, "cpu", tokenizer=tokenizer), {"PLL_metric": pll}
    else:
        peer, options = minicons.IncrementalLMScorer(model, "cpu", tokenizer=tokenizer), {"bos_token": True}

    def sums(sentences: list[str]) -> list[float]:
        parts = (sentences[start : start + batch] for start in range(0, len(sentences), batch))
        return list(itertools.chain.from_iterable(peer.sequence_score(part, **total, **options) for part in parts))

    return Way("minicons", sums, at_once)


def lm_eval_way(model: torch.nn.Module, tokenizer: object, batch: int, at_once: int) -> Way:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    peer = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch, device="cpu")

    def sums(sentences: list[str]) -> list[float]:
        requests = [Instance("loglikelihood", {}, ("", text), index) for index, text in enumerate(sentences)]
        return [float(total) for total, _ in peer.loglikelihood(requests, disable_tqdm=True)]

    return Way("lm-evaluation-harness", sums, at_once)


def compare(title: str, ways: list[Way], sentences: list[str], equal: int, rounds: int) -> dict[str, dict[str, float]]:
    """Print and return each program's largest difference from the first one's sums (nats), and its sentences/s."""
    order = np.random.default_rng(1).permutation(len(sentences) // 2)
    sample = [sentences[place] for pair in order for place in (2 * pair, 2 * pair + 1)]
    first, *others = ways
    expected = np.asarray(first.sums(sample[:equal]))
    results: dict[str, dict[str, float]] = {first.name: {"difference": 0.0}}
    for way in others:
        results[way.name] = {"difference": float(np.abs(np.asarray(way.sums(sample[:equal])) - expected).max())}
    rates: dict[str, list[float]] = {way.name: [] for way in ways}
    parts = [(way, sentences if way.at_once is None else sample[: way.at_once]) for way in ways]
    turns = [(len(part), (way, part)) for _ in range(rounds) for way, part in parts]
    for way, part in with_progress(turns, title, sum(size for size, _ in turns), "sentences"):
        started = time.perf_counter()
        way.sums(part)
        rates[way.name].append(len(part) / (time.perf_counter() - started))
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("", f"largest difference of {min(equal, len(sample)):,} sums", "sentences/s", "slowest", "fastest",
                    f"{first.name} is faster by", "goal"):  # fmt: skip
        table.add_column(heading, justify="right" if heading else "left")
    for name, rate in rates.items():
        ratio = median(rates[first.name]) / median(rate)
        results[name] |= {"rate": median(rate), "ratio": ratio}
        cells = [f"{median(rate):,.1f}", f"{min(rate):,.1f}", f"{max(rate):,.1f}", f"{ratio:.2f}x"]
        cells.append(f"{GOALS[title, name]:g}" if (title, name) in GOALS else "")
        table.add_row(name, f"{results[name]['difference']:.1e} nats", *cells)
    console.print(table, "")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny", help="size of the models")
    parser.add_argument("--text", type=Path, help="text to fit the tokenizers to (default: the sentences)")
    parser.add_argument("--benchmark", type=Path, help="BLiMP's folder (default: pairs of the toy language)")
    parser.add_argument("--pairs", type=int, help="pairs per paradigm (default: all; small samples share little)")
    parser.add_argument("--equal", type=int, default=1000, help="number of sentences whose sums are compared")
    parser.add_argument("--sample", type=int, default=160, help="sentences per round for the peers")
    parser.add_argument("--batch", type=int, default=32, help="batch size of the peers, in sentences")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=COMPARISONS)
    parser.add_argument("--json", type=Path, help="file to also write the figures to")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # the peers' warnings
    logging.disable(logging.WARNING)
    set_up_cpu(compose("eval", [f"trainer.threads={arguments.threads}"]).trainer)
    overrides = ["benchmark=toy"]
    if arguments.benchmark:
        overrides = ["benchmark=blimp", f"benchmark.path={arguments.benchmark}",
                  f"benchmark.paradigms=[{','.join(PARADIGMS)}]"]  # fmt: skip
    if arguments.pairs:
        overrides.append(f"benchmark.pairs={arguments.pairs}")
    pairs = load_benchmark(compose("eval", overrides).benchmark).pairs
    sentences = pairs[["good", "bad"]].to_numpy().reshape(-1).tolist()  # both sentences of a pair are neighbours
    text = sentences
    if arguments.text:  # a sixth of the text is enough
        text = [line for number, line in lines(arguments.text) if number % 6 == 0 and line.strip()]
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary), text, arguments.size)
        results = run(Path(temporary), sentences, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


def run(folder: Path, sentences: list[str], arguments: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Run the requested comparisons, and return their figures by name."""
    results = {}
    rounds, batch = arguments.rounds, arguments.batch
    equal, at_once = (2 * (count // 2) for count in (arguments.equal, arguments.sample))  # whole pairs
    if "lp" in arguments.only:
        causal = load_scorer(folder / "causal")
        assert isinstance(causal, CausalScorer)
        ours = our_way("ours", causal)
        peers = [
            minicons_way(causal.model.model, causal.tokens.tokenizer, None, batch, at_once),
            lm_eval_way(causal.model.model, causal.tokens.tokenizer, batch, at_once),
        ]
        ways = [ours, unshared(ours, causal), *peers, our_way("ours in bf16", causal, precision="bf16")]
        results["lp"] = compare("lp", ways, sentences, equal, rounds)
    if "pll" in arguments.only:
        config = compose("eval", ["model=hf_masked", f"model.path={folder / 'masked'}"])
        masked = load_pretrained(config.model, Execution.of(config))
        assert isinstance(masked, MaskedScorer)
        for pll in ("original", "within_word_l2r"):
            peer = minicons_way(masked.network.model, masked.tokens.tokenizer, pll, max(1, batch // 4), at_once)
            ways = [replace(our_way("ours", masked, pll=pll), at_once=at_once), peer]
            results[f"pll {pll}"] = compare(f"pll {pll}", ways, sentences, equal, rounds)
    return results


if __name__ == "__main__":
    main()
