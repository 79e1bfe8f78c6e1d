"""Whether the sampler of the hierarchical model may be believed."""

from __future__ import annotations

from dataclasses import dataclass

MOST_R_HAT, LEAST_DRAWS, MOST_DIVERGING, MOST_R_HAT_OF_SPREADS = 1.05, 100, 0.01, 1.1  # beyond: no results are stated
GOOD_R_HAT, GOOD_DRAWS = 1.01, 400  # of quantities that are shown: Vehtari et al. 2021, section 4


@dataclass(frozen=True)
class Diagnosis:
    """How well the chains mixed.

    r_hat, effective: the largest R-hat, and the fewest effective draws, of all slopes and differences that are shown;
    spread_r_hat, spread_effective: likewise of the model's spreads. divergences: among `draws` of all chains.
    """

    r_hat: float
    effective: float
    spread_r_hat: float
    spread_effective: float
    divergences: int
    draws: int
    chains: int
    seconds: float

    @property
    def refused(self) -> str:
        """Why no results are stated; "" if they are."""
        return self._short_of(MOST_R_HAT, LEAST_DRAWS, MOST_R_HAT_OF_SPREADS, MOST_DIVERGING * self.draws)

    @property
    def caution(self) -> str:
        """What is short of what is recommended; "" if nothing is."""
        return self._short_of(GOOD_R_HAT, GOOD_DRAWS, MOST_R_HAT, 0)

    def _short_of(self, r_hat: float, effective: float, spread_r_hat: float, divergences: float) -> str:
        parts = []
        if not self.r_hat <= r_hat:
            parts.append(f"R-hat up to {self.r_hat:.3f}, above {r_hat}")
        if not self.effective >= effective:
            parts.append(f"as few as {self.effective:,.0f} effective draws, below {effective}")
        if not self.spread_r_hat <= spread_r_hat:
            parts.append(f"R-hat of spreads up to {self.spread_r_hat:.3f}, above {spread_r_hat}")
        if self.divergences > divergences:
            parts.append(f"{self.divergences} of {self.draws:,} draws diverged")
        return "; ".join(parts)
