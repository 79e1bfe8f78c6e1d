"""Scores and speed compared with minicons and lm-evaluation-harness: same model, same sentences, one process.

    make peers
    python tests/bench/peers.py --make FOLDER --text english.txt.xz      a GPT-2 of 124M, a BERT of 110M
    python tests/bench/peers.py --models FOLDER --benchmark BLIMP [--run RUN]   (--models: else tiny ones)

The weights are random, as speed and agreement do not depend on them. The ways take turns in rounds, so that other load
slows all of them. Our rates are over whole paradigms, whose sentences share beginnings; the peers share none, so a
sample of the same sentences is enough for theirs.
"""

import argparse
import itertools
import json
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

sys.path.insert(0, str(Path(__file__).parents[2]))

from corpora.sources.lines import lines
from corpora.toy import documents
from eval.benchmarks.load import load_benchmark
from eval.library import judge
from eval.methods.templates import templates_of
from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.load import load_scorer
from eval.scorers.masked import MaskedScorer
from eval.scorers.network import TREE_TOKENS
from eval.scorers.pretrained import load_pretrained
from eval.scorers.trees import forests
from pairscale.command.compose import compose
from pairscale.progress import with_progress
from train.loop.device import set_up_cpu

PARADIGMS = [
    "adjunct_island", "anaphor_number_agreement", "determiner_noun_agreement_1", "ellipsis_n_bar_1",
    "regular_plural_subject_verb_agreement_1", "superlative_quantifiers_1",
]  # fmt: skip
COMPARISONS = ("lp", "pll", "lstm", "templates")
SIZES = {  # width, layers, heads, vocabulary
    "base": (768, 12, 12, {"causal": 50_257, "masked": 30_522}),
    "small": (384, 6, 6, {"causal": 8_000, "masked": 8_000}),
    "tiny": (32, 2, 2, {"causal": 500, "masked": 500}),
}
console = Console(highlight=False, width=110)


def make(folder: Path, text: Iterable[str], size: str) -> None:
    """Write a GPT-2 in folder/causal and a BERT in folder/masked, with tokenizers made of `text`."""
    width, layers, heads, vocabulary = SIZES[size]
    text = list(text)
    torch.manual_seed(0)
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokens.train_from_iterator(
        text,
        trainers.BpeTrainer(
            vocab_size=vocabulary["causal"],
            special_tokens=["<|endoftext|>"],
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    end = "<|endoftext|>"
    causal = PreTrainedTokenizerFast(tokenizer_object=tokens, bos_token=end, eos_token=end, unk_token=end)
    causal.save_pretrained(folder / "causal")
    config = GPT2Config(
        vocab_size=len(causal), n_embd=width, n_layer=layers, n_head=heads, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder / "causal")

    tokens = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokens.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokens.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokens.decoder = decoders.WordPiece()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
               "mask_token": "[MASK]"}  # fmt: skip
    tokens.train_from_iterator(
        text,
        trainers.WordPieceTrainer(
            vocab_size=vocabulary["masked"], special_tokens=[*special.values()], show_progress=False
        ),
    )
    tokens.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    masked = PreTrainedTokenizerFast(tokenizer_object=tokens, **special)
    masked.save_pretrained(folder / "masked")
    BertForMaskedLM(
        BertConfig(vocab_size=len(masked), hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                   intermediate_size=4 * width)
    ).save_pretrained(folder / "masked")  # fmt: skip


@dataclass
class Way:
    """One way to score sentences: a sum of log-probabilities (nats) for each; `at_once` of them in a round."""

    name: str
    sums: Callable[[list[str]], list[float]]
    at_once: int | None = None  # None: all sentences


def our_way(name: str, scorer: CausalScorer | MaskedScorer, **policy: str) -> Way:
    config = compose("eval", [f"policy.{key}={value}" for key, value in policy.items()]).policy

    def sums(sentences: list[str]) -> list[float]:
        return [float(score.logprobs.sum()) for score in scorer.score(sentences, config)]

    return Way(name, sums)


def unshared(way: Way, scorer: CausalScorer) -> Way:
    """Return the same way, with each sentence read whole."""

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


def one_by_one_way(scorer: CausalScorer) -> Way:
    """Return a way that reads one sentence at a time with all logits, as the LSTM's authors evaluate it."""
    model, eos = scorer.model.model, 0

    @torch.inference_mode()
    def sums(sentences: list[str]) -> list[float]:
        totals = []
        for sentence in sentences:
            ids, _ = scorer.tokens.tokenizer.encode_raw(sentence)
            sequence = torch.tensor([[eos, *ids, eos]])
            hidden, _ = model(sequence[:, :-1], model.initial_state(1))
            logits = torch.nn.functional.linear(hidden, model.output_weight, model.output_bias)
            totals.append(logits.log_softmax(-1).gather(2, sequence[:, 1:, None]).sum().item())
        return totals

    return Way("one sentence at a time", sums, 300)


def judged_way(name: str, scorer: CausalScorer, method: str, shared: bool, at_once: int | None) -> Way:
    """Return a way to score pairs of neighbouring sentences by a method with templates."""

    def sums(sentences: list[str]) -> list[float]:
        scorer.model.reads_trees = shared
        try:
            rows = judge(scorer, zip(sentences[::2], sentences[1::2], strict=True), [method])
        finally:
            scorer.model.reads_trees = True
        return [*rows["good_score"], *rows["bad_score"]]

    return Way(name, sums, at_once)


def compare(title: str, ways: list[Way], sentences: list[str], equal: int, rounds: int) -> dict[str, dict[str, float]]:
    """Print and return the largest difference of sums from those of the first way, and sentences a second."""
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
                    f"{first.name} is faster by"):  # fmt: skip
        table.add_column(heading, justify="right" if heading else "left")
    for name, rate in rates.items():
        ratio = median(rates[first.name]) / median(rate)
        results[name] |= {"rate": median(rate), "ratio": ratio}
        cells = [f"{median(rate):,.1f}", f"{min(rate):,.1f}", f"{max(rate):,.1f}", f"{ratio:.2f}x"]
        table.add_row(name, f"{results[name]['difference']:.1e} nats", *cells)
    console.print(table, "")
    return results


def print_bound(scorer: CausalScorer, sentences: list[str]) -> float:
    """Print the tokens to read and the softmaxes to compute if every beginning is read once.

    Returns the largest possible speed relative to reading all tokens.
    """
    different = list(dict.fromkeys(sentences))
    texts = [np.asarray([scorer.begin, *ids]) for ids, _ in scorer.tokens.encode(different)]
    total = sum(len(text) - 1 for text in texts)
    parts, bounds = [], []
    for name, capacity in (("one tree of all", total + 1), ("our trees", TREE_TOKENS)):
        batches = list(forests(texts, np.ones(len(texts), np.int64), capacity, max(capacity, scorer.batch_tokens)))
        tokens_read = sum(int((batch.parents >= 0).sum()) + len(batch.tokens) for batch in batches)
        softmaxes = sum(len(np.unique(batch.rows)) for batch in batches)
        bounds.append(total / tokens_read)
        parts.append(f"{name}: {tokens_read / total:.1%} of the tokens read, {softmaxes / total:.1%} of the softmaxes")
    console.print(f"{len(sentences):,} sentences, {total:,} tokens. {'; '.join(parts)}.\n")
    return max(bounds)


def text_lines(file: Path, every: int = 6) -> Iterator[str]:
    """Return a part of a text, enough to fit a tokenizer."""
    return (line for number, line in lines(file) if number % every == 0 and line.strip())


def toy_lines() -> Iterator[str]:
    config = compose("corpora", ["corpus=toy", "corpus.words=200000"]).corpus
    return (sentence for document in documents(config) for sentence in document.sentences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="write models there, and stop")
    parser.add_argument("--size", choices=SIZES, default="base", help="with --make")
    parser.add_argument("--text", type=Path, help="with --make: what tokenizers are made of (else the toy language)")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="with causal/ and masked/ in it")
    parser.add_argument("--benchmark", type=Path, help="BLiMP's folder; else the toy grammar's pairs")
    parser.add_argument("--run", type=Path, help="run folder of an LSTM of ours")
    parser.add_argument("--paradigms", nargs="+", default=PARADIGMS)
    parser.add_argument("--pairs", type=int, help="of each paradigm; all, as a thin sample shares little")
    parser.add_argument("--equal", type=int, default=1000, help="sentences whose sums are compared")
    parser.add_argument("--sample", type=int, default=160, help="sentences of the peers in a round")
    parser.add_argument("--batch", type=int, default=32, help="sentences of the peers at a time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=COMPARISONS, default=COMPARISONS)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # the peers' own
    logging.disable(logging.WARNING)
    set_up_cpu(compose("eval", [f"trainer.threads={arguments.threads}"]).trainer)
    if arguments.make:
        text = text_lines(arguments.text) if arguments.text else toy_lines()
        make(arguments.make, text, arguments.size)
        return
    overrides = ["benchmark=toy"]
    if arguments.benchmark:
        overrides = ["benchmark=blimp", f"benchmark.path={arguments.benchmark}",
                  f"benchmark.paradigms=[{','.join(arguments.paradigms)}]"]  # fmt: skip
    if arguments.pairs:
        overrides.append(f"benchmark.pairs={arguments.pairs}")
    pairs = load_benchmark(compose("eval", overrides).benchmark).pairs
    sentences = pairs[["good", "bad"]].to_numpy().reshape(-1).tolist()  # the two of a pair are neighbours
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.models or Path(temporary)
        if not arguments.models:
            make(folder, sentences, "tiny")
        results = run(folder, sentences, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


def run(folder: Path, sentences: list[str], arguments: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Run the requested comparisons; return their figures by name."""
    results = {}
    rounds, batch = arguments.rounds, arguments.batch
    equal, at_once = (2 * (count // 2) for count in (arguments.equal, arguments.sample))  # whole pairs
    if "lp" in arguments.only:
        causal = load_scorer(folder / "causal")
        assert isinstance(causal, CausalScorer)
        bound = print_bound(causal, sentences)
        ours = our_way("ours", causal)
        peers = [
            minicons_way(causal.model.model, causal.tokens.tokenizer, None, batch, at_once),
            lm_eval_way(causal.model.model, causal.tokens.tokenizer, batch, at_once),
        ]
        ways = [ours, unshared(ours, causal), *peers, our_way("ours in bf16", causal, precision="bf16")]
        results["lp"] = compare("LP of a causal model", ways, sentences, equal, rounds)
        results["lp"]["ours, nothing shared"]["bound"] = bound
    if "pll" in arguments.only:
        config = compose("eval", ["model=hf_masked", f"model.path={folder / 'masked'}"])
        masked = load_pretrained(config.model, Execution.of(config))
        assert isinstance(masked, MaskedScorer)
        for pll in ("original", "within_word_l2r"):
            peer = minicons_way(masked.network.model, masked.tokens.tokenizer, pll, max(1, batch // 4), at_once)
            ways = [replace(our_way("ours", masked, pll=pll), at_once=at_once), peer]
            results[f"pll {pll}"] = compare(f"PLL of a masked model, {pll}", ways, sentences, equal, rounds)
    if "lstm" in arguments.only and arguments.run:
        scorer = load_scorer(arguments.run)
        assert isinstance(scorer, CausalScorer)
        ways = [our_way("ours", scorer, score_eos="true"), one_by_one_way(scorer)]
        results["lstm"] = compare(f"LP of {arguments.run.name}", ways, sentences, equal, rounds)
    if "templates" in arguments.only:
        causal = load_scorer(folder / "causal")
        assert isinstance(causal, CausalScorer)
        templates = templates_of("in_template_lp", "in_template", None, "en").templates
        filled = [template.fill(sentence)[0] for template in templates for sentence in sentences]
        print_bound(causal, [*sentences, *filled])
        for method in ("in_template_lp", "yes_no"):
            ways = [judged_way("ours", causal, method, True, None)]
            ways.append(judged_way("ours, nothing shared", causal, method, False, at_once))
            results[method] = compare(f"{method}, five templates", ways, sentences, min(equal, at_once), rounds)
    return results


if __name__ == "__main__":
    main()
