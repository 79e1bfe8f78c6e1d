"""The words that generated pairs may hold: those of a user's file, of a run's own sample, or of a study's smallest.

    the	6124        a word and, after a tab, how often it occurs (optional in a user's file)

A user's file without any capital letter is matched without regard to case; otherwise "the" is not "The".

Words of samples are counted once, into such a file, store/vocabularies/<digest>.tsv, whose first line names the
reference tokenizer. The digest is over all that they depend on: the jobs of a study have one file, in any order.
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from corpora.text import text_manifest
from corpora.word_counts import sample_counts
from corpora.words import words
from eval.benchmarks.config import BenchmarkConfig
from eval.grid import read_grid
from pairscale.errors import ConfigError, InputError, StoreError
from pairscale.files import only_process, sha256_json, write_text
from pairscale.sizes import parse_size
from train.runs.folder import study_runs

REFERENCES = {"en": "treebank", "zh": "jieba"}  # tokenizers of a file that names none
BALANCE = 2.0  # highest ratio of the frequencies of a balanced pair's critical words
_COMES_TRAINED = {"path", "checkpoint"}  # keys of models that are not trained here
_HEAD = re.compile(r"# reference=(\w+): ")


@dataclass(frozen=True)
class Vocabulary:
    """Words as `reference` cuts them, each with how often it occurs (None: unknown).

    cased: "the" is another word than "The"; if False, all words of `counts` are lower-case.
    """

    counts: Mapping[str, int | None]
    reference: str
    cased: bool = True

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the words, their numbers, the reference, and `cased` if False."""
        return sha256_json([self.reference, sorted(self.counts.items()), *([] if self.cased else ["uncased"])])

    def _words(self, text: str) -> list[str]:
        return [word if self.cased else word.lower() for word in words(text, self.reference)]

    def knows(self, form: str) -> bool:
        """Return True if an entry's form may be used, if only at the beginning of a sentence."""
        first, *rest = self._words(form) or [""]
        begins = first in self.counts or first[:1].upper() + first[1:] in self.counts
        return begins and all(word in self.counts for word in rest)

    def unknown_word(self, *sentences: str) -> str | None:
        """Return the first word of the sentences, as it is written there, that is not in the vocabulary."""
        written = (word for sentence in sentences for word in words(sentence, self.reference))
        return next((word for word in written if (word if self.cased else word.lower()) not in self.counts), None)

    def balanced(self, good: str, bad: str) -> bool:
        """Return True if the rarest words that only one of two sentences has are within BALANCE in frequency.

        True also for sentences that differ only in their order. Both sentences are of known words.
        """
        cut = [Counter(self._words(sentence)) for sentence in (good, bad)]
        own = [cut[0] - cut[1], cut[1] - cut[0]]
        if not all(own):
            return not any(own)
        rarest = [min(self.counts[word] or 0 for word in critical) for critical in own]
        return max(rarest) <= BALANCE * min(rarest)


def read_vocabulary(file: Path, language: str, min_count: int | None = None) -> Vocabulary:
    """Read words that occur `min_count` times. Raises InputError, with line, for bad files, ConfigError if none do."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"benchmark.vocabulary={file}: cannot be read ({reason}); run, study, or a file") from None
    head = _HEAD.match(lines[0]) if lines else None
    counts: dict[str, int | None] = {}
    for number, line in enumerate(lines[1:] if head else lines, start=2 if head else 1):
        word, tab, count = line.partition("\t")
        if not word or " " in word or (tab and not count.isdecimal()):
            raise InputError(f"{file}:{number}: must be a word, or a word, a tab and how often it occurs; got {line!r}")
        counts[word] = int(count) if tab else None
    if not counts:
        raise InputError(f"{file}: holds no words")
    frequent = {word: count for word, count in counts.items() if count is None or count >= (min_count or 0)}
    if not frequent:
        raise ConfigError(
            f"benchmark.min_count={min_count}: no word of {file} occurs so often (the most frequent one "
            f"{max(filter(None, counts.values()), default=0)} times)"
        )
    cased = head is not None or any(word != word.lower() for word in counts)  # of samples: as the models read them
    return Vocabulary(frequent, head[1] if head else REFERENCES[language], cased)


def resolved(
    benchmark: BenchmarkConfig, config: Mapping[str, Any], runs: str | Path, store: str | Path
) -> BenchmarkConfig:
    """Return `benchmark` with a file of words, written unless it exists, in place of vocabulary "run" or "study".

    `config`: of the run that is scored, as its folder has it. Raises ConfigError if there is no such sample, StoreError
    if its text is not in the store.
    """
    if benchmark.form != "generated" or benchmark.vocabulary not in ("run", "study"):
        return benchmark
    assert benchmark.min_count is not None
    if benchmark.vocabulary == "run":
        if not _COMES_TRAINED.isdisjoint(config["model"]):
            raise ConfigError(
                f"benchmark.vocabulary=run: {config['model']['name']} was trained on no sample; give study or a file"
            )
        samples = [config]
    else:
        samples = smallest_samples(runs, config.get("study"))
    file = vocabulary_file(samples, benchmark.min_count, Path(store))
    return dataclasses.replace(benchmark, vocabulary=str(file))


def smallest_samples(runs: str | Path, study: str | None) -> list[Mapping[str, Any]]:
    """Return configurations of a study's runs that have its smallest samples, one for each different sample.

    Runs are those that its sweeps requested, trained or not, or else those of its folder. Raises RunError if there is
    no such study, ConfigError if none of its runs has a sample.
    """
    if study is None:
        raise ConfigError("benchmark.vocabulary=study: no study; give study=NAME, or vocabulary=run or a file")
    configs = [requested.config for requested in read_grid(Path(runs) / study).values()]
    if not configs:
        configs = [run.read_config() for run in study_runs(runs, study)]
    trained = [config for config in configs if _COMES_TRAINED.isdisjoint(config["model"])]
    counts = sorted({config["sample"]["count"] for config in trained})
    if len(counts) != 1:
        reason = f"its samples are counted in {' and '.join(counts)}" if counts else "none of its runs has a sample"
        raise ConfigError(f"benchmark.vocabulary=study: study={study}: {reason}; give a file")
    sizes = [parse_size(config["sample"]["size"]) for config in trained]
    smallest = [config for config, size in zip(trained, sizes, strict=True) if size == min(sizes)]
    by_sample = {json.dumps(_identity(config)): config for config in smallest}
    return [by_sample[sample] for sample in sorted(by_sample)]


def _identity(config: Mapping[str, Any]) -> list[Any]:
    """Return what a sample depends on beside its text."""
    corpus = config["corpus"]
    sample = {**config["sample"], "size": parse_size(config["sample"]["size"])}
    return [corpus["name"], corpus.get("filter"), sorted(sample.items()), config["seed"]]


def vocabulary_file(samples: Sequence[Mapping[str, Any]], min_count: int, store: Path) -> Path:
    """Return the file of the words that each sample holds at least `min_count` times, with counts over all samples.

    `samples`: configurations of runs. Raises ConfigError if their words are cut in several ways or there are none.
    """
    references = sorted({config["corpus"]["reference"] for config in samples})
    if len(references) != 1:
        raise ConfigError(f"benchmark.vocabulary: words of samples cut by {' and '.join(references)}; give a file")
    texts = [_text_digest(config["corpus"]["name"], store) for config in samples]
    identity = [min_count, references, sorted(zip(map(_identity, samples), texts, strict=True))]
    file = store / "vocabularies" / f"{sha256_json(identity)[:12]}.tsv"
    if not file.exists():
        with only_process(file.with_name(f".{file.stem}.lock"), file.parent, wait=None):
            if not file.exists():
                write_text(file, _vocabulary_text(samples, min_count, references[0], store))
    return file


def _text_digest(corpus: str, store: Path) -> str:
    folder = store / corpus / "text"
    if not folder.exists():
        raise StoreError(
            f"benchmark.vocabulary: the text of corpus={corpus} is not in {store} (paths.store); prepare it "
            f"(python -m corpora corpus={corpus}), or give vocabulary=FILE, or null"
        )
    return str(text_manifest(folder)["digest"])


def _vocabulary_text(samples: Sequence[Mapping[str, Any]], min_count: int, reference: str, store: Path) -> str:
    counts = [sample_counts(config, None, store, reference).of for config in samples]
    shared = {word for word in min(counts, key=len) if all(of[word] >= min_count for of in counts)}
    if not shared:
        raise ConfigError(f"benchmark.min_count={min_count}: no word occurs so often in each sample")
    several = f"each of {len(samples)} samples" if len(samples) > 1 else "a sample"
    size = f"of {samples[0]['sample']['size']} {samples[0]['sample']['count']}"
    head = f"# reference={reference}: words that {several} {size} holds at least {min_count} times"
    totals = sorted((-sum(of[word] for of in counts), word) for word in shared)
    return "\n".join([head, *(f"{word}\t{-total}" for total, word in totals)]) + "\n"
