"""The words that generated pairs may hold: those of a user's file, of a run's own sample, or of a study's smallest.

    the	6124        a word and, after a tab, how often it occurs (optional in a user's file)

A user's file without any capital letter is matched without regard to case; otherwise "the" is not "The".

Words of samples are counted once, into such a file, store/vocabularies/<digest>.tsv, whose first line names the
reference tokenizer. The digest is over all that they depend on: the jobs of a study have one file, in any order.
"""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.text import text_manifest
from corpora.word_counts import sample_again, sample_counts
from corpora.words import words
from eval.benchmarks.config import SAMPLES, BenchmarkConfig
from pairscale.errors import ConfigError, InputError, StoreError
from pairscale.files import sha256_json, write_text
from pairscale.sizes import parse_size
from train.runs.folder import study_runs
from train.sweeps import read_grid

REFERENCES = {"en": "treebank", "zh": "jieba"}  # tokenizers of a file that names none


@dataclass(frozen=True)
class Vocabulary:
    """Words as `reference` cuts them, each with how often it occurs (None: unknown).

    cased: "the" is another word than "The"; if False, all words of `counts` are lower-case.
    """

    counts: Mapping[str, int | None]
    reference: str
    cased: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 over the words, their numbers, the reference, and `cased` if False."""
        return sha256_json([self.reference, sorted(self.counts.items()), *([] if self.cased else ["uncased"])])

    def knows(self, form: str) -> bool:
        """Return True if an entry's form may be used, if only at the beginning of a sentence."""
        return self.unknown_word(form) is None or self.unknown_word(form[:1].upper() + form[1:]) is None

    def unknown_word(self, *sentences: str) -> str | None:
        """Return the first word of the sentences, as it is written there, that is not in the vocabulary."""
        written = (word for sentence in sentences for word in words(sentence, self.reference))
        return next((word for word in written if (word if self.cased else word.lower()) not in self.counts), None)


def read_vocabulary(file: Path, language: str, min_count: int | None = None) -> Vocabulary:
    """Read words that occur `min_count` times. Raises InputError, with line, for bad files, ConfigError if none do."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"benchmark.vocabulary={file}: cannot be read ({error}); run, study, or a file") from None
    head = re.match(r"# reference=(\w+): ", lines[0]) if lines else None
    counts: dict[str, int | None] = {}
    for number, line in enumerate(lines[bool(head) :], start=1 + bool(head)):
        word, tab, count = line.partition("\t")
        if not word or " " in word or (tab and not count.isdecimal()):
            raise InputError(f"{file}:{number}: must be a word, or a word, a tab and how often it occurs; got {line!r}")
        counts[word] = int(count) if tab else None
    frequent = {word: count for word, count in counts.items() if count is None or count >= (min_count or 0)}
    if not frequent:
        raise ConfigError(f"benchmark.min_count={min_count}: no word of {file} occurs so often")
    cased = head is not None or any(word != word.lower() for word in counts)  # of samples: as the models read them
    return Vocabulary(frequent, head[1] if head else REFERENCES[language], cased)


def resolved(
    benchmark: BenchmarkConfig, config: Mapping[str, Any], runs: str | Path, store: str | Path
) -> BenchmarkConfig:
    """Return `benchmark` with a file of words, written unless it exists, in place of vocabulary "run" or "study".

    `config`: of the run that is scored, as its folder has it. Raises ConfigError if there is no such sample, StoreError
    if its text is not in the store.
    """
    if benchmark.form != "generated" or benchmark.vocabulary not in SAMPLES:
        return benchmark
    samples = [config] if benchmark.vocabulary == "run" else smallest_samples(runs, config.get("study"))
    if not _is_trained(samples[0]):
        raise ConfigError(
            f"benchmark.vocabulary=run: {config['model']['name']} was trained on no sample; give study or a file"
        )
    assert benchmark.min_count is not None
    return dataclasses.replace(benchmark, vocabulary=str(_vocabulary_file(samples, benchmark.min_count, Path(store))))


def _is_trained(config: Mapping[str, Any]) -> bool:
    """Return True for a run that is trained on a sample, False for a model that comes trained."""
    return {"path", "checkpoint"}.isdisjoint(config["model"])


def smallest_samples(runs: str | Path, study: str | None) -> list[Mapping[str, Any]]:
    """Return configurations of a study's runs that have its smallest samples, one for each different sample.

    Runs are those that its sweeps requested, trained or not, or else those of its folder. Raises RunError if there is
    no such study, ConfigError if none of its runs has a sample.
    """
    if study is None:
        raise ConfigError("benchmark.vocabulary=study: no study; give study=NAME, or vocabulary=run or a file")
    configs = [requested.config for requested in read_grid(Path(runs) / study).values()]
    configs = configs or [run.read_config() for run in study_runs(runs, study)]
    by_sample = {json.dumps(_sample_of(config)): config for config in configs if _is_trained(config)}
    if len({config["sample"]["count"] for config in by_sample.values()}) != 1:
        raise ConfigError(f"benchmark.vocabulary=study: study={study} has no samples counted in one unit; give a file")
    sizes = {sample: parse_size(config["sample"]["size"]) for sample, config in sorted(by_sample.items())}
    return [by_sample[sample] for sample, size in sizes.items() if size == min(sizes.values())]


def _sample_of(config: Mapping[str, Any]) -> list[Any]:
    """Return what a sample depends on beside its text and an annotation of it."""
    corpus, ablation = config["corpus"], [config.get("filter"), config.get("ablate")] if config.get("filter") else None
    sample = {**config["sample"], "size": parse_size(config["sample"]["size"])}
    text = [corpus["name"], corpus["reference"], corpus.get("domains")]
    return [*text, ablation, sorted(sample.items()), config["seed"]]


def _vocabulary_file(samples: Sequence[Mapping[str, Any]], min_count: int, store: Path) -> Path:
    """Return the file of the words that each sample holds at least `min_count` times, with counts over all samples.

    `samples`: configurations of runs. Raises ConfigError if their words are cut in several ways or there are none.
    """
    reference, *others = {config["corpus"]["reference"] for config in samples}
    if others:
        raise ConfigError("benchmark.vocabulary: the words of the samples are cut in several ways; give a file")
    identity: list[Any] = [min_count, reference]
    for config in samples:
        corpus = config["corpus"]["name"]
        if not (folder := store / corpus / "text").exists():
            raise StoreError(
                f"benchmark.vocabulary: the text of corpus={corpus} is not in {store}; prepare it (python -m corpora "
                f"corpus={corpus}), or give vocabulary=FILE, or null"
            )
        # Of the words themselves, as a text, and an annotation that an ablation searches, can be made again.
        identity.append([text_manifest(folder)["digest"], sample_again(config, None, store).drawn.digest])
    file = store / "vocabularies" / f"{sha256_json(identity)[:12]}.tsv"
    if not file.exists():  # two processes may write it at once, and write the same
        counts = [sample_counts(config, None, store, reference) for config in samples]
        shared = [word for word in counts[0] if min(of[word] for of in counts) >= min_count]
        if not shared:
            raise ConfigError(f"benchmark.min_count={min_count}: no word occurs so often in each sample")
        totals = sorted((-sum(of[word] for of in counts), word) for word in shared)
        head = f"# reference={reference}: words that each of {len(samples)} samples holds at least {min_count} times"
        write_text(file, "\n".join([head, *(f"{word}\t{-total}" for total, word in totals)]) + "\n")
    return file
