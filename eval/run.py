"""Score trained runs: what is scored already is left alone, what lacks is scored in one pass over the model."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from omegaconf import OmegaConf
from rich.console import Console

from corpora.errors import ConfigError, RunError, StoreError, WriteError
from corpora.files import sha256_json, write_text
from corpora.words import count_words, words
from eval.benchmarks import Benchmark, load_benchmark
from eval.cloze_run import ClozeWork, count_contexts
from eval.cloze_scores import cloze_metadata
from eval.config import BenchmarkConfig, ColumnsConfig, DiagnosticConfig, EvalConfig, PretrainedConfig
from eval.scores import (
    TOKENS,
    check_same_pairs,
    judged_pairs,
    read_metadata,
    read_scores,
    score_label,
    score_path,
    write_items,
    write_scores,
    write_tokens,
)
from eval.table import WIDTH, accuracy_table, methods_table
from eval.tracked import track_scores
from train.config import NgramConfig
from train.provenance import versions
from train.runs import DONE, RunFolder, config_digest, study_runs

if TYPE_CHECKING:
    from eval.judging import Plan
    from eval.methods import Side
    from eval.scorers import Scorer

# For estimates: of each pair, its sentences and what a method says of them, measured on BLiMP; and how much is read at
# a time, which is the model's to say: it matters little here.
ITEM_BYTES, SCORE_BYTES = 60, 45
TREE_WORDS, BATCH_WORDS = 512, 8192

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def add_pretrained(config: EvalConfig) -> tuple[RunFolder, EvalConfig, Scorer]:
    """The run folder of a model that comes trained (config.model is a PretrainedConfig), `config`, and its scorer.

    The folder holds the configuration and digests, no weights. Raises what eval.pretrained.load_pretrained does.
    """
    assert isinstance(config.model, PretrainedConfig)
    from eval.pretrained import load_pretrained

    scorer = load_pretrained(config.model, config.scoring.batch_tokens, _device(config), config.trainer.progress)
    run = RunFolder.of(config)
    with run.locked():
        write_text(run.config, OmegaConf.to_yaml(OmegaConf.structured(config)))
        digests = {"digest": scorer.digest, "tokenizer_digest": scorer.tokenizer_digest}
        trained = {"step": config.model.step, "tokens": config.model.tokens}
        run.update_manifest(status=DONE, config_digest=config_digest(config), versions=versions(), **digests, **trained)
    return run, config, scorer


def score_run(run: RunFolder, config: EvalConfig, scorer: Scorer | None = None) -> None:
    """Score a run by the methods that its score files lack; print the first one's table and the overall accuracies.

    A diagnostic has no methods: what it asks is scored where it lacks, and all of its tables are printed.
    `scorer` is that of the run, where it is loaded already. Raises RunError where the run is not trained, is in use, or
    has a damaged model or score file, InputError for the benchmark's files, ConfigError for values that do not fit.
    """
    if not config.method and not isinstance(config.benchmark, DiagnosticConfig):
        raise ConfigError("method=[]: must name at least one")
    if not run.done:
        status = run.read_manifest().get("status", "not started")
        raise RunError(f"{run.path}: {status}; only a run that is done can be scored")
    with run.locked(), _noted(run, config):
        work = _work(run, config, scorer)
        if work.lacking:
            work.score()
        track_scores(run, config)
    if isinstance(work, ClozeWork):
        for part in work.tables(console.width):
            console.print(part)
        return
    scores = {name: read_scores(score_path(work.folder, name))[0] for name in config.method}
    method = next(iter(scores))
    where = f"{run.path.name} · {work.folder.name}"
    title = f"{where} · {method}" + ("" if work.lacking else " (scored already)")
    pairs = work.benchmark.pairs
    console.print(accuracy_table(title, config.benchmark.name, scores[method], pairs, config.ties, console.width))
    if len(scores) > 1:
        console.print(methods_table(f"{where} · overall by method", scores, pairs, config.ties))


@contextmanager
def _noted(run: RunFolder, config: EvalConfig) -> Iterator[None]:
    """Keep in the manifest why scoring failed, until it does not: `scoring_failed`, of each benchmark its reason."""
    label = score_label(config.benchmark, config.policy)
    failed = run.read_manifest().get("scoring_failed", {})
    others = {name: reason for name, reason in failed.items() if name != label}
    try:
        yield
    except Exception as error:
        with suppress(WriteError):  # where the disk is full, the manifest cannot say so either
            run.update_manifest(scoring_failed=others | {label: f"{type(error).__name__}: {error}"})
        raise
    if label in failed:
        run.update_manifest(scoring_failed=others)


def score_study(config: EvalConfig) -> None:
    """Score every run of `config.study` that is done, in this process; list those that are not.

    Raises RunError when there is no such study, none of its runs is done, or some could not be scored.
    """
    done, failed = [], 0
    for run in study_runs(config.paths.runs, config.study or ""):
        manifest = run.read_manifest()
        if manifest.get("status") == DONE:
            done.append(run)
        else:
            told = ": ".join(filter(None, [manifest.get("status", "not started"), manifest.get("reason")]))
            console.print(f"not scored: {run.path.name}: {told}", markup=False)
    if not done:
        raise RunError(f"study={config.study}: none of its runs is done")
    for run in done:
        try:
            if config.dry_run:
                work = _work(run, config)
                console.print(f"{run.path.name} · {work.folder.name}: {work.described()}", markup=False)
            else:
                score_run(run, config)
        except (RunError, StoreError) as error:  # of this run's files: the others can be scored
            console.print(f"not scored: {error}", markup=False)
            failed += 1
    if failed:
        raise RunError(f"study={config.study}: {failed} of {len(done)} runs could not be scored (said above)")


def scoring_tokens(config: EvalConfig, tokens_per_word: float) -> float:
    """About how many tokens the run of `config` has yet to read, for estimates of time: 0 where it is scored.

    What texts begin with in common counts once, as it is read once, but for n-gram models. Whether a run is scored is
    told from the names of its files alone. Raises as load_benchmark.
    """
    folder = RunFolder.of(config).scores(score_label(config.benchmark, config.policy))
    if isinstance(config.benchmark, DiagnosticConfig):
        if cloze_metadata(folder) is not None:
            return 0.0
        contexts = count_contexts(config.benchmark, config.corpus.reference)
        return sum(contexts) * tokens_per_word + len(contexts)
    lacking = {name: method for name, method in config.method.items() if not score_path(folder, name).exists()}
    if not lacking:
        return 0.0
    from eval.judging import template_reading

    key, reference = _key(config.benchmark), config.corpus.reference
    counts = _word_counts(key, reference)
    total = sum(counts.values())
    read = total + len(counts) if isinstance(config.model, NgramConfig) else _distinct_words(key, reference)
    more = template_reading(lacking, config.benchmark.language, counts, reference, read / (total + len(counts)))
    return (read + more) * tokens_per_word


def score_bytes(config: EvalConfig) -> int:
    """About how many bytes the score files of a run of `config` take."""
    if isinstance(config.benchmark, DiagnosticConfig):
        return 0
    pairs = _loaded(_key(config.benchmark)).pairs
    return len(pairs) * (ITEM_BYTES + SCORE_BYTES * len(config.method))


def _work(run: RunFolder, config: EvalConfig, scorer: Scorer | None = None) -> _Work | ClozeWork:
    from eval.scorers import load_scorer

    if scorer is None:
        scorer = load_scorer(run, config.scoring.batch_tokens, _device(config), config.trainer.progress)
    kind = ClozeWork if isinstance(config.benchmark, DiagnosticConfig) else _Work
    return kind.of(run, config, scorer)


@dataclass(frozen=True)
class _Work:
    """What is asked of one run, and which of it lacks. `metadata`: of each method's score file."""

    run: RunFolder
    config: EvalConfig
    scorer: Scorer
    benchmark: Benchmark
    folder: Path
    plans: dict[str, Plan]
    metadata: dict[str, dict[str, Any]]
    lacking: list[str]

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig, scorer: Scorer) -> _Work:
        import torch

        from eval.judging import Plan
        from eval.methods import VOTES
        from eval.scorers import resolved_score_eos

        described = run.read_config()
        benchmark = _loaded(_key(config.benchmark))
        folder = run.scores(score_label(config.benchmark, config.policy))
        check_same_pairs(folder, benchmark.name, benchmark.digest)
        score_eos = resolved_score_eos(config.policy, scorer.word_level)
        common = {
            "policy": dataclasses.asdict(dataclasses.replace(config.policy, score_eos=score_eos)),
            "benchmark": {"name": benchmark.name, "digest": benchmark.digest},
            "model": {"name": described["model"].get("path", described["model"]["name"]), "digest": scorer.digest},
            "tokenizer_digest": scorer.tokenizer_digest,
            "reference": described["corpus"]["reference"],
            "step": None,
            "sample_words": scorer.sample_words,
        }
        plans = {}
        for name, parameters in config.method.items():
            plans[name] = Plan.of(name, parameters, scorer, config.benchmark.language)
            _check_flagged(name, benchmark, config.benchmark.paradigms)
        metadata: dict[str, dict[str, Any]] = {}
        lacking: list[str] = []
        for name, plan in sorted(plans.items(), key=lambda item: item[1].reads == VOTES):  # votes after what they count
            metadata[name] = {**plan.metadata(), **common, "torch": torch.__version__}
            voters = plan.config.voters or {}
            if voters:
                metadata[name]["voters"] = _voters(name, list(voters), folder, metadata, common)
            path = score_path(folder, name)
            scored = path.exists() and _comparable(read_metadata(path)) == _comparable(metadata[name])
            if not scored or any(voter in lacking for voter in voters):
                lacking.append(name)
        return cls(run, config, scorer, benchmark, folder, plans, metadata, lacking)

    def described(self) -> str:
        """What would be scored."""
        pairs = f"{len(self.benchmark.pairs):,} pairs"
        return f"would score {', '.join(self.lacking)} on {pairs}" if self.lacking else "scored already"

    def score(self) -> None:
        """Read what lacks in one pass; write a score file for each method, the pairs, and a sample of the tokens."""
        import torch

        from eval.judging import judge_pairs
        from eval.voting import vote

        pairs = self.benchmark.pairs
        if self.config.trainer.threads:
            torch.set_num_threads(self.config.trainer.threads)
        plans = [self.plans[name] for name in self.lacking if not self.plans[name].config.voters]
        if plans:
            judged = judge_pairs(self.scorer, pairs, plans, self.config.policy)
            reference = next(iter(self.metadata.values()))["reference"]
            known = _word_counts(_key(self.config.benchmark), reference)
            counts = pd.DataFrame({f"{side}_words": [known[text] for text in pairs[side]] for side in ("good", "bad")})
            write_items(self.folder, pairs, self.benchmark.name, self.benchmark.digest)
            chosen = token_sample(pairs, self.config.scoring.token_pairs, self.config.scoring.seed)
            shared = {key: self.metadata[self.lacking[0]][key] for key in ("policy", "benchmark", "model")}
            sides = {"good": judged.good, "bad": judged.bad}
            write_tokens(self.folder, _token_rows(pairs, chosen, sides), shared)
            for name, rows in judged.rows.items():
                told = self.metadata[name] | ({"prompts": judged.told[name]} if judged.told[name] else {})
                write_scores(score_path(self.folder, name), rows.join(counts), told)
        for name in self.lacking:
            given = self.plans[name].config
            if given.voters and given.trials is not None and given.seed is not None:
                cast = {voter: read_scores(score_path(self.folder, voter))[0] for voter in given.voters}
                rows, drawn = vote(cast, given.voters, given.trials, given.seed)
                write_scores(score_path(self.folder, name), rows, self.metadata[name] | {"drawn": drawn})


def _voters(
    method: str, voters: list[str], folder: Path, asked: dict[str, dict[str, Any]], common: dict[str, Any]
) -> dict[str, str]:
    """Digests of what a vote counts: the scores of other methods, asked for in the same command or there already.

    Raises RunError where they are neither, or of another model or benchmark.
    """
    advice = f"score all: method=[{','.join([*voters, method])}]"
    found = {}
    for voter in voters:
        path = score_path(folder, voter)
        if voter in asked:
            metadata = _comparable(asked[voter])
        elif path.exists():
            metadata = _comparable(read_metadata(path))
            if any(metadata.get(key) != value for key, value in _comparable(common).items()):
                raise RunError(f"method={method}: {path} is of another model, benchmark or policy; {advice}")
        else:
            raise RunError(f"method={method}: counts the votes of {voter}, and there is no {path}; {advice}")
        found[voter] = sha256_json(metadata)[:16]
    return found


def token_sample(pairs: pd.DataFrame, count: str, seed: int) -> npt.NDArray[np.int64]:
    """Positions of `count` pairs (or "all") drawn from each paradigm, increasing; the same for every model."""
    if count == "all":
        return np.arange(len(pairs))
    rng = np.random.default_rng(seed)
    groups = pairs.groupby("paradigm", sort=True).indices.values()
    return np.sort(np.concatenate([rng.permutation(np.sort(group))[: int(count)] for group in groups]))


def _token_rows(pairs: pd.DataFrame, chosen: npt.NDArray[np.int64], sides: dict[str, Side]) -> pd.DataFrame:
    """Columns of eval.scores.TOKENS, by pair, side and position."""
    rows = []
    for pair in chosen.tolist():
        name = (pairs["pair_id"].iat[pair], pairs["paradigm"].iat[pair])
        for side, judged in sides.items():
            score = judged.scores[pair]
            tokens = zip(score.spans.tolist(), score.logprobs.tolist(), score.unk.tolist(), strict=True)
            for position, ((start, end), logprob, unk) in enumerate(tokens):
                rows.append((*name, side, position, start, end, logprob, unk))
    return pd.DataFrame(rows, columns=list(TOKENS.names))


def _device(config: EvalConfig) -> str:
    import torch

    return "cuda" if config.trainer.accelerator in ("auto", "gpu") and torch.cuda.is_available() else "cpu"


def _check_flagged(method: str, benchmark: Benchmark, asked: list[str] | None) -> None:
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


def _comparable(metadata: dict[str, Any]) -> dict[str, Any]:
    """A new version of torch alone is no reason to score again, nor is a choice that did not exist and is not made.

    What is known only after scoring (prompts, drawn) follows from the rest.
    """
    policy = {key: value for key, value in metadata["policy"].items() if value is not None}
    kept = {key: value for key, value in metadata.items() if key not in ("torch", "prompts", "drawn")}
    return kept | {"policy": policy}


def _key(config: BenchmarkConfig) -> str:
    return json.dumps(dataclasses.asdict(config))


@functools.lru_cache(maxsize=2)
def _loaded(key: str) -> Benchmark:
    """Read once a process, which may score many runs."""
    values = json.loads(key)
    return load_benchmark(BenchmarkConfig(**values | {"columns": ColumnsConfig(**values["columns"])}))


@functools.lru_cache(maxsize=2)
def _distinct_words(key: str, reference: str) -> int:
    """Reference words that are read of a benchmark's sentences, each after a begin symbol, by trees of them."""
    from eval.trees import forests

    numbers: dict[str, int] = {}
    texts = [
        np.asarray([0, *(numbers.setdefault(word, len(numbers) + 1) for word in words(text, reference)), 0])
        for text in _word_counts(key, reference)
    ]
    return sum(forest.tokens.size for forest in forests(texts, np.ones(len(texts), np.int64), TREE_WORDS, BATCH_WORDS))


@functools.lru_cache(maxsize=2)
def _word_counts(key: str, reference: str) -> dict[str, int]:
    """Reference words of each different sentence of a benchmark."""
    pairs = _loaded(key).pairs
    return {text: count_words(text, reference) for text in dict.fromkeys([*pairs["good"], *pairs["bad"]])}
