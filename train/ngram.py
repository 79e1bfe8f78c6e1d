"""Train and query n-gram models. KenLM counts and smooths them and stores them in its binary format.

    model.kenlm      KenLM's trie: n-grams with their log10 probabilities and back-off weights
    pairscale.json   as for every model (train/runs/model_folder.py), with the number of n-grams of each order
    tokenizer/       the files of corpora.tokenizers

The model's words are the tokens of the run's tokenizer, including `<unk>`, which replaces words outside
the vocabulary. Words of the vocabulary that the sample lacks share the remaining probability evenly (each gets
the probability of KenLM's own <unk>). So probabilities sum to 1, or slightly less if the sample has all words.
"""

import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import kenlm
import numpy as np
import numpy.typing as npt

from corpora.prepare import Corpus, HeldOut, SampleTokens
from corpora.tokenizers import EOS, UNK, Tokenizer, tokenizer_digest
from pairscale.errors import RunError
from pairscale.files import atomic_path, sha256_file, writing
from train.config import RunConfig, config_digest
from train.lmplz import Programs, find_programs, run_program
from train.loop.perplexity import Perplexity
from train.models.config import NgramConfig
from train.runs.folder import AGAIN, DONE, MetricsFile, ModelFolder, RunFolder
from train.runs.model_folder import (
    NGRAM,
    check_weights,
    described_config,
    described_tokenizer,
    read_description,
    write_description,
)
from train.runs.provenance import cost, machine

LN10 = math.log(10)
CHUNK = 1_000_000  # tokens written to the text for lmplz at a time

_WORKPLACE = "estimation-"
_SPECIAL = {"<s>", "</s>", "<unk>", "<UNK>"}  # words that KenLM treats specially


@dataclass(frozen=True)
class Ngram:
    """An n-gram model for scoring."""

    model: Any  # kenlm.Model
    tokenizer: Tokenizer
    words: list[str]  # KenLM's word for each token
    config: NgramConfig
    info: dict[str, Any]
    ngrams: list[int]  # number of n-grams of each order, starting with 1
    digest: str  # SHA-256 of model.kenlm
    tokenizer_digest: str

    def read(self, tokens: Iterable[int]) -> tuple[list[float], Any]:
        """Return log10 p of each token given `<s>` and the tokens before it, and KenLM's state after the last one.

        `<eos>` ends a sentence. If two states are equal, any continuation has the same probability after both.
        """
        words, score = self.words, self.model.BaseScore
        before, after = kenlm.State(), kenlm.State()
        self.model.BeginSentenceWrite(before)
        log10 = []
        for token in tokens:
            log10.append(score(before, words[token], after))
            before, after = after, before
        return log10, before

    def logprobs(self, tokens: Iterable[int]) -> list[float]:
        """Return ln p in nats of each token of a sentence, given `<s>` and the tokens before it."""
        return [LN10 * log10 for log10 in self.read(tokens)[0]]

    def state(self, tokens: Iterable[int]) -> Any:
        """Return KenLM's state after `<s>` and `tokens`."""
        return self.read(tokens)[1]

    def next_logprobs(self, state: Any) -> npt.NDArray[np.float32]:
        """Return ln p (V,) in nats of every token after `state`."""
        score, after = self.model.BaseScore, kenlm.State()
        log10 = np.fromiter((score(state, word, after) for word in self.words), np.float32, len(self.words))
        return log10 * np.float32(LN10)


def train_ngram(config: RunConfig, corpus: Corpus, folder: RunFolder) -> None:
    """Estimate a run's n-gram model and measure its perplexity.

    Raises ConfigError if KenLM's programs are missing, and RunError if they fail.
    """
    assert isinstance(config.model, NgramConfig)
    programs = find_programs(config.model.lmplz)
    sample = corpus.sample()
    held_out = corpus.held_out("valid", config.recipe.validation_words)
    info: dict[str, Any] = {
        "sample_words": sample.words,
        "sample_digest": sample.digest,
        "config_digest": config_digest(config),
    }
    folder.update_manifest(
        **info,
        vocabulary=len(corpus.tokenizer),
        tokens=len(sample.tokens),
        corpus=corpus.manifest,
        machine=machine("cpu", os.cpu_count() or 1),
        lmplz=programs.describe(),
    )
    started = time.monotonic()
    words = kenlm_words(corpus.tokenizer)
    ngrams, substituted = _estimate(programs, config.model, sample, words, folder)
    corpus.tokenizer.save(folder.model.tokenizer)
    digests = sha256_file(folder.model.ngrams), tokenizer_digest(folder.model.tokenizer)
    model = _opened(folder.model.ngrams, config.model.order)
    perplexity = measure(Ngram(model, corpus.tokenizer, words, config.model, info, ngrams, *digests), held_out)
    info |= {"step": 1, "words_seen": sample.words, **perplexity.metrics()}
    write_description(folder.model, config.model, len(words), info, digests[0], kind=NGRAM, ngrams=ngrams)
    metrics = MetricsFile(folder.metrics)
    metrics.forget_after(0)
    metrics.add(1, {"words_seen": sample.words, "epoch": 1.0, **perplexity.metrics()})
    metrics.write()
    seconds = time.monotonic() - started
    folder.update_manifest(
        status=DONE,
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
        parameters=sum(ngrams),
        ngrams=ngrams,
        fallback_discounts=substituted,
        words_seen=sample.words,
        words_per_s=round(sample.words / seconds),
        wall_s=round(seconds, 1),
        cost=cost({}, seconds, "cpu", 1, 1),
        export=config.recipe.export,
        last=perplexity.metrics(),
        best_nats_per_word=perplexity.nats / perplexity.words,
    )


def kenlm_words(tokenizer: Tokenizer) -> list[str]:
    """Return KenLM's word for each token: the token itself, or its bytes in hexadecimal if KenLM can't read it."""
    words = [_kenlm_word(tokenizer.token(index)) for index in range(len(tokenizer))]
    words[EOS], words[UNK] = "</s>", "\\unk"
    return words


def _kenlm_word(token: str) -> str:
    # KenLM splits text only at bytes up to the space. For example, it treats a NO-BREAK SPACE as a letter.
    plain = token and token not in _SPECIAL and token[0] != "\\" and min(token) > " "
    return token if plain else "\\" + token.encode().hex()


def _estimate(
    programs: Programs, config: NgramConfig, sample: SampleTokens, words: list[str], folder: RunFolder
) -> tuple[list[int], list[int]]:
    """Write model.kenlm. Return the number of n-grams of each order, and the orders that use fallback discounts."""
    options = ["--order", config.order, "--prune", *config.prune, "--vocab_pad", len(words)]
    if config.discount_fallback is not None:
        options += ["--discount_fallback", *config.discount_fallback]
    with _workplace(folder.path) as place:
        text, arpa, binary = place / "text.txt", place / "model.arpa", place / "model.kenlm"
        _write_text(text, sample.tokens, words)
        sorting = ["-T", f"{place}/", "-S", config.lmplz_memory]
        output = run_program([programs.lmplz, *sorting, *map(str, options), "--text", text, "--arpa", arpa])
        with arpa.open(encoding="utf-8") as file:  # the header has lines such as "ngram 2=382094"
            ngrams = [int(count) for count in re.findall(r"^ngram \d+=(\d+)$", file.read(1000), re.MULTILINE)]
        run_program([programs.build_binary, *sorting, "trie", arpa, binary])
        folder.model.path.mkdir(exist_ok=True)
        with atomic_path(folder.model.ngrams) as temporary:
            binary.rename(temporary)
    return ngrams, [int(order) + 1 for order in re.findall(r"fallback discounts for order (\d)", output)]


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """Yield an empty folder for large files, and remove it at the end.

    Each has a new name, because KenLM's programs outlive a killed process and must not write to the next one's files.
    """
    for place in folder.glob(f"{_WORKPLACE}*"):  # left by a killed process
        shutil.rmtree(place, ignore_errors=True)
    with writing(folder), tempfile.TemporaryDirectory(prefix=_WORKPLACE, dir=folder) as name:
        yield Path(name)


def _write_text(path: Path, tokens: Any, words: Sequence[str]) -> None:
    """Write the sample in KenLM's words, one sentence per line."""
    spelled = [f"{word} " for word in words]
    spelled[EOS] = "\n"
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, len(tokens), CHUNK):
            file.write("".join(map(spelled.__getitem__, tokens[start : start + CHUNK].tolist())))


def load_ngram(folder: ModelFolder) -> Ngram:
    """Load a model that `train_ngram` wrote. Raises RunError if it is damaged.

    The digest is checked first, because KenLM trusts the offsets in its file.
    """
    description = read_description(folder, (NGRAM,))
    digest = check_weights(folder.ngrams, description)
    tokenizer, own_digest = described_tokenizer(folder, description)
    config = described_config(folder, description, NgramConfig)
    model, words = _opened(folder.ngrams, config.order), kenlm_words(tokenizer)
    info = cast(dict[str, Any], description["info"])
    return Ngram(model, tokenizer, words, config, info, description.get("ngrams", []), digest, own_digest)


def _opened(path: Path, order: int) -> Any:
    """Open a KenLM model. Raises a one-line RunError if it is damaged or of another order."""
    try:
        model = kenlm.Model(str(path))
    except OSError as error:
        raise RunError(f"{path}: KenLM can't read this file ({' '.join(str(error).split())[:300]}). {AGAIN}.") from None
    if model.order != order:
        raise RunError(f"{path}: this n-gram model has order {model.order} instead of {order}. {AGAIN}.")
    return model


def measure(ngram: Ngram, held_out: HeldOut) -> Perplexity:
    """Return the perplexity on held-out text. Each sentence starts after `<s>`, so no n-gram spans two sentences."""
    tokens = held_out.tokens.astype(np.int64)
    nats = []
    for sentence in np.split(tokens, np.flatnonzero(tokens == EOS) + 1):
        nats += ngram.logprobs(sentence.tolist())
    losses = -np.asarray(nats)
    return Perplexity(
        nats=float(losses.sum()),
        eos_nats=float(losses[tokens == EOS].sum()),
        unk_nats=float(losses[tokens == UNK].sum()),
        words=held_out.words,
        sentences=held_out.sentences,
        tokens=len(tokens) - held_out.sentences,
        unk=held_out.unk,
    )
