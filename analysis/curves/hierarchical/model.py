"""The hierarchical model, in NumPyro: binomial judgements, runs, paradigms in phenomena, lines that may bend.

logit P(right) of run r in paradigm k = run + run in the phenomenon of k + paradigm at the size of r + cell. Each part
has a line in log2 words, a curve (a quadratic polynomial) and bends (of higher degree). Contrasts (`Counts`) keep the
parts apart, so that each is found in the judgements alone: runs carry what all paradigms have in common, runs in
phenomena what those of a phenomenon share. Deviations within a part have one normal distribution, whose spread is
estimated: this is what draws a paradigm to the others of its phenomenon, and a bend to none. Curves have a spread of
their own: what is a line in accuracy is curved in logits near the ceiling, by more than chance bends a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from analysis.curves.hierarchical.counts import SHARED, Counts

# Medians of log-normal priors (deviation 1 of the logarithm) of spreads, in logits; slope: a doubling.
SPREADS = {
    "phenomenon": {"level": 0.3, "slope": 0.03, "curve": 0.05, "bend": 0.05},
    "paradigm": {"level": 0.7, "slope": 0.07, "curve": 0.05, "bend": 0.05},
}
OVERALL_BEND = 0.05
RUN, RUN_IN_PHENOMENON, CELL, SEED, SEED_SLOPE = 0.12, 0.06, 0.12, 0.1, 0.02
OVERALL = {"level": 1.5, "slope": 0.3, "curve": 0.3}  # deviations of normal priors
TILT, UNEVEN = 0.15, 0.3  # how spreads between runs change: a doubling, and from size to size
UNEVEN_PARADIGMS = 0.5  # and from paradigm to paradigm
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
Values = Mapping[str, Any]


def values_of(counts: Counts) -> dict[str, Any]:
    """Return the arrays of the model as it takes them."""
    share = np.clip(counts.right / counts.pairs, 1e-6, 1 - 1e-6)
    saturated = counts.right * np.log(share) + (counts.pairs - counts.right) * np.log1p(-share)
    overlap = {"overlap": counts.overlap[:, None]} if counts.overlap.any() else {}
    values = {
        "right": counts.right, "pairs": counts.pairs, "saturated": saturated, "of": counts.of, "seed": counts.seed,
        "group": np.equal.outer(counts.group, np.arange(len(counts.groups))).astype(np.float64),
        "x": counts.doublings, "between": counts.between, "within": counts.within, **overlap,
    }  # fmt: skip
    nested = {**values, "basis": counts.basis, "centring": counts.centring}
    arrays: dict[str, Any] = jax.tree.map(lambda value: jnp.asarray(value, dtype=jnp.float32), nested)
    return arrays


def judgements_model(values: Values) -> None:
    """Declare the model of `values_of`; sites "accuracy", "logit" (L, K), "spreads" (3, L) and more are derived."""
    of, within, between = values["of"], values["within"], values["between"]
    lines = {"overall": _overall(values), "phenomenon": _pooled(values, "phenomenon", between.shape[1])}
    lines["paradigm"] = _pooled(values, "paradigm", within.shape[1])
    spread = {name: _spread(values, name, median) for name, median in
              (("run", RUN), ("run_in_phenomenon", RUN_IN_PHENOMENON), ("cell", CELL))}  # fmt: skip
    if not between.shape[1]:
        spread["run_in_phenomenon"] = jnp.zeros_like(spread["run"])
    seeds, seed_variance = _seeds(values)
    run = _effects(values, "run", of @ lines["overall"] + seeds["run"], spread["run"])
    cells = run + of @ lines["paradigm"] @ within.T + seeds["cell"]
    if between.shape[1]:
        cells += (
            _effects(values, "run_in_phenomenon", of @ lines["phenomenon"], spread["run_in_phenomenon"]) @ between.T
        )
    paradigms = _paradigm_spreads(values)
    logits = _effects(values, "cell", cells, spread["cell"], paradigms)
    chance = values["right"] * logits - values["pairs"] * jax.nn.softplus(logits) - values["saturated"]
    numpyro.factor("judgements", chance.sum())
    level = lines["overall"] + lines["phenomenon"] @ between.T + lines["paradigm"] @ within.T
    of_phenomenon = (between**2).sum(axis=1)
    variance = (spread["run"] ** 2 + seed_variance.sum(axis=0))[:, None] + (spread["cell"][:, None] * paradigms) ** 2
    variance = variance + (spread["run_in_phenomenon"] ** 2)[:, None] * of_phenomenon
    over_runs = jax.nn.sigmoid(level[..., None] + jnp.sqrt(variance)[..., None] * NODES) @ jnp.asarray(WEIGHTS)
    numpyro.deterministic("accuracy", over_runs)
    numpyro.deterministic("logit", level)
    numpyro.deterministic("paradigm_spreads", paradigms)
    numpyro.deterministic("spreads", jnp.stack([spread["run"], spread["run_in_phenomenon"], spread["cell"]]))


def _partly_centred(name: str, location: Any, spread: Any, centring: Any) -> Any:
    """Draw normal effects, of which the share `centring` is centred (Papaspiliopoulos, Roberts and Skoeld 2007)."""
    drawn = numpyro.sample(name, dist.Normal(centring * location, spread**centring))
    return location + spread ** (1 - centring) * (drawn - centring * location)


def _positive(name: str, median: float, shape: tuple[int, ...] = ()) -> Any:
    return numpyro.sample(name, dist.LogNormal(jnp.full(shape, np.log(median)), 1.0))


def _overall(values: Values) -> Any:
    """Return the (L, 1) curves of what all paradigms share."""
    curve: Any = 0.0
    for kind, columns in values["basis"].items():
        if not columns.shape[1]:
            continue
        none = jnp.zeros(columns.shape[1])
        if kind in OVERALL:
            coefficients = numpyro.sample(kind, dist.Normal(none, OVERALL[kind]))
        else:
            coefficients = _partly_centred(kind, none, _positive(f"{kind}_spread", OVERALL_BEND), 0.5)
        curve = curve + columns @ coefficients[:, None]
    return curve


def _pooled(values: Values, part: str, columns: int) -> Any:
    """Return the (L, columns) curves of phenomena or of paradigms; levels and slopes of groups are drawn together."""
    curves = jnp.zeros((len(values["x"]), columns))
    if not columns:
        return curves
    for kind, basis in values["basis"].items():
        name, median, count = f"{part}_{kind}", SPREADS[part][kind], basis.shape[1]
        if not count:
            continue
        location, centring = jnp.zeros((count, columns)), values["centring"][name]
        if count > 1 and kind in SHARED:
            shared_spread = _positive(f"{name}_spread_shared", median)
            shared = _partly_centred(f"{name}_shared", jnp.zeros(columns), shared_spread, centring.mean())
            location, median = jnp.broadcast_to(shared, location.shape), median / 2
        spread = _positive(f"{name}_spread", median)
        curves = curves + basis @ _partly_centred(name, location, spread, centring)
    return curves


def _spread(values: Values, name: str, median: float) -> Any:
    """Return the (L,) spread of an effect of runs: of each group, log-linear in log2 words, uneven as it may be."""
    if name == "run_in_phenomenon" and not values["between"].shape[1]:
        return jnp.zeros(len(values["x"]))
    groups = values["group"].shape[1]
    middle = numpyro.sample(f"{name}_spread", dist.Normal(jnp.full(groups, np.log(median)), 1.0))
    tilt = numpyro.sample(f"{name}_tilt", dist.Normal(jnp.zeros(groups), TILT))
    uneven = numpyro.sample(f"{name}_unevenness", dist.HalfNormal(UNEVEN))
    each = numpyro.sample(f"{name}_uneven", dist.Normal(jnp.zeros(len(values["x"])), 1.0))
    return jnp.exp(values["group"] @ middle + values["group"] @ tilt * values["x"] + uneven * each)


def _paradigm_spreads(values: Values) -> Any:
    """Return the (K,) factors by which runs differ more, or less, in each paradigm than in others."""
    unevenness = numpyro.sample("paradigm_unevenness", dist.HalfNormal(UNEVEN_PARADIGMS))
    each = numpyro.sample("paradigm_uneven", dist.Normal(jnp.zeros(values["right"].shape[1]), 1.0))
    return jnp.exp(unevenness * each)


def _effects(values: Values, name: str, location: Any, spread: Any, factors: Any = 1.0) -> Any:
    """Return effects of runs around `location`: what text in common adds to all, and what each run has of its own."""
    of_run = (values["of"] @ spread)[:, None] * factors
    centring = values["centring"][name]
    if "overlap" in values:
        groups = values["group"].shape[1]
        common = numpyro.sample(f"{name}_in_common", dist.Normal(jnp.zeros((groups, location.shape[1])), 1.0))
        location = location + jnp.sqrt(values["overlap"]) * of_run * (values["of"] @ values["group"] @ common)
        of_run = of_run * jnp.sqrt(jnp.maximum(1 - values["overlap"], 1e-3))
    return _partly_centred(f"{name}_effects", location, of_run, centring)


def _seeds(values: Values) -> tuple[dict[str, Any], Any]:
    """Return what nested samples of a seed share, by effect, and its (2, L) variances over seeds, of run and cell."""
    seed, x = values["seed"], values["x"]
    if not seed.shape[1]:
        return {"run": 0.0, "cell": 0.0}, jnp.zeros((2, len(x)))
    effects, variances = {}, []
    nested = (values["of"].T @ seed).sum(axis=1) > 0  # (L,)
    for name, columns in (("run", 1), ("cell", values["right"].shape[1])):
        effect, variance = jnp.zeros((len(seed), columns)), jnp.zeros(len(x))
        for kind, median, at in (("seed", SEED, jnp.ones(len(x))), ("seed_slope", SEED_SLOPE, x)):
            spread = _positive(f"{name}_{kind}_spread", median)
            each = numpyro.sample(f"{name}_{kind}", dist.Normal(jnp.zeros((seed.shape[1], columns)), 1.0))
            effect = effect + spread * (seed @ each) * (values["of"] @ at)[:, None]
            variance = variance + jnp.where(nested, (spread * at) ** 2, 0.0)
        effects[name] = effect
        variances.append(variance)
    return effects, numpyro.deterministic("seed_variance", jnp.stack(variances))
