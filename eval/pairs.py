"""Scoring of one run on a benchmark of pairs, by methods; eval/diagnostics/run.py does that of diagnostics."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from hydra.core.hydra_config import HydraConfig

from corpora.words import count_words
from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.known_items import faulty_pairs
from eval.benchmarks.load import Benchmark, drawn_pairs, load_benchmark
from eval.config import EvalConfig, recorded_policy, score_label
from eval.scores.accuracy import accuracies, outcome
from eval.scores.files import (
    TOKENS,
    check_same_pairs,
    judged_pairs,
    read_metadata,
    read_scores,
    score_path,
    with_phenomena,
    write_items,
    write_scores,
    write_tokens,
    write_unavailable,
)
from eval.scores.table import accuracy_table, methods_table, trajectory_table
from pairscale.errors import ConfigError, RunError, first_few
from pairscale.files import sha256_json
from pairscale.progress import with_progress
from train.loop.device import set_up_cpu
from train.runs.folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table

    from eval.methods.judging import MethodUse
    from eval.methods.sides import Side
    from eval.methods.unigrams import UnigramSource
    from eval.scorers.base import Scorer


@dataclass(frozen=True)
class PairsWork:
    """The scores of one run that a command asks for, and those of them that are missing.

    moment: step, words_seen and moment of the snapshot whose weights the scorer has; None: those of the exported
    model. key: of the benchmark (`benchmark_key`). metadata: of each method's score file. unrecorded: methods whose
    score files are older than the settings in them (eval.scores.files).
    """

    run: RunFolder
    config: EvalConfig
    scorer: Scorer
    moment: Mapping[str, Any] | None
    key: str
    benchmark: Benchmark
    folder: Path
    uses: dict[str, MethodUse]
    unigrams: UnigramSource | None  # of methods that read them
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)

    @staticmethod
    def check_methods(config: EvalConfig) -> None:
        """Raise ConfigError without methods, and for templates that do not fit, before a model is loaded."""
        from eval.methods.judging import check_templates

        if not config.method:
            raise ConfigError("method=[]: must name at least one")
        check_templates(config)

    @staticmethod
    def check_benchmark(config: EvalConfig) -> None:
        """Read the pairs, unless they depend on the run. Raises as load_benchmark."""
        if config.benchmark.vocabulary not in ("run", "study"):
            loaded_benchmark(benchmark_key(config, {}))

    @classmethod
    def of(
        cls, run: RunFolder, config: EvalConfig, scorer: Scorer, moment: Mapping[str, Any] | None = None
    ) -> PairsWork:
        """Raises what load_benchmark does, RunError for damaged files, ConfigError for methods that do not fit."""
        from eval.methods.judging import MethodUse
        from eval.methods.method import UNIGRAMS, VOTES, fitting
        from eval.methods.unigrams import UnigramSource

        described = run.read_config()
        key = benchmark_key(config, described)
        benchmark = loaded_benchmark(key)
        folder = run.scores(score_label(config.benchmark, config.policy))
        check_same_pairs(folder, benchmark.name, benchmark.digest)
        named = [name for name in config.benchmark.paradigms or () if name not in benchmark.unavailable]
        uses = {}
        for name, parameters in fitting(config.method, scorer.masked).items():
            uses[name] = MethodUse.of(name, parameters, scorer, config.benchmark.language)
            _check_flagged(name, benchmark, named)
        unigrams = None
        if counting := [name for name, use in uses.items() if use.reads == UNIGRAMS]:
            unigrams = UnigramSource.of(run, config)
            if unigrams.missing and len(counting) == len(uses):
                raise ConfigError(f"method={counting[0]}: {scorer.name} has no unigrams: {unigrams.missing}")
            if unigrams.missing:
                uses = {name: use for name, use in uses.items() if name not in counting}
        work = cls(run, config, scorer, moment, key, benchmark, folder, uses, unigrams)
        common = work._common_metadata(described)
        for use in sorted(uses.values(), key=lambda use: use.reads == VOTES):  # votes after their voters
            work._compare(use, common)
        return work

    def _common_metadata(self, described: Mapping[str, Any]) -> dict[str, Any]:
        policy, scorer = self.config.policy, self.scorer
        return {
            "policy": recorded_policy(policy, scorer.scores_eos(policy), scorer.pll_shift(policy)),
            "benchmark": self.benchmark.described,
            "model": {"name": described["model"].get("path", described["model"]["name"]), "digest": scorer.digest},
            "tokenizer_digest": scorer.tokenizer_digest,
            "reference": described["corpus"]["reference"],
            "step": None,
            "sample_words": scorer.sample_words,
            **(self.moment or {}),
        }

    def _compare(self, use: MethodUse, common: dict[str, Any]) -> None:
        """Add a method's metadata, and its name to the missing or unrecorded ones if its score file says so."""
        import torch

        from eval.methods.method import UNIGRAMS

        metadata = {**use.metadata(), **common, "torch": torch.__version__}
        if use.reads == UNIGRAMS:
            assert self.unigrams is not None
            metadata["parameters"] = metadata["parameters"] | {"unigrams": self.unigrams.described}
        if settings := self.scorer.settings | use.settings():
            metadata["settings"] = settings
        if use.voters:
            metadata["voters"] = self._voter_digests(use, common)
        self.metadata[use.method] = metadata
        path = self.path(use.method)
        saved = read_metadata(path) if path.exists() else {}
        if not saved or not same_scores(saved, metadata) or any(voter in self.missing for voter in use.voters):
            self.missing.append(use.method)
        elif settings and "settings" not in saved:
            self.unrecorded.append(use.method)

    def _voter_digests(self, use: MethodUse, common: dict[str, Any]) -> dict[str, str]:
        """Return digests of the scores that a vote counts. Raises RunError if missing, or of another model."""
        advice = f"score all: method=[{','.join([*use.voters, use.method])}]"
        digests = {}
        for voter in use.voters:
            path = self.path(voter)
            if voter in self.metadata:
                metadata = self.metadata[voter]
                settings = metadata.get("settings")
            elif path.exists():
                metadata = read_metadata(path)
                settings = metadata.get("settings") or self.scorer.settings
                changed = any(settings.get(key) != value for key, value in self.scorer.settings.items())
                saved = _comparable(metadata)
                if changed or any(saved.get(key) != value for key, value in _comparable(common).items()):
                    raise RunError(f"method={use.method}: {path} is of another model, benchmark or policy; {advice}")
            else:
                raise RunError(f"method={use.method}: counts the votes of {voter}, and there is no {path}; {advice}")
            digests[voter] = sha256_json(_comparable(metadata) | ({"settings": settings} if settings else {}))[:16]
        return digests

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Paradigm -> why it has no pairs."""
        return self.benchmark.unavailable

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is odd about the pairs, and on methods by name that do not fit the model."""
        if not (left_out := [name for name in self.config.method if name not in self.uses]) or not _names_methods():
            return self.benchmark.notes
        from eval.methods.method import UNIGRAMS, methods

        reason = self.unigrams.missing if self.unigrams else None
        without = [name for name in left_out if reason and methods()[name].reads == UNIGRAMS]
        others = [name for name in left_out if name not in without]
        kind = "is a masked model" if self.scorer.masked else "is no masked model"
        notes = [f"left out, as this {kind}: {', '.join(others)}"] if others else []
        notes += [f"left out without unigram probabilities: {', '.join(without)}; {reason}"] if without else []
        return (*notes, *self.benchmark.notes)

    def path(self, method: str) -> Path:
        """Return the path of a method's score file."""
        return score_path(self.folder, method, None if self.moment is None else self.moment["step"])

    def overall(self) -> dict[str, Any]:
        """Return the moment, and the mean accuracy over paradigms by each method, from the score files."""
        means = {}
        for name in self.uses:
            scores, _ = read_scores(self.path(name))
            right = pd.Series(outcome(scores["good"], scores["bad"], self.config.ties))
            means[name] = float(right.groupby(scores["paradigm"].to_numpy()).mean().mean())
        return {**(self.moment or {}), **means}

    def headline(self) -> dict[str, float | str]:
        """Return what a line about the run says: the accuracy by the first method."""
        return {"accuracy": self.overall()[next(iter(self.uses))]}

    def described(self) -> str:
        """Return a description of the missing scores."""
        pairs = f"{len(self.benchmark.pairs):,} pairs"
        return f"would score {', '.join(self.missing)} on {pairs}" if self.missing else "scored already"

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table | str]:
        """Yield what the terminal shows of the files; `trajectory`: `overall` of each snapshot."""
        where, ties, pairs = f"{self.run.path.name} · {self.folder.name}", self.config.ties, self.benchmark.pairs
        scores = {name: read_scores(score_path(self.folder, name))[0] for name in self.uses}
        method = next(iter(scores))
        title = f"{where} · {method}" + ("" if self.missing else " (scored already)")
        yield accuracy_table(title, self.config.benchmark.name, scores[method], pairs, ties, width)
        if without := self._without_faulty(scores[method]):
            yield f"{where} · {method}: {without}"
        if len(scores) > 1:
            yield methods_table(f"{where} · overall by method", scores, pairs, ties)
        if trajectory:
            yield trajectory_table(f"{where} · overall over training", trajectory)
        elif self.config.scoring.snapshots and self.run.read_config()["recipe"].get("bptt"):  # trained here, in steps
            yield f"{self.run.path.name}: has no snapshots to score; trainer.snapshots=N keeps N of them"

    def _without_faulty(self, scores: pd.DataFrame) -> str | None:
        """Return the overall accuracy without the pairs known to be faulty, None if there are none."""
        faulty = faulty_pairs(self.config.benchmark.name, scores)
        names = ["paradigm", "pair_id"]
        rows = with_phenomena(scores, self.benchmark.pairs)
        rest = rows[~pd.MultiIndex.from_frame(rows[names]).isin(pd.MultiIndex.from_frame(faulty[names]))]
        if faulty.empty or rest.empty:
            return None
        whole, without = (accuracies(part, self.config.ties).iloc[-1]["accuracy"] for part in (rows, rest))
        return f"{100 * without:.1f} overall without the {len(faulty)} faulty pairs, {100 * whole:.1f} with them"

    def score(self) -> None:
        """Score the missing methods in one pass; write a file for each, the pairs, and a sample of the tokens."""
        from eval.methods.judging import judge_pairs
        from eval.methods.method import UNIGRAMS

        pairs = self.benchmark.pairs
        set_up_cpu(self.config.trainer, self.run.read_manifest().get("parameters"))
        missing = [self.uses[name] for name in self.missing]
        uses = [use for use in missing if not use.voters]
        if uses:
            counted = self.unigrams if any(use.reads == UNIGRAMS for use in uses) else None
            unigrams = counted.count(self.scorer) if counted else None
            judged = judge_pairs(self.scorer, pairs, uses, self.config.policy, unigrams)
            metadata = self.metadata[self.missing[0]]
            known = word_counts(self.key, metadata["reference"])
            counts = pd.DataFrame({f"{side}_words": [known[text] for text in pairs[side]] for side in ("good", "bad")})
            write_items(self.folder, pairs, **self.benchmark.described)
            if self.benchmark.unavailable:
                write_unavailable(self.folder, self.benchmark.unavailable)
            if self.moment is None:
                sample = drawn_pairs(pairs, self.config.scoring.token_pairs, self.config.scoring.seed)
                shared = {key: metadata[key] for key in ("policy", "benchmark", "model")}
                sides = {"good": judged.good, "bad": judged.bad}
                write_tokens(self.folder, _token_rows(pairs, sample, sides), shared)
            for name, rows in judged.rows.items():
                prompts = {"prompts": judged.prompts[name]} if name in judged.prompts else {}
                write_scores(self.path(name), rows.join(counts), self.metadata[name] | prompts)
        for use in missing:
            if use.voters:
                rows, drawn = use.vote({voter: read_scores(self.path(voter))[0] for voter in use.voters})
                write_scores(self.path(use.method), rows, self.metadata[use.method] | {"drawn": drawn})


def _token_rows(pairs: pd.DataFrame, sample: npt.NDArray[np.int64], sides: dict[str, Side]) -> pd.DataFrame:
    """Return the columns of eval.scores.files.TOKENS, by pair, side and position."""
    rows = []
    for pair in sample.tolist():
        name = (pairs["pair_id"].iat[pair], pairs["paradigm"].iat[pair])
        for side, judged in sides.items():
            score = judged.scores[pair]
            tokens = zip(score.spans.tolist(), score.logprobs.tolist(), score.unk.tolist(), strict=True)
            for position, ((start, end), logprob, unk) in enumerate(tokens):
                rows.append((*name, side, position, start, end, logprob, unk))
    return pd.DataFrame(rows, columns=list(TOKENS.names))


def _names_methods() -> bool:
    """Return True if the command line names methods: the default list is for models of both kinds."""
    return HydraConfig.initialized() and any(
        override.lstrip("+").startswith("method=") for override in HydraConfig.get().overrides.task
    )


def _check_flagged(method: str, benchmark: Benchmark, named: list[str]) -> None:
    """Raise ConfigError where a method judges none of the paradigms, or not one that the command names."""
    judged = set(benchmark.pairs.loc[judged_pairs(method, benchmark.pairs), "paradigm"])
    others = sorted((set(named) or set(benchmark.pairs["paradigm"])) - judged)
    if others and (named or not judged):
        raise ConfigError(
            f"method={method}: benchmark={benchmark.name} has no such pairs in {first_few(others)} "
            f"(flag {method}_method); it has them in {first_few(sorted(judged)) or 'no paradigm'}"
        )


def same_scores(saved: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Return True if score files with the metadata `saved` hold what files with the metadata `wanted` would.

    Older files have no settings (the begin symbol and the like): these count as unchanged.
    """
    unchanged = "settings" not in saved or saved["settings"] == wanted.get("settings")
    return unchanged and _comparable(saved) == _comparable(wanted)


def _comparable(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata without the version of torch, what follows from the rest, and null choices."""
    policy = {key: value for key, value in metadata["policy"].items() if value is not None}
    rest = {key: value for key, value in metadata.items() if key not in ("torch", "prompts", "drawn", "settings")}
    return rest | {"policy": policy}


def benchmark_key(config: EvalConfig, described: Mapping[str, Any]) -> str:
    """Return the argument of `loaded_benchmark` for the run of the configuration `described`, whose words may count."""
    from eval.benchmarks.generated.vocabulary import resolved

    return json.dumps(dataclasses.asdict(resolved(config.benchmark, described, config.paths.runs, config.paths.store)))


@functools.lru_cache(maxsize=2)
def loaded_benchmark(key: str) -> Benchmark:
    """Read a benchmark once in a process that scores many runs."""
    values = json.loads(key)
    return load_benchmark(BenchmarkConfig(**values | {"columns": ColumnsConfig(**values["columns"])}))


@functools.lru_cache(maxsize=2)
def word_counts(key: str, reference: str) -> dict[str, int]:
    """Return the number of reference words of each different sentence of a benchmark."""
    pairs = loaded_benchmark(key).pairs
    texts = dict.fromkeys([*pairs["good"], *pairs["bad"]])
    counted = with_progress(((1, text) for text in texts), "counting words", len(texts), "sentences")
    return {text: count_words(text, reference) for text in counted}
