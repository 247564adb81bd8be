"""One online kernel learner in one feature space."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core import native, variant
from sf2el.core.rng import STRIDE, SplitMix64
from sf2el.inputs.parameters import check_choice, check_whole, plain_number
from sf2el.paper.settings import LearnerSettings, Precision, check_buffer_size

Floats = npt.NDArray[np.float64]

TWO_CLASSES = ("logistic", "hinge", "squared_hinge")
"""Losses that tell two classes apart: of any label but -1 and +1 they make something that nobody meant."""


class Learner:
    r"""The paper's learner: first order, with a manifold term, on a reservoir of rows.

    The function is :math:`f = \sum_{s \in B} \beta_s K(x_s, \cdot)` over a buffer B of n rows. A round
    with the row x has the risk

    .. math::
        J = c\,\ell(f(x), y) + \tfrac{\lambda_1}{2}\|f\|_K^2
          + \lambda_2 \tfrac{seen}{n} \sum_{s \in B} w_s (f(x_s) - f(x))^2,

    the loss only where the row is labelled, and moves f by one step :math:`\tau_0/\sqrt{t}` down the
    gradient of J. What the buffer cannot hold is projected onto what it holds.

    Time O(b (b + d)) a round, memory O(b (b + d)), for a buffer of b rows with d features.

    Parameters
    ----------
    settings
        Parameters and switches; see :class:`LearnerSettings`.
    dim
        Number of features.
    buffer_size
        Rows the buffer can hold, at least 2.
    seed
        Seed of the reservoir.
    precision
        ``"float64"`` or ``"float32"``: how rows, coefficients and matrices are kept.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> labels = np.where(rng.random(400) < 0.3, y, np.nan)  # NaN: unlabelled
    >>> settings = LearnerSettings(label_rate=0.3, on_skip="project")
    >>> learner = Learner(settings, dim=2, buffer_size=60)
    >>> scores, risks = learner.run(X, labels)
    >>> float(np.mean((scores >= 0)[200:] == (y > 0)[200:]))
    0.855

    References
    ----------
    Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
    Goldberg, Li and Zhu, Online Manifold Regularization, ECML PKDD 2008.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        *,
        dim: int,
        buffer_size: int,
        seed: int = 0,
        precision: Precision = "float64",
    ) -> None:
        dim, buffer_size, seed = map(plain_number, (dim, buffer_size, seed))
        check_whole("dim", dim, 1, 1 << 24)
        check_buffer_size(buffer_size)
        check_whole("seed", seed, 0, (1 << 64) - 1)
        check_choice("precision", precision, ("float64", "float32"))
        self.settings, self.dim, self.buffer_size, self.precision = settings, dim, buffer_size, precision
        self.core: Any = build_learner(settings, dim, buffer_size, seed, precision)

    def predict(self, x: npt.ArrayLike) -> float:
        """Return the score f(x); its sign is the class."""
        return float(self.core.predict(np.asarray(x, dtype=np.float64)))

    def learn(self, x: npt.ArrayLike, y: float = float("nan"), weight: float = 1.0) -> tuple[float, float]:
        """Learn one row, labelled or not (NaN); return its score and risk from before the update.

        Labels are -1 and +1, and numbers for the squared and the absolute loss. ``weight`` multiplies the
        loss.
        """
        self._check_label(plain_number(y))
        score, risk = self.core.learn(np.asarray(x, dtype=np.float64), y, weight)
        return score, risk

    def learn_late(self, x: npt.ArrayLike, y: float, weight: float = 1.0) -> tuple[float, float]:
        """Learn the label of a row that was learned without it; return its score and risk of now.

        Only the loss part of a step of now is taken: no round is counted. A row that is no longer in the
        buffer is treated as a skipped one (``on_skip``).
        """
        self._check_label(plain_number(y))
        score, risk = self.core.learn_late(np.asarray(x, dtype=np.float64), y, weight)
        return score, risk

    def run(self, X: npt.ArrayLike, y: npt.ArrayLike, *, frozen: bool = False) -> tuple[Floats, Floats]:
        """Predict and learn every row in turn: the loop of ``learn``, bit for bit, in one call.

        ``frozen`` leaves the function and the buffer as they are, and only counts rounds.
        """
        labels = np.asarray(y)
        others = labels[(labels != 1) & (labels != -1) & (labels == labels)]
        if others.size:
            self._check_label(others.tolist()[0])
        scores, risks = self.core.run(_rows(X), np.asarray(labels, dtype=np.float64), frozen)
        return scores, risks

    def _check_label(self, y: Any) -> None:
        if self.settings.loss in TWO_CLASSES and y != 1 and y != -1 and y == y:
            raise ValueError(
                f"The {self.settings.loss} loss takes the labels -1 and +1, and NaN for none, not {y!r}."
            )

    def predict_many(self, X: npt.ArrayLike) -> Floats:
        """Return the score of every row."""
        scores: Floats = self.core.predict_many(_rows(X))
        return scores

    def restart(self) -> None:
        """Restart the step size, as the paper does for the old learner when its features vanish."""
        self.core.restart()

    def copy(self) -> Learner:
        """Return an independent copy."""
        other = object.__new__(Learner)
        other.__dict__.update(self.__dict__)
        other.core = self.core.copy()
        return other

    @property
    def buffer(self) -> Floats:
        """The rows in the buffer."""
        return np.asarray(self.core.state()["rows"], dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of everything the learner keeps, working scratch apart."""
        return int(self.core.nbytes)


def build_learner(
    settings: LearnerSettings, dim: int, capacity: int, seed: int, precision: str = "float64"
) -> Any:
    """Return the compiled learner of these settings."""
    s = settings
    return native().learner(
        dim=dim,
        capacity=capacity,
        seed=seed,
        kernel=[kernel.parameters() for kernel in s.kernel.terms()],
        loss=s.loss,
        graph_width=float(s.graph_width),
        ridge=float(s.ridge),
        smoothness=float(s.smoothness),
        step=float(s.step),
        label_rate=0.0 if s.label_rate is None else float(s.label_rate),
        radius=float(s.radius),
        jitter=float(s.jitter),
        manifold=s.manifold,
        equations=s.equations,
        cap=s.cap,
        projection=s.projection,
        pursuit_steps=s.pursuit_steps,
        keep_gram=s.keep_gram,
        on_skip=s.on_skip,
        sampling=s.sampling,
        precision=precision,
        variant=variant(),
    )


def learner_seed(seed: int, space: int) -> int:
    """Return the seed of the learner of the ``space``-th feature space (from 0) of a run.

    That word of the generator is found at once, however many spaces there were: a file may claim any number.

    >>> rng = SplitMix64(7)
    >>> [learner_seed(7, space) == rng.next() for space in range(3)], learner_seed(7, 10**18) > 0
    ([True, True, True], True)
    """
    return SplitMix64(seed + space * STRIDE).next()


def _rows(X: npt.ArrayLike) -> Floats:
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"Pass a table of rows and features, not an array of {rows.ndim} dimensions.")
    return rows
