"""Score one run on a benchmark of pairs, by methods: what eval/diagnostics/run.py does with the questions of a
diagnostic.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

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
    write_items,
    write_scores,
    write_tokens,
    write_unavailable,
)
from eval.scores.table import accuracy_table, methods_table, trajectory_table
from pairscale.errors import ConfigError, RunError
from pairscale.files import sha256_json
from pairscale.progress import with_progress
from train.loop.device import set_up_cpu
from train.runs.folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table

    from eval.methods.judging import MethodUse
    from eval.methods.sides import Side
    from eval.scorers.base import Scorer


@dataclass(frozen=True)
class PairsWork:
    """What is asked of one run, and which of it lacks.

    unrecorded: methods whose score files are of a time when settings (eval.scores.files) were not kept in them.
    moment: step, words_seen and moment of the snapshot whose weights the scorer has; None: those of the exported
    model. key: of the benchmark (`benchmark_key`). metadata: of each method's score file.
    """

    run: RunFolder
    config: EvalConfig
    scorer: Scorer
    moment: Mapping[str, Any] | None
    key: str
    benchmark: Benchmark
    folder: Path
    uses: dict[str, MethodUse]
    metadata: dict[str, dict[str, Any]]
    missing: list[str]
    unrecorded: list[str]

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
        import torch

        from eval.methods.judging import MethodUse
        from eval.methods.method import VOTES

        described = run.read_config()
        key = benchmark_key(config, described)
        benchmark = loaded_benchmark(key)
        folder = run.scores(score_label(config.benchmark, config.policy))
        check_same_pairs(folder, benchmark.name, benchmark.digest)
        common = {
            "policy": recorded_policy(config.policy, scorer.scores_eos(config.policy), scorer.pll_shift(config.policy)),
            "benchmark": benchmark.described,
            "model": {"name": described["model"].get("path", described["model"]["name"]), "digest": scorer.digest},
            "tokenizer_digest": scorer.tokenizer_digest,
            "reference": described["corpus"]["reference"],
            "step": None,
            "sample_words": scorer.sample_words,
            **(moment or {}),
        }
        uses = {}
        for name, parameters in config.method.items():
            uses[name] = MethodUse.of(name, parameters, scorer, config.benchmark.language)
            asked = [name for name in config.benchmark.paradigms or () if name not in benchmark.unavailable]
            _check_flagged(name, benchmark, asked)
        metadata: dict[str, dict[str, Any]] = {}
        missing: list[str] = []
        unrecorded: list[str] = []
        for name, use in sorted(uses.items(), key=lambda item: item[1].reads == VOTES):  # votes after what they count
            metadata[name] = {**use.metadata(), **common, "torch": torch.__version__}
            if settings := scorer.settings | use.settings():
                metadata[name]["settings"] = settings
            voters = use.config.voters or {}
            if voters:
                metadata[name]["voters"] = _voters(name, list(voters), folder, metadata, common, scorer.settings)
            path = score_path(folder, name, common["step"])
            there = read_metadata(path) if path.exists() else {}
            if not there or not same_scores(there, metadata[name]) or any(voter in missing for voter in voters):
                missing.append(name)
            elif settings and "settings" not in there:
                unrecorded.append(name)
        return cls(run, config, scorer, moment, key, benchmark, folder, uses, metadata, missing, unrecorded)

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Paradigm -> why it has no pairs."""
        return self.benchmark.unavailable

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is odd about the pairs."""
        return self.benchmark.notes

    def path(self, method: str) -> Path:
        """Of a method's score file."""
        return score_path(self.folder, method, None if self.moment is None else self.moment["step"])

    def overall(self) -> dict[str, Any]:
        """Of scores that are there: the moment, and of each method the mean accuracy over paradigms."""
        found = dict(self.moment or {})
        for name in self.config.method:
            scores, _ = read_scores(self.path(name))
            right = pd.Series(outcome(scores["good"], scores["bad"], self.config.ties))
            found[name] = float(right.groupby(scores["paradigm"].to_numpy()).mean().mean())
        return found

    def described(self) -> str:
        """What would be scored."""
        pairs = f"{len(self.benchmark.pairs):,} pairs"
        return f"would score {', '.join(self.missing)} on {pairs}" if self.missing else "scored already"

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table | str]:
        """Yield what the terminal shows of the files; `trajectory`: `overall` of each snapshot."""
        where, ties, pairs = f"{self.run.path.name} · {self.folder.name}", self.config.ties, self.benchmark.pairs
        scores = {name: read_scores(score_path(self.folder, name))[0] for name in self.config.method}
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
        rows = scores.merge(self.benchmark.pairs[[*names, "phenomenon"]], on=names)
        rest = rows[~pd.MultiIndex.from_frame(rows[names]).isin(pd.MultiIndex.from_frame(faulty[names]))]
        if faulty.empty or rest.empty:
            return None
        whole, without = (accuracies(part, self.config.ties).iloc[-1]["accuracy"] for part in (rows, rest))
        return f"{100 * without:.1f} overall without the {len(faulty)} faulty pairs, {100 * whole:.1f} with them"

    def score(self) -> None:
        """Read what lacks in one pass; write a score file for each method, the pairs, and a sample of the tokens."""
        from eval.methods.judging import judge_pairs
        from eval.methods.voting import vote

        pairs = self.benchmark.pairs
        set_up_cpu(self.config.trainer, self.run.read_manifest().get("parameters"))
        uses = [self.uses[name] for name in self.missing if not self.uses[name].config.voters]
        if uses:
            judged = judge_pairs(self.scorer, pairs, uses, self.config.policy)
            reference = next(iter(self.metadata.values()))["reference"]
            known = word_counts(self.key, reference)
            counts = pd.DataFrame({f"{side}_words": [known[text] for text in pairs[side]] for side in ("good", "bad")})
            write_items(self.folder, pairs, **self.benchmark.described)
            if self.benchmark.unavailable:
                write_unavailable(self.folder, self.benchmark.unavailable)
            if self.moment is None:
                chosen = drawn_pairs(pairs, self.config.scoring.token_pairs, self.config.scoring.seed)
                shared = {key: self.metadata[self.missing[0]][key] for key in ("policy", "benchmark", "model")}
                sides = {"good": judged.good, "bad": judged.bad}
                write_tokens(self.folder, _token_rows(pairs, chosen, sides), shared)
            for name, rows in judged.rows.items():
                told = self.metadata[name] | ({"prompts": judged.told[name]} if judged.told[name] else {})
                write_scores(self.path(name), rows.join(counts), told)
        for name in self.missing:
            given = self.uses[name].config
            if given.voters and given.trials is not None and given.seed is not None:
                cast = {voter: read_scores(self.path(voter))[0] for voter in given.voters}
                rows, drawn = vote(cast, given.voters, given.trials, given.seed)
                write_scores(self.path(name), rows, self.metadata[name] | {"drawn": drawn})


def _voters(
    method: str,
    voters: list[str],
    folder: Path,
    asked: dict[str, dict[str, Any]],
    common: dict[str, Any],
    settings: dict[str, Any],
) -> dict[str, str]:
    """Digests of what a vote counts: the scores of other methods, asked for in the same command or there already.

    Raises RunError where they are neither, or of another model or benchmark.
    """
    advice = f"score all: method=[{','.join([*voters, method])}]"
    found = {}
    for voter in voters:
        path = score_path(folder, voter, common["step"])
        if voter in asked:
            metadata = _comparable(asked[voter])
            kept = asked[voter].get("settings")
        elif path.exists():
            there = read_metadata(path)
            metadata = _comparable(there)
            kept = there.get("settings") or settings
            changed = any(kept.get(key) != value for key, value in settings.items())
            if changed or any(metadata.get(key) != value for key, value in _comparable(common).items()):
                raise RunError(f"method={method}: {path} is of another model, benchmark or policy; {advice}")
        else:
            raise RunError(f"method={method}: counts the votes of {voter}, and there is no {path}; {advice}")
        found[voter] = sha256_json(metadata | ({"settings": kept} if kept else {}))[:16]
    return found


def _token_rows(pairs: pd.DataFrame, chosen: npt.NDArray[np.int64], sides: dict[str, Side]) -> pd.DataFrame:
    """Columns of eval.scores.files.TOKENS, by pair, side and position."""
    rows = []
    for pair in chosen.tolist():
        name = (pairs["pair_id"].iat[pair], pairs["paradigm"].iat[pair])
        for side, judged in sides.items():
            score = judged.scores[pair]
            tokens = zip(score.spans.tolist(), score.logprobs.tolist(), score.unk.tolist(), strict=True)
            for position, ((start, end), logprob, unk) in enumerate(tokens):
                rows.append((*name, side, position, start, end, logprob, unk))
    return pd.DataFrame(rows, columns=list(TOKENS.names))


def _check_flagged(method: str, benchmark: Benchmark, asked: list[str]) -> None:
    """Raise ConfigError where a method is for none of the paradigms, or not for one that was asked for by name."""
    judged = set(benchmark.pairs.loc[judged_pairs(method, benchmark.pairs), "paradigm"])
    others = sorted((set(asked) if asked else set(benchmark.pairs["paradigm"])) - judged)
    if others and (asked or not judged):
        raise ConfigError(
            f"method={method}: benchmark={benchmark.name} has no such pairs in {', '.join(others[:3])}"
            f"{' and others' if len(others) > 3 else ''} (flag {method}_method); "
            f"it has them in {', '.join(sorted(judged)[:3]) or 'none that was asked for'}"
            f"{f' and {len(judged) - 3} more' if len(judged) > 3 else ''}"
        )


def same_scores(there: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether score files with the metadata `there` hold what files with the metadata `wanted` would.

    Older files keep no settings (the begin symbol and the like): these are then taken as unchanged.
    """
    unchanged = "settings" not in there or there["settings"] == wanted.get("settings")
    return unchanged and _comparable(there) == _comparable(wanted)


def _comparable(metadata: dict[str, Any]) -> dict[str, Any]:
    """A new version of torch alone is no reason to score again, nor is a choice that did not exist and is not made.

    What is known only after scoring (prompts, drawn) follows from the rest.
    """
    policy = {key: value for key, value in metadata["policy"].items() if value is not None}
    kept = {key: value for key, value in metadata.items() if key not in ("torch", "prompts", "drawn", "settings")}
    return kept | {"policy": policy}


def benchmark_key(config: EvalConfig, described: Mapping[str, Any]) -> str:
    """What `loaded_benchmark` reads, for the run that `described` is the configuration of: its vocabulary may count."""
    from eval.benchmarks.generated.vocabulary import resolved

    return json.dumps(dataclasses.asdict(resolved(config.benchmark, described, config.paths.runs, config.paths.store)))


@functools.lru_cache(maxsize=2)
def loaded_benchmark(key: str) -> Benchmark:
    """Read once a process, which may score many runs."""
    values = json.loads(key)
    return load_benchmark(BenchmarkConfig(**values | {"columns": ColumnsConfig(**values["columns"])}))


@functools.lru_cache(maxsize=2)
def word_counts(key: str, reference: str) -> dict[str, int]:
    """Reference words of each different sentence of a benchmark."""
    pairs = loaded_benchmark(key).pairs
    texts = dict.fromkeys([*pairs["good"], *pairs["bad"]])
    counted = with_progress(((1, text) for text in texts), "counting words", len(texts), "sentences")
    return {text: count_words(text, reference) for text in counted}
