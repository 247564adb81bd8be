"""Projection onto the rows of a buffer: the inverse of their Gram matrix, and pursuit without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]


def inverse_of(matrix: Array) -> Array:
    """Return the inverse of a symmetric matrix, or its pseudo-inverse where there is none."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(matrix, hermitian=True)
    return _symmetric(inverse)


def replaced_in_inverse(inverse: Array, slot: int, k: Array, own: Any) -> Array | None:
    """Return the inverse with an arriving row in place of another: a rank-two update; None if it fails.

    ``k`` are the kernels of the arriving row with those there are, ``own`` that with itself and the jitter.
    """
    real = inverse.dtype.type
    e = inverse @ k
    g = own - float(k @ e)
    q = inverse[:, slot] + e * (e[slot] / real(g))
    pivot = q[slot]
    if not (g > 0.0 and pivot > 0.0):
        return None
    # The arriving row takes over the slot: its coordinate of e is -1, of q that of the new row.
    q[slot] = -e[slot] / real(g)
    e[slot] = -1.0
    inverse = inverse.copy()
    inverse[slot, :] = 0.0
    inverse[:, slot] = 0.0
    return _symmetric(inverse + (np.outer(e, e / real(g)) - np.outer(q, q / pivot)))


def pursue(gram: Array, target: Array, jitter: Any, steps: int) -> Array:
    """Return coefficients by kernel matching pursuit with back-fitting (Vincent and Bengio, 2002)."""
    n, real = len(target), gram.dtype
    sizes = np.sqrt(np.diagonal(gram) + jitter)
    chosen: list[int] = []
    coefficients: Array = np.zeros(n, real)
    residual = target.copy()
    first = 0.0
    for _ in range(min(steps, n)):
        gains = np.abs(residual) / sizes
        gains[chosen] = -1.0
        best = int(np.argmax(gains))
        first = first or float(gains[best])
        if not gains[best] > 1e-12 * first:
            break
        chosen.append(best)
        block = gram[np.ix_(chosen, chosen)] + jitter * np.eye(len(chosen), dtype=real)
        try:
            solution = np.linalg.solve(block, target[chosen])
        except np.linalg.LinAlgError:  # nothing more can be told apart
            break
        residual = target - gram[:, chosen] @ solution
        coefficients[:] = 0.0
        coefficients[chosen] = solution
    return coefficients


def _symmetric(matrix: Array) -> Array:
    """Return the mean of a matrix and its transpose: symmetric to the bit."""
    return np.asarray(0.5 * (matrix + matrix.T))
