"""Statistics of repeated runs: mean, standard deviation, paired differences with an interval, as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sf2el.evaluate import Paired, paired

__all__ = ["Paired", "mean_std", "paired", "signed_text", "spread_text"]


def mean_std(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and sample standard deviation (None for a single run, which has none).

    >>> mean_std([0.5, 0.7])
    {'mean': 0.6, 'std': 0.141421}
    """
    return {
        "mean": round(float(np.mean(values)), 6),
        "std": round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else None,
    }


def spread_text(mean: float, std: float | None, digits: int = 3) -> str:
    """Return a mean with its deviation to read.

    >>> spread_text(0.5, 0.02), spread_text(0.5, None)
    ('0.500 ± 0.020', '0.500')
    """
    return f"{mean:.{digits}f}" + ("" if std is None else f" ± {std:.{digits}f}")


def signed_text(value: float, digits: int = 4) -> str:
    """Return a difference to read: with its sign, unless it is zero in these digits.

    >>> signed_text(0.01234), signed_text(-0.00001), signed_text(-0.25, 3)
    ('+0.0123', '0.0000', '-0.250')
    """
    shown = f"{value:+.{digits}f}"
    return shown if float(shown) else shown[1:]
