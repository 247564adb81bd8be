"""Ten million labelled rounds of the posterior expert in float32, a million in float16: as good as it was?"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

import numpy as np

from sf2el.core import backend
from sf2el.experts.posterior import PosteriorSettings

ROUNDS, BLOCK = 10_000_000, 100_000


def main() -> int:
    """Soak experts that keep the inverse of their Gram matrix, or compute it, and the same in halves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    given = parser.parse_args()
    return max(
        soak(given.rounds, keep_inverse=True),
        soak(given.rounds, keep_inverse=False),
        soak(given.rounds // 10, keep_inverse=True, precision="float16"),
        soak(given.rounds // 10, keep_inverse=False, precision="float16"),
    )


def soak(rounds: int, *, keep_inverse: bool, precision: str = "float32") -> int:
    """Learn; print the accuracy at both ends and what was repaired; return 1 if it failed."""
    settings = PosteriorSettings(
        size=20,
        gamma=1.5,
        centred=0.9,
        tie_noise=10.0,
        linear_scale=2.0,
        rbf_scale=12.0,
        matched=True,
        keep_inverse=keep_inverse,
    )
    expert = backend(None).Posterior(settings, 5, precision)
    rng = np.random.default_rng(0)
    start, right = perf_counter(), []
    for _ in range(0, rounds, BLOCK):
        X = rng.normal(size=(BLOCK, 5)) / np.sqrt(5.0)
        y = np.where(X[:, 0] * X[:, 1] + 0.2 * X[:, 2] > 0.0, 1.0, -1.0)
        scores, _ = expert.run(X, y)
        right.append(float(np.mean((scores[:, 0] >= 0.0) == (y > 0.0))))
    state = expert.state()
    finite = all(
        np.all(np.isfinite(state[name])) for name in ("rows", "coefficients", "covariance", "inverse")
    )
    prior = np.concatenate([np.full(6, 2.0), 12.0 * np.diagonal(state["inverse"])])
    least = float(np.min(prior + np.diagonal(state["covariance"])))
    print(f"form              {precision}, inverse {'kept' if keep_inverse else 'computed in every round'}")
    print(f"rounds            {rounds:,}")
    print(f"accuracy          {right[0]:.4f} in the first block, {right[-1]:.4f} in the last")
    print(f"repaired          {state['floored']:,} steps; inverse computed anew {state['refreshed']:,} times")
    print(f"least variance    {least:.3g} of a coefficient; all numbers finite: {finite}")
    print(f"seconds           {perf_counter() - start:.1f}\n")
    return 0 if finite and least > -1e-3 and right[-1] > right[0] - 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
