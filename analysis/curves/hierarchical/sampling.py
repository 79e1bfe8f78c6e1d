"""Draws from the posterior of the hierarchical model, by NumPyro's no-U-turn sampler, in blocks that tell progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from numpyro.infer import NUTS, init_to_mean

from analysis.curves.hierarchical.counts import Counts
from analysis.curves.hierarchical.model import judgements_model, values_of
from analysis.curves.hierarchical.posterior import Posterior, diagnosed
from analysis.curves.variance import Array

# Thousands of small steps: a GPU would wait for each.
jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]

BLOCK = 25  # iterations between two reports of progress
ACCEPT = 0.97  # target of the acceptance of steps: above the usual 0.8, for fewer divergences
DEEPEST = 9  # doublings of a trajectory
OF_DRAWS = ("accuracy", "logit", "spreads", "paradigm_spreads", "seed_variance")  # sites that are kept


@dataclass(frozen=True)
class Sampling:
    """How to sample: `chains` of `warmup` and `draws` iterations each; threads: chains that run at a time."""

    chains: int = 4
    warmup: int = 500
    draws: int = 500
    seed: int = 1
    threads: int = 2

    @property
    def iterations(self) -> int:
        """Of all chains."""
        return self.chains * (self._blocks(self.warmup) + self._blocks(self.draws)) * BLOCK

    @staticmethod
    def _blocks(iterations: int) -> int:
        return -(-iterations // BLOCK)

    def sample(self, counts: Counts) -> Iterator[tuple[int, Posterior | None]]:
        """Yield (iterations done since, None) while sampling, and the posterior at the end.

        Chains differ in their seeds. Each adapts step size and a diagonal mass matrix while it warms up.
        """
        started = time.perf_counter()
        values, warmup = values_of(counts), self._blocks(self.warmup) * BLOCK
        shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(values)]
        program = _program(str(jax.tree.structure(values)), str(shapes))
        keys = jax.random.split(jax.random.PRNGKey(self.seed), self.chains)
        states = program.start(keys, warmup, values)
        chains = [jax.tree.map(lambda leaf, c=c: leaf[c : c + 1], states) for c in range(self.chains)]
        advance = program.advance(chains[0], values)  # compiled once, before threads start
        blocks: list[list[dict[str, Array]]] = []
        with ThreadPoolExecutor(self.threads) as pool:
            for block in range(warmup // BLOCK + self._blocks(self.draws)):
                after = list(pool.map(lambda state: jax.device_get(advance(state, values)), chains))
                chains = [state for state, _ in after]
                if block * BLOCK >= warmup:
                    blocks.append([{name: np.asarray(value) for name, value in drawn.items()} for _, drawn in after])
                yield self.chains * BLOCK, None
        draws = {
            name: np.stack([np.concatenate([block[c][name] for block in blocks]) for c in range(self.chains)])
            for name in blocks[0][0]
        }
        yield 0, _posterior(counts, draws, time.perf_counter() - started)

    def sample_together(self, of_studies: list[Counts]) -> list[Posterior]:
        """Return the posteriors of studies of one design, their chains side by side in one thread.

        Each has the posterior that `sample` gives, though not its very draws: trajectories part by rounding. The cost
        of a small step is shared. Raises ValueError if studies differ in their numbers of runs, sizes or paradigms.
        """
        started = time.perf_counter()
        values = jax.tree.map(lambda *leaves: np.stack(leaves), *map(values_of, of_studies))
        warmup, kernel = self._blocks(self.warmup) * BLOCK, _Program().kernel
        keys = jax.random.split(jax.random.PRNGKey(self.seed), self.chains)
        start = jax.jit(jax.vmap(lambda of_study: kernel.init(keys, warmup, None, (of_study,), {})))
        state = jax.tree.map(lambda leaf: leaf.reshape(-1, 1, *leaf.shape[2:]), jax.device_get(start(values)))
        of_chains = jax.tree.map(lambda leaf: np.repeat(leaf, self.chains, axis=0), values)
        advance = jax.jit(jax.vmap(partial(_advance, kernel))).lower(state, of_chains).compile()
        blocks: list[dict[str, Array]] = []
        for block in range(warmup // BLOCK + self._blocks(self.draws)):
            state, drawn = jax.device_get(advance(state, of_chains))
            if block * BLOCK >= warmup:
                blocks.append(drawn)
        draws = {name: np.concatenate([drawn[name] for drawn in blocks], axis=1) for name in blocks[0]}
        draws = {name: value.reshape(-1, self.chains, *value.shape[1:]) for name, value in draws.items()}
        seconds = (time.perf_counter() - started) / len(of_studies)
        return [
            _posterior(counts, {name: value[study] for name, value in draws.items()}, seconds)
            for study, counts in enumerate(of_studies)
        ]


class _Program:
    """A sampler, and its compiled code, of models of one structure."""

    def __init__(self) -> None:
        self.kernel = NUTS(
            judgements_model, target_accept_prob=ACCEPT, max_tree_depth=DEEPEST,
            init_strategy=init_to_mean,
        )  # fmt: skip
        self.start = jax.jit(self._start, static_argnums=1)  # compiled whole: op by op it takes longer than to sample
        self._compiled: Any = None

    def _start(self, keys: Any, warmup: int, values: Any) -> Any:
        """Return the states of all chains, at the means of the priors."""
        return self.kernel.init(keys, warmup, None, (values,), {})

    def advance(self, state: Any, values: Any) -> Any:
        """Return the compiled `_advance` for states and values like these."""
        if self._compiled is None:
            self._compiled = jax.jit(partial(_advance, self.kernel)).lower(state, values).compile()
        return self._compiled


@lru_cache(maxsize=4)
def _program(structure: str, shapes: str) -> _Program:
    """Return the program of a structure and shapes: simulated studies of one design share it."""
    return _Program()


def _advance(kernel: NUTS, state: Any, values: Any) -> tuple[Any, dict[str, Any]]:
    """Return the state of a chain after BLOCK iterations, and what they drew; the state has a leading axis of one."""

    def step(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        state = kernel.sample(state, (values,), {})
        sites = kernel.postprocess_fn((values,), {})(jax.tree.map(lambda leaf: leaf[0], state.z))
        # Scales are what chains find hardest; of other sites, what follows from them says enough.
        kept = {name: site for name, site in sites.items() if name in OF_DRAWS or name.endswith("_spread")}
        return state, {**kept, "diverging": state.diverging[0], "steps": state.num_steps[0]}

    return jax.lax.scan(step, state, None, length=BLOCK)


def _posterior(counts: Counts, draws: dict[str, Array], seconds: float) -> Posterior:
    of: dict[str, Array] = {name: draws[name].astype(np.float64) for name in OF_DRAWS if name in draws}
    scales = {name: value for name, value in draws.items() if name.endswith("_spread")}
    return Posterior(
        counts, of, int(draws["diverging"].sum()), float(draws["steps"].mean()), seconds,
        {name: diagnosed(value) for name, value in scales.items()},
    )  # fmt: skip
