"""Score minimal pairs and choices with methods."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.table import Table

from eval.benchmarks.config import SAMPLES
from eval.benchmarks.known_items import faulty_pairs
from eval.benchmarks.load import Benchmark, benchmark_of, drawn_pairs
from eval.config import EvalConfig
from eval.kinds.work import Work, comparable
from eval.methods.judging import MethodUse, check_templates, judge_pairs
from eval.methods.method import UNIGRAMS, fitting, methods
from eval.methods.sides import Side
from eval.methods.unigrams import UnigramSource
from eval.scores.accuracy import accuracies, outcomes
from eval.scores.files import (
    TOKENS_FILE,
    check_same_pairs,
    judged_pairs,
    read_scores,
    score_path,
    with_phenomena,
    write_items,
    write_scores,
    write_table,
    write_unavailable,
)
from eval.scores.schemas import SIDES, TOKENS
from eval.scores.table import accuracy_table, methods_table, trajectory_table
from pairscale.command.line import current
from pairscale.errors import ConfigError, first_few
from pairscale.files import sha256_json
from pairscale.sizes import plural


class PairsWork(Work):
    """The judgements of pairs by methods, with one score file per method.

    Attributes:
        uses: The requested methods that apply to the model, by name.
        unigrams: The text in which methods count tokens, or None if no method needs counts.
    """

    items: Benchmark
    uses: dict[str, MethodUse]
    unigrams: UnigramSource | None = None

    @classmethod
    def check(cls, config: EvalConfig) -> None:
        """Check methods and templates, and read the pairs unless they depend on the run.

        Raises ConfigError if the methods can't be used, and the same errors as `read`.
        """
        if not config.method:
            raise ConfigError("method=[]: this list is empty. Name at least one method, as in method=[lp].")
        check_templates(config)
        for name, parameters in config.method.items():
            voters = list(getattr(parameters, "voters", {}))
            if lacking := [voter for voter in voters if voter not in config.method]:
                raise ConfigError(
                    f"method={name}: this method counts the votes of {', '.join(lacking)}. Set "
                    f"method=[{','.join([*voters, name])}]."
                )
        if config.benchmark.vocabulary not in SAMPLES:
            cls.read(config, {})

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Benchmark:
        """Read the pairs. Raises the same errors as `benchmark_of`."""
        return benchmark_of(config.benchmark, config.paths, described)

    def common_metadata(self) -> dict[str, Any]:
        reference = self.described["corpus"]["reference"]
        return super().common_metadata() | {"benchmark": self.items.described, "reference": reference}

    def requested(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the methods. Methods that vote come after the methods whose votes they count.

        Raises InputError if the folder contains scores of other pairs, and the same errors as `_choose`.
        """
        check_same_pairs(self.folder, self.items.name, self.items.digest)
        self.uses = {}
        self._choose()
        for name, use in sorted(self.uses.items(), key=lambda item: bool(item[1].voters)):
            metadata = use.metadata()
            if use.reads == UNIGRAMS:
                assert self.unigrams is not None
                metadata["parameters"] = metadata["parameters"] | {"unigrams": self.unigrams.described}
            if settings := self.scorer.settings | use.settings():
                metadata["settings"] = settings
            if use.voters:
                metadata["voters"] = {voter: sha256_json(comparable(self.metadata[voter]))[:16] for voter in use.voters}
            yield name, metadata

    def _choose(self) -> None:
        """Set `uses` and `unigrams`. Raises ConfigError if a method can't be used with the model or the pairs."""
        named = [name for name in self.benchmark.paradigms or () if name not in self.items.unavailable]
        for name, parameters in fitting(self.config.method, self.scorer.masked).items():
            self.uses[name] = MethodUse.of(name, parameters, self.scorer, self.benchmark.language)
            _check_flagged(name, self.items, named)
        if counting := [name for name, use in self.uses.items() if use.reads == UNIGRAMS]:
            self.unigrams = UnigramSource.of(self.run, self.config)
            if missing := self.unigrams.missing:
                if len(counting) == len(self.uses):
                    raise ConfigError(
                        f"method={counting[0]}: there are no unigram probabilities for {self.scorer.name}: {missing}."
                    )
                self.uses = {name: use for name, use in self.uses.items() if name not in counting}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about paradigms without pairs, methods that were left out, and anything unusual in the pairs."""
        notes = []
        if few := self.items.unavailable:
            notes.append(f"{plural(len(few), 'paradigm')} with too few pairs of known words: {', '.join(few)}.")
        left_out = [name for name in self.config.method if name not in self.uses]
        if current()["method"] is None:  # the default methods include some for causal and some for masked models
            left_out = []
        reason = self.unigrams.missing if self.unigrams else None
        without = [name for name in left_out if reason and methods()[name].reads == UNIGRAMS]
        if others := [name for name in left_out if name not in without]:
            kind = "is a masked model" if self.scorer.masked else "isn't a masked model"
            notes.append(f"This model {kind}, so these methods are left out: {', '.join(others)}.")
        if without:
            notes.append(f"Without unigram probabilities, these methods are left out: {', '.join(without)} ({reason}).")
        return (*notes, *self.items.notes)

    @property
    def contents(self) -> str:
        return f"{', '.join(self.missing)} on {plural(len(self.items.pairs), 'pair')}"

    def overall(self, step: int | None = None) -> dict[str, Any]:
        """Return the mean accuracy over paradigms for each method, for the exported model or the snapshot at `step`."""
        row: dict[str, Any] = {}
        for name in self.uses:
            scores, metadata = read_scores(score_path(self.folder, name, step))
            scores = with_phenomena(scores, self.items.pairs)
            right = pd.Series(outcomes(scores, self.config.ties))
            row["words_seen"] = metadata.get("words_seen")
            row[name] = float(right.groupby(scores["paradigm"].to_numpy()).mean().mean())
        return row

    def headline(self) -> dict[str, float | str]:
        """Return the overall accuracy of the first method."""
        return {"accuracy": self.overall()[next(iter(self.uses))]}

    def tables(self, width: int) -> Iterator[Table | str]:
        """Yield tables of accuracy by phenomenon, and by method and by snapshot if there are several."""
        where, ties, pairs = self.title, self.config.ties, self.items.pairs
        scores = {name: read_scores(score_path(self.folder, name))[0] for name in self.uses}
        method = next(iter(scores))
        title = f"{where} · {method}{self.scored_already}"
        yield accuracy_table(title, self.benchmark.name, scores[method], pairs, ties, width)
        if without := self._without_faulty(scores[method]):
            yield f"{where} · {method}: {without}"
        if len(scores) > 1:
            yield methods_table(f"{where} · overall by method", scores, pairs, ties)
        if self.config.scoring.snapshots and self.run.snapshots:
            yield trajectory_table(f"{where} · overall over training", [self.overall(at) for at in self.run.snapshots])
        elif self.config.scoring.snapshots and self.described["recipe"].get("bptt"):  # trained by pairscale, in steps
            yield f"{self.run.path.name} has no snapshots to score. To save snapshots, train with trainer.snapshots=N."

    def _without_faulty(self, scores: pd.DataFrame) -> str | None:
        """Return a sentence with the overall accuracy without known faulty pairs, or None if there are none."""
        faulty = faulty_pairs(self.benchmark.name, scores)
        names = ["paradigm", "pair_id"]
        rows = with_phenomena(scores, self.items.pairs)
        rest = rows[~pd.MultiIndex.from_frame(rows[names]).isin(pd.MultiIndex.from_frame(faulty[names]))]
        if faulty.empty or rest.empty:
            return None
        whole, without = (accuracies(part, self.config.ties).iloc[-1]["accuracy"] for part in (rows, rest))
        faults = plural(len(faulty), "faulty pair")
        return f"{100 * without:.1f}% correct overall without {faults}, and {100 * whole:.1f}% with all pairs."

    def score(self) -> None:
        """Score the missing methods in one pass. Write a file for each, the pairs, and a sample of the token scores."""
        missing = [self.uses[name] for name in self.missing]
        if uses := [use for use in missing if not use.voters]:
            self._judge(uses)
        for use in missing:
            if use.voters:
                rows, drawn = use.vote({voter: read_scores(self.path(voter))[0] for voter in use.voters})
                write_scores(self.path(use.method), rows, self.metadata[use.method] | {"drawn": drawn})

    def _judge(self, uses: list[MethodUse]) -> None:
        pairs, scoring, metadata = self.items.pairs, self.config.scoring, self.metadata[uses[0].method]
        counting = self.unigrams if any(use.reads == UNIGRAMS for use in uses) else None
        unigrams = counting.count(self.scorer) if counting else None
        judged = judge_pairs(self.scorer, pairs, uses, self.config.policy, unigrams)
        words = self.items.words(metadata["reference"])
        counts = pd.DataFrame({f"{side}_words": [words[text] for text in judged.pairs[side]] for side in SIDES})
        write_items(self.folder, pairs, **self.items.described)
        if self.items.unavailable:
            write_unavailable(self.folder, self.items.unavailable)
        if not self.moment:
            sample = drawn_pairs(pairs, scoring.token_pairs, scoring.seed)
            first = np.flatnonzero(~judged.pairs.duplicated(["paradigm", "pair_id"]))  # of each item's comparisons
            tokens = _token_rows(judged.pairs, first[sample], {"good": judged.good, "bad": judged.bad})
            shared = {key: metadata[key] for key in ("policy", "benchmark", "model")}
            write_table(self.folder / TOKENS_FILE, tokens, TOKENS, shared)
        for name, rows in judged.rows.items():
            prompts = {"prompts": judged.prompts[name]} if name in judged.prompts else {}
            write_scores(self.path(name), rows.join(counts), self.metadata[name] | prompts)


def _token_rows(pairs: pd.DataFrame, sample: npt.NDArray[np.int64], sides: dict[str, Side]) -> pd.DataFrame:
    """Return the token scores of a sample of pairs, in the columns eval.scores.schemas.TOKENS."""
    rows = []
    for pair in sample.tolist():
        name = (pairs["pair_id"].iat[pair], pairs["paradigm"].iat[pair])
        for side, judged in sides.items():
            score = judged.scores[pair]
            tokens = zip(score.spans.tolist(), score.logprobs.tolist(), score.unk.tolist(), strict=True)
            for position, ((start, end), logprob, unk) in enumerate(tokens):
                rows.append((*name, side, position, start, end, logprob, unk))
    return pd.DataFrame(rows, columns=list(TOKENS.names))


def _check_flagged(method: str, benchmark: Benchmark, named: list[str]) -> None:
    """Raise ConfigError if a method can't judge any of the paradigms, or not all that the command names."""
    judged = set(benchmark.pairs.loc[judged_pairs(method, benchmark.pairs), "paradigm"])
    others = sorted((set(named) or set(benchmark.pairs["paradigm"])) - judged)
    if others and (named or not judged):
        raise ConfigError(
            f"method={method}: benchmark={benchmark.name} has no pairs with the flag {method}_method in "
            f"{first_few(others)}. Paradigms that have them: {first_few(sorted(judged)) or 'none'}. Choose other "
            "paradigms or another method."
        )
