"""Read the words for generated pairs from a user's file, a run's sample, or a study's smallest samples.

    the	6124        a word and, after a tab, its count (optional in a user's file)

If a user's file has no capital letters, case is ignored. Otherwise, "the" and "The" are different words.

The words of samples are counted once and written to such a file, store/vocabularies/<digest>.tsv. Its first line names
the reference tokenizer. The digest covers everything that the words depend on, so all jobs of a study use the same
file, in any order.
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

REFERENCES = {"en": "treebank", "zh": "jieba"}  # reference tokenizers for files that don't name one


@dataclass(frozen=True)
class Vocabulary:
    """A set of words, as split by a reference tokenizer."""

    counts: Mapping[str, int | None]  # number of times that each word occurs; None if unknown
    reference: str  # the reference tokenizer
    cased: bool = True  # whether case matters; if False, all words of `counts` are lower-case

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the words, their counts, the reference tokenizer, and `cased` if it is False."""
        return sha256_json([self.reference, sorted(self.counts.items()), *([] if self.cased else ["uncased"])])

    def knows(self, form: str) -> bool:
        """Return True if a word form may be used, at least at the beginning of a sentence."""
        return self.unknown_word(form) is None or self.unknown_word(form[:1].upper() + form[1:]) is None

    def unknown_word(self, *sentences: str) -> str | None:
        """Return the first word in the sentences that is not in the vocabulary, or None if there is none."""
        written = (word for sentence in sentences for word in words(sentence, self.reference))
        return next((word for word in written if (word if self.cased else word.lower()) not in self.counts), None)


def read_vocabulary(file: Path, language: str, min_count: int | None = None) -> Vocabulary:
    """Read the words of a file that occur at least `min_count` times. Words without a count are included.

    Raises InputError, with file and line, if the file is invalid. Raises ConfigError if no word is frequent enough.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"benchmark.vocabulary={file}: this file can't be read ({error}). Use run, study, or another file."
        ) from None
    head = re.match(r"# reference=(\w+): ", lines[0]) if lines else None
    counts: dict[str, int | None] = {}
    for number, line in enumerate(lines[bool(head) :], start=1 + bool(head)):
        word, tab, count = line.partition("\t")
        if not word or " " in word or (tab and not count.isdecimal()):
            raise InputError(
                f"{file}:{number}: this line can't be read: {line!r}. Write a word, or a word, a tab and its count."
            )
        counts[word] = int(count) if tab else None
    frequent = {word: count for word, count in counts.items() if count is None or count >= (min_count or 0)}
    if not frequent:
        raise ConfigError(f"benchmark.min_count={min_count}: no word of {file} is this frequent. Lower the number.")
    cased = head is not None or any(word != word.lower() for word in counts)  # words of samples are always cased
    return Vocabulary(frequent, head[1] if head else REFERENCES[language], cased)


def resolved(
    benchmark: BenchmarkConfig, config: Mapping[str, Any], runs: str | Path, store: str | Path
) -> BenchmarkConfig:
    """Replace the vocabulary "run" or "study" of `benchmark` with a file of words. Write the file if it is missing.

    Args:
        benchmark: The benchmark's configuration.
        config: The configuration of the run to score, as plain data.
        runs: The folder of runs.
        store: The folder of prepared corpora.

    Raises ConfigError if there is no sample, and StoreError if its text is not in the store.
    """
    if benchmark.form != "generated" or benchmark.vocabulary not in SAMPLES:
        return benchmark
    samples = [config] if benchmark.vocabulary == "run" else smallest_samples(runs, config.get("study"))
    if not _is_trained(samples[0]):
        raise ConfigError(
            f"benchmark.vocabulary=run: {config['model']['name']} was not trained on a sample. Use "
            "benchmark.vocabulary=study, or a file of words."
        )
    assert benchmark.min_count is not None
    return dataclasses.replace(benchmark, vocabulary=str(_vocabulary_file(samples, benchmark.min_count, Path(store))))


def _is_trained(config: Mapping[str, Any]) -> bool:
    """Return True if a run is trained on a sample, and False for a pretrained model."""
    return {"path", "checkpoint"}.isdisjoint(config["model"])


def smallest_samples(runs: str | Path, study: str | None) -> list[Mapping[str, Any]]:
    """Return one run's configuration for each of the smallest samples of a study.

    These include runs that the study's sweeps requested but that aren't trained yet. If there are no recorded sweeps,
    the runs in the study's folder are used. Raises RunError if there is no such study. Raises ConfigError if no run has
    a sample, or if samples are measured in different units.
    """
    if study is None:
        raise ConfigError(
            "benchmark.vocabulary=study: no study is chosen. Add study=NAME, or use run or a file of words."
        )
    configs = [requested.config for requested in read_grid(Path(runs) / study).values()]
    configs = configs or [run.read_config() for run in study_runs(runs, study)]
    by_sample = {json.dumps(_sample_of(config)): config for config in configs if _is_trained(config)}
    if len({config["sample"]["count"] for config in by_sample.values()}) != 1:
        raise ConfigError(
            f"benchmark.vocabulary=study: study={study} has no samples, or measures them in different units. Use a "
            "file of words."
        )
    sizes = {sample: parse_size(config["sample"]["size"]) for sample, config in sorted(by_sample.items())}
    return [by_sample[sample] for sample, size in sizes.items() if size == min(sizes.values())]


def _sample_of(config: Mapping[str, Any]) -> list[Any]:
    """Return the settings that a sample depends on, apart from its text and the text's annotation."""
    corpus, ablation = config["corpus"], [config.get("filter"), config.get("ablate")] if config.get("filter") else None
    sample = {**config["sample"], "size": parse_size(config["sample"]["size"])}
    text = [corpus["name"], corpus["reference"], corpus.get("domains")]
    return [*text, ablation, sorted(sample.items()), config["seed"]]


def _vocabulary_file(samples: Sequence[Mapping[str, Any]], min_count: int, store: Path) -> Path:
    """Return a file of the words that each sample contains at least `min_count` times, with counts over all samples.

    `samples` contains configurations of runs. Raises ConfigError if their reference tokenizers differ, or if no word is
    frequent enough.
    """
    reference, *others = {config["corpus"]["reference"] for config in samples}
    if others:
        raise ConfigError(
            "benchmark.vocabulary: the samples' corpora have different reference tokenizers (corpus.reference). Set "
            "benchmark.vocabulary to a file of words."
        )
    identity: list[Any] = [min_count, reference]
    for config in samples:
        corpus = config["corpus"]["name"]
        if not (folder := store / corpus / "text").exists():
            raise StoreError(
                f"benchmark.vocabulary: the text of corpus={corpus} is not in {store}. Prepare it (python -m corpora "
                f"corpus={corpus}), or use benchmark.vocabulary=FILE or null."
            )
        # The sample's digest is included, because the text, or the annotation for an ablation, may have been remade.
        identity.append([text_manifest(folder)["digest"], sample_again(config, None, store).drawn.digest])
    file = store / "vocabularies" / f"{sha256_json(identity)[:12]}.tsv"
    if not file.exists():  # two processes may write it at the same time, but with the same contents
        counts = [sample_counts(config, None, store, reference) for config in samples]
        shared = [word for word in counts[0] if min(of[word] for of in counts) >= min_count]
        if not shared:
            raise ConfigError(
                f"benchmark.min_count={min_count}: no word occurs this often in every sample. Choose a lower number."
            )
        totals = sorted((-sum(of[word] for of in counts), word) for word in shared)
        head = f"# reference={reference}: words that each of {len(samples)} samples contains at least {min_count} times"
        write_text(file, "\n".join([head, *(f"{word}\t{-total}" for total, word in totals)]) + "\n")
    return file
