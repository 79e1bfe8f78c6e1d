"""The words that generated pairs may hold: those of a user's file, of a run's own sample, or of a study's smallest.

    the	6124        a word and, after a tab, how often it occurs (in a file of one's own the number may lack)

A file of one's own without any capital letter is matched without regard to case; otherwise "the" is not "The".

What samples hold is counted once and kept as such a file, store/vocabularies/<digest>.tsv, whose first line names the
reference tokenizer that cut the words; the digest is over all that the words depend on, so every job of a study, in
whatever order they run, has the same file, and `benchmark.vocabulary` can name it.
"""

from __future__ import annotations

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
from pairscale.errors import ConfigError, InputError, StoreError
from pairscale.files import only_process, sha256_json, write_text
from pairscale.sizes import parse_size
from train.runs.folder import study_runs
from train.runs.grid import read_grid

REFERENCES = {"en": "treebank", "zh": "jieba"}  # what cut the words of a file that does not say it
BALANCE = 2.0  # how many times more frequent one critical word of a balanced pair may be than the other
_COMES_TRAINED = {"path", "checkpoint"}  # keys that only models have which were trained on no sample of ours
_HEAD = re.compile(r"# reference=(\w+): ")


@dataclass(frozen=True)
class Vocabulary:
    """Words as they are written in sentences that `reference` cuts; how often each occurs, where that is known.

    cased: whether "the" is another word than "The"; if not, all words of `counts` are lower-case.
    """

    counts: Mapping[str, int | None]
    reference: str
    cased: bool = True

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the words, their numbers and the reference, and that case is no matter if so."""
        return sha256_json([self.reference, sorted(self.counts.items()), *([] if self.cased else ["uncased"])])

    def _words(self, text: str) -> list[str]:
        """The words of a text as `counts` would have them."""
        return [word if self.cased else word.lower() for word in words(text, self.reference)]

    def knows(self, form: str) -> bool:
        """Whether an entry's form may be used, be it at the beginning of a sentence alone."""
        first, *rest = self._words(form) or [""]
        begins = first in self.counts or first[:1].upper() + first[1:] in self.counts
        return begins and all(word in self.counts for word in rest)

    def lacks(self, *sentences: str) -> str | None:
        """The first word of all sentences, as it is written there, that is not in it."""
        found = (word for sentence in sentences for word in words(sentence, self.reference))
        return next((word for word in found if (word if self.cased else word.lower()) not in self.counts), None)

    def balanced(self, good: str, bad: str) -> bool:
        """Whether the rarest words that only one of two sentences has are within BALANCE in frequency.

        Sentences that differ only in their order have none, and are. Both sentences are of known words.
        """
        cut = [Counter(self._words(sentence)) for sentence in (good, bad)]
        own = [cut[0] - cut[1], cut[1] - cut[0]]
        if not all(own):
            return not any(own)
        rarest = [min(self.counts[word] or 0 for word in found) for found in own]
        return max(rarest) <= BALANCE * min(rarest)


def read_vocabulary(file: Path, language: str, min_count: int | None = None) -> Vocabulary:
    """Read the words of a file, those that say how often they occur only from `min_count` times on.

    Raises InputError, with the line, for what is no such file, ConfigError where no word occurs so often.
    """
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
    kept = {word: count for word, count in counts.items() if count is None or count >= (min_count or 0)}
    if not kept:
        raise ConfigError(
            f"benchmark.min_count={min_count}: no word of {file} occurs so often (the most frequent one "
            f"{max(filter(None, counts.values()), default=0)} times)"
        )
    cased = head is not None or any(word != word.lower() for word in counts)  # of samples: as the models read them
    return Vocabulary(kept, head[1] if head else REFERENCES[language], cased)


def resolved(
    benchmark: BenchmarkConfig, config: Mapping[str, Any], runs: str | Path, store: str | Path
) -> BenchmarkConfig:
    """`benchmark` with the file of its vocabulary in place of "run" and "study"; that file is made unless it is there.

    `config`: of the run that is scored, as its folder has it. Raises ConfigError where there is no such sample, and
    StoreError where its text is not in the store.
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
    """Configurations of the runs of a study that have its smallest samples, one for each different sample.

    They are those that its sweeps asked for, trained or not; where none did, those of the run folders. Raises RunError
    where there is no such study, ConfigError where none of its runs has a sample.
    """
    if study is None:
        raise ConfigError("benchmark.vocabulary=study: no study; give study=NAME, or vocabulary=run or a file")
    configs = [asked.config for asked in read_grid(Path(runs) / study).values()]
    if not configs:
        configs = [run.read_config() for run in study_runs(runs, study)]
    trained = [config for config in configs if _COMES_TRAINED.isdisjoint(config["model"])]
    counts = sorted({config["sample"]["count"] for config in trained})
    if len(counts) != 1:
        told = f"its samples are counted in {' and '.join(counts)}" if counts else "none of its runs has a sample"
        raise ConfigError(f"benchmark.vocabulary=study: study={study}: {told}; give a file")
    sizes = [parse_size(config["sample"]["size"]) for config in trained]
    smallest = [config for config, size in zip(trained, sizes, strict=True) if size == min(sizes)]
    return [found for _, found in sorted({json.dumps(_identity(config)): config for config in smallest}.items())]


def _identity(config: Mapping[str, Any]) -> list[Any]:
    """What a sample depends on beside its text."""
    corpus = config["corpus"]
    sample = {**config["sample"], "size": parse_size(config["sample"]["size"])}
    return [corpus["name"], corpus.get("filter"), sorted(sample.items()), config["seed"]]


def vocabulary_file(samples: Sequence[Mapping[str, Any]], min_count: int, store: Path) -> Path:
    """The file of the words that each of `samples` holds at least `min_count` times, with how often all together do.

    `samples`: configurations of runs. Raises ConfigError where their words are cut in several ways or there are none.
    """
    references = sorted({config["corpus"]["reference"] for config in samples})
    if len(references) != 1:
        raise ConfigError(f"benchmark.vocabulary: words of samples cut by {' and '.join(references)}; give a file")
    texts = []
    for config in samples:
        folder = store / config["corpus"]["name"] / "text"
        if not folder.exists():
            raise StoreError(
                f"benchmark.vocabulary: the text of corpus={config['corpus']['name']} is not in {store} (paths.store); "
                f"prepare it (python -m corpora corpus={config['corpus']['name']}), or give vocabulary=FILE, or null"
            )
        texts.append(text_manifest(folder)["digest"])
    described = [min_count, references, sorted(zip(map(_identity, samples), texts, strict=True))]
    file = store / "vocabularies" / f"{sha256_json(described)[:12]}.tsv"
    if not file.exists():
        with only_process(file.with_name(f".{file.stem}.lock"), file.parent, wait=None):
            if not file.exists():
                counted = [sample_counts(config, None, store, references[0]).of for config in samples]
                least = min(counted, key=len)
                held = {word for word in least if all(of[word] >= min_count for of in counted)}
                if not held:
                    raise ConfigError(f"benchmark.min_count={min_count}: no word occurs so often in each sample")
                several = f"each of {len(samples)} samples" if len(samples) > 1 else "a sample"
                size = f"of {samples[0]['sample']['size']} {samples[0]['sample']['count']}"
                head = f"# reference={references[0]}: words that {several} {size} holds at least {min_count} times"
                totals = sorted(((sum(of[word] for of in counted), word) for word in held), key=lambda x: (-x[0], x[1]))
                write_text(file, "\n".join([head, *(f"{word}\t{total}" for total, word in totals)]) + "\n")
    return file
