"""What is thought of W before any row: model and letters are those of ``sf2el.maps.gaussian_map``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.map_sums import Coordinates, Sums, root
from sf2el.maps.gaussian_map import (
    COMMON,
    FARTHEST_ZERO,
    LEAST_WEIGHT,
    ONE_SIGN,
    RIDGE,
    SHARES_OF_NOISE,
    SURE_OF_ZERO,
    UNLIKELY,
)

Floats = npt.NDArray[np.float64]


def thought(found: Sums, deviation: Floats) -> Coordinates:
    """Return coordinates in which all of W is alike beforehand, by what the overlap says of sums."""
    alike, varies = Coordinates(np.ones(len(deviation)), 0.0), deviation > 0.0
    if not found.weight > 2.0 or not varies.any():
        return alike
    size = float(np.sqrt(np.mean(deviation[varies] ** 2)))
    as_read = Coordinates(np.maximum(deviation / size, LEAST_WEIGHT), COMMON)
    odds = _evidence(found, as_read) - _evidence(found, alike) - UNLIKELY
    share = 1.0 / (1.0 + np.exp(-odds)) if odds > 0.0 else np.exp(odds) / (1.0 + np.exp(odds))
    squares = share * as_read.weights**2 + (1.0 - share)
    return Coordinates(np.sqrt(squares / np.mean(squares)), float(share) * COMMON)


def _evidence(found: Sums, at: Coordinates) -> float:
    """Return the log probability of the overlap's new features, but for what does not depend on these."""
    freedom, p, varies = found.weight - 1.0, len(at.weights), found.aa > 0.0
    turned = found.within(at)
    total = float(np.trace(turned.xx))
    if not total > 0.0 or not varies.any():
        return 0.0
    scale = freedom / total
    found_for = []
    for share in SHARES_OF_NOISE:
        noise = share / (1.0 - share)
        lower = root(scale * turned.xx, noise)
        told = scale * np.sum(np.linalg.solve(lower, turned.xa) ** 2, axis=0)
        left = float(np.mean(1.0 - told[varies] / found.aa[varies]))
        volume = 2.0 * float(np.sum(np.log(np.diagonal(lower)))) - p * np.log(noise)
        found_for.append(-0.5 * varies.sum() * (volume + freedom * np.log(max(left, 1e-9))))
    most = max(found_for)
    return float(most + np.log(sum(np.exp(one - most) for one in found_for)))


def zero_counts(found: Sums, tau: Floats, x: Floats, a: Floats) -> bool:
    """Whether new features read 0 where the old ones do: at (x, a) from the overlap's mean."""
    rows, varies = found.weight, found.aa > 0.0
    at = Coordinates(tau, ONE_SIGN)
    turned, x = found.within(at), at.within(x)
    total = float(np.trace(turned.xx))
    if not rows > 2.0 or not total > 0.0 or not varies.any():
        return False
    # In deviations that each new feature had in the overlap.
    inverse = np.sqrt(rows / found.aa[varies])
    w, _, half = turned.left_by(RIDGE)
    scale = rows / total
    known = scale * RIDGE * (1.0 + 1.0 / rows + float(np.sum((half @ x) ** 2)))
    open_ = known + scale * float(x @ x)
    squares = ((a - w.T @ x)[varies] * inverse) ** 2
    odds = 0.5 * np.sum(np.log(open_ / known) - squares * (1.0 / known - 1.0 / open_))
    return bool(odds >= SURE_OF_ZERO)


def zero_of(mean: Floats, deviation: Floats) -> Floats | None:
    """Return where all old features read 0, in their deviations from their means; None: too far away."""
    varies = deviation > 0.0
    zero = -np.divide(mean, deviation, out=np.zeros(len(mean)), where=varies)
    return zero if bool(np.all(np.abs(zero) <= FARTHEST_ZERO)) else None
