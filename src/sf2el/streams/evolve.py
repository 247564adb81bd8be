"""Building streams whose features change, from rows that have all their features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import check_range, check_whole, plain_number
from sf2el.streams.evolving import MOST_ROUNDS, EvolvingStream, Space
from sf2el.streams.matrices import MatrixKind, random_matrix, with_noise
from sf2el.streams.protocol import KnownSpaces
from sf2el.streams.two_spaces import Floats, label_mask

Arrays = tuple[npt.ArrayLike, npt.ArrayLike] | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
Order = Literal["shuffle", "given"] | npt.ArrayLike


def evolve(
    data: KnownSpaces | Arrays,
    *,
    seed: int,
    cycles: int = 1,
    overlap: int = 10,
    t1: int | None = None,
    t2: int | None = None,
    dims: int | Sequence[int] | None = None,
    matrix: MatrixKind = "uniform",
    noise: float = 0.0,
    order: Order = "shuffle",
    label_rate: float = 0.3,
    label_delay: int = 0,
) -> EvolvingStream:
    """Return a stream of spaces S1, S2 and so on, in which the features change ``cycles`` times.

    S1 is the data's own (old) space and S2 its new one, if it has one. Every other space is S1 times a fresh
    random matrix. Order, label mask, matrices and noise each have a random generator of their own, so that
    changing one leaves the others as they were.

    Parameters
    ----------
    data
        A dataset, or arrays ``(X, y)`` or ``(X1, X2, y)``.
    seed
        Fixes everything that is drawn.
    cycles
        How often the features change; there are one more spaces.
    overlap
        B, the rounds at each change that have both spaces.
    t1
        Rounds that have the first space; by default what ``t2`` leaves, or an equal share.
    t2
        Rounds of each later space alone and of its overlap with the next. By default an equal share of what
        t1 leaves, the last space taking the remainder too. If both are given, rows may be left over.
    dims
        Features of each generated space: one number for all, or one for each; by default as many as S2 has,
        or else S1.
    matrix
        ``"uniform"``: entries from Uniform(0, 1); ``"gaussian"``: standard normal.
    noise
        Measurement noise in every space but the first: its sd, as a share of each feature's sd.
    order
        ``"shuffle"``, ``"given"`` (as the rows are), or a permutation of the rows.
    label_rate
        Probability that a round's label is revealed, whatever its class.
    label_delay
        Rounds that pass before a label is revealed.

    Examples
    --------
    >>> from sf2el.datasets import load
    >>> stream = evolve(load("swiss"), cycles=2, seed=0)
    >>> [(period.spaces, len(period.y)) for period in stream.periods()]  # doctest: +NORMALIZE_WHITESPACE
    [(('s1',), 656), (('s1', 's2'), 10), (('s2',), 657), (('s2', 's3'), 10), (('s3',), 667)]
    >>> sorted(next(iter(stream)).x)
    ['s1_0', 's1_1']
    """
    X1, X2, y = _arrays(data)
    cycles, overlap, t1, t2, noise = map(plain_number, (cycles, overlap, t1, t2, noise))
    check_whole("cycles", cycles, 1, 1000)
    check_range("noise", noise, least=0.0)
    lengths = _lengths(len(y), cycles, t1, t2)
    if not 0 <= overlap <= min(lengths[:-1]):
        raise ValueError(f"overlap must be from 0 to {min(lengths[:-1])} rounds here, not {overlap}.")
    for_order, for_mask, for_matrices, for_noise = np.random.SeedSequence(seed).spawn(4)
    rows = _order(order, len(y), for_order)[: sum(lengths)]
    spaces = _spaces(X1, X2, _widths(dims, cycles, X1, X2), matrix, for_matrices)
    spaces[1:] = [
        with_noise(space, noise, np.random.default_rng(child))
        for space, child in zip(spaces[1:], for_noise.spawn(cycles), strict=True)
    ]
    ends = np.cumsum(lengths).tolist()
    starts = [0] + [end - overlap for end in ends[:-1]]
    observed = tuple(
        Space(f"s{place}", start, space[rows[start:end]])
        for place, (space, start, end) in enumerate(zip(spaces, starts, ends, strict=True), start=1)
    )
    labelled = label_mask(len(rows), label_rate, np.random.default_rng(for_mask))
    return EvolvingStream(observed, y[rows], labelled, label_delay)


def _arrays(data: KnownSpaces | Arrays) -> tuple[Floats, Floats | None, npt.NDArray[Any]]:
    if not isinstance(data, (tuple, list)) or hasattr(data, "old"):
        parts: Sequence[Any] = (data.old, data.new, data.y)  # type: ignore[union-attr]
    else:
        parts = data
    if len(parts) not in (2, 3):
        raise ValueError("data must be a dataset, (X, y) or (X1, X2, y).")
    spaces, y = [np.asarray(part, dtype=np.float64) for part in parts[:-1]], np.asarray(parts[-1])
    if any(space.ndim != 2 or len(space) != len(y) for space in spaces) or y.ndim != 1:
        raise ValueError("Each space must be a table with one row for each label.")
    return spaces[0], (spaces[1] if len(spaces) == 2 else None), y


def _lengths(n: int, cycles: int, t1: int | None, t2: int | None) -> list[int]:
    """Return the rounds that end with each space: T1, then T2 of every later one."""
    for name, value in (("t1", t1), ("t2", t2)):
        if value is not None:
            check_whole(name, value, 1, MOST_ROUNDS)
    if t1 is None:
        t1 = n // (cycles + 1) if t2 is None else n - cycles * t2
    later = [(n - t1) // cycles if t2 is None else t2] * cycles
    if t2 is None:
        later[-1] = n - t1 - sum(later[:-1])
    if t1 < 1 or min(later) < 1 or t1 + sum(later) > n:
        raise ValueError(f"{cycles} cycles of t1 = {t1} and t2 = {later[0]} rounds do not fit into {n} rows.")
    return [t1, *later]


def _widths(dims: int | Sequence[int] | None, cycles: int, X1: Floats, X2: Floats | None) -> list[int]:
    """Return the number of features of each space to be generated."""
    spaces = cycles if X2 is None else cycles - 1
    if dims is None:
        dims = int((X1 if X2 is None else X2).shape[1])
    widths = [plain_number(width) for width in (dims if isinstance(dims, Iterable) else [dims] * spaces)]
    if len(widths) != spaces:
        raise ValueError(f"dims must have {spaces} entries, one for each generated space, not {len(widths)}.")
    for width in widths:
        check_whole("dims", width, 1, 1 << 20)
    return widths


def _spaces(
    X1: Floats, X2: Floats | None, widths: list[int], matrix: MatrixKind, seed: np.random.SeedSequence
) -> list[Floats]:
    """Return all rows in every space: the given ones, then those from fresh matrices."""
    generated = [
        np.asarray(X1 @ random_matrix(X1.shape[1], width, matrix, np.random.default_rng(child)))
        for width, child in zip(widths, seed.spawn(len(widths)), strict=True)
    ]
    return [X1, *generated] if X2 is None else [X1, X2, *generated]


def _order(order: Order, n: int, seed: np.random.SeedSequence) -> npt.NDArray[np.int64]:
    if isinstance(order, str):
        if order == "shuffle":
            return np.random.default_rng(seed).permutation(n)
        if order == "given":
            return np.arange(n)
        raise ValueError(f"order must be 'shuffle', 'given' or a permutation of the rows, not {order!r}.")
    rows = np.asarray(order)
    if rows.shape != (n,) or not np.array_equal(np.sort(rows), np.arange(n)):
        raise ValueError(f"order must name each of the {n} rows once, counted from 0.")
    return rows.astype(np.int64)
