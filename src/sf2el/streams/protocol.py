"""The stream of one run of the paper's experiments."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from sf2el.streams.two_spaces import TwoSpaceStream, label_mask

Floats = npt.NDArray[np.float64]


class KnownSpaces(Protocol):
    """Rows known in both spaces, their labels, and published stream orders: a dataset."""

    @property
    def old(self) -> Floats:
        """The old space's rows."""

    @property
    def new(self) -> Floats:
        """The new space's rows."""

    @property
    def y(self) -> Floats:
        """The labels, +1 / -1."""

    @property
    def orders(self) -> npt.NDArray[np.int64] | None:
        """Published orders, one a row, counted from 0."""


def stream_for(
    dataset: KnownSpaces, run_seed: int, label_rate: float = 0.3, overlap: int = 10
) -> TwoSpaceStream:
    """Return the stream of a run: T1 = n // 2, the order and the label mask given by the run's seed.

    Where the dataset has published orders, run k takes the k-th, and seeds beyond them a permutation of
    their own. The mask is drawn once, whatever the classes.

    Parameters
    ----------
    dataset
        What :func:`sf2el.datasets.load` returns.
    run_seed
        The run: 0 to 9 in the paper's tables.
    label_rate
        Probability that a round reveals its label.
    overlap
        B, the rounds that have both spaces.

    Examples
    --------
    >>> from sf2el.datasets import load
    >>> stream = stream_for(load("swiss"), 0)
    >>> stream.t1, len(stream.after_swap), int(stream.labelled.sum())
    (1000, 1000, 600)
    """
    n, orders = len(dataset.y), dataset.orders
    rng = np.random.default_rng(run_seed)
    order: npt.NDArray[np.int64] = rng.permutation(n)
    if orders is not None and 0 <= run_seed < len(orders):
        order = orders[run_seed]
    return TwoSpaceStream.cut(
        dataset.old[order],
        dataset.new[order],
        y=dataset.y[order],
        labelled=label_mask(n, label_rate, rng),
        overlap=overlap,
    )
