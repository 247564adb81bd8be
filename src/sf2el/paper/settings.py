"""The settings of a learner: every parameter and every switch, declared and checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sf2el.inputs.parameters import (
    check_choice,
    check_flag,
    check_range,
    check_whole,
    is_plain_number,
    plain_numbers,
)
from sf2el.paper.kernels import KERNELS, RBF, Kernel
from sf2el.paper.losses import LOSSES

Equations = Literal["gradient", "printed", "printed-weighted"]
Projection = Literal["exact", "pursuit"]
OnSkip = Literal["drop", "project"]
Sampling = Literal["reservoir", "stratified"]
Precision = Literal["float64", "float32"]

LEAST_BUFFER = 2
MOST_BUFFER = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """Parameters and switches of the paper's learner in one feature space.

    Parameters
    ----------
    kernel
        The kernel K of the function space.
    graph_width
        ``gw`` of the edge weights ``w_s = exp(-gw ||x_s - x||^2)`` of the manifold term.
    loss
        ``"logistic"``, ``"hinge"``, ``"squared_hinge"``, ``"squared"`` or ``"absolute"``.
    ridge
        lambda1, the weight of ``||f||^2 / 2``.
    smoothness
        lambda2, the weight of the manifold term.
    step
        tau0 of the step ``tau_t = tau0 / sqrt(t)``.
    label_rate
        The probability that a label is revealed; None estimates it from the rounds seen.
    manifold
        Whether the manifold term is there (the paper's "+MR"). Without it unlabelled rounds leave the
        coefficients as they are.
    equations
        ``"gradient"``: the true gradient of the risk; ``"printed"``: the update as the paper prints it;
        ``"printed-weighted"``: as printed, but with the edge weight kept where a row is skipped.
    cap
        Whether the manifold part of a step is scaled down where it would overshoot.
    projection
        How a replaced row's share of f is spread over the kept rows: ``"exact"`` (orthogonal projection)
        or ``"pursuit"`` (kernel matching pursuit with back-fitting).
    pursuit_steps
        Rows that one matching pursuit may use.
    keep_gram
        Whether the kernels among the buffer's rows are kept. Without them (matching pursuit only) they are
        computed when needed: far less memory a row, more time.
    on_skip
        What happens to the coefficient of a row that the reservoir does not take: ``"drop"`` loses it,
        ``"project"`` spreads it over the buffer.
    sampling
        ``"reservoir"``, or ``"stratified"``: one reservoir among labelled and one among unlabelled rows.
    radius
        Radius of the ball in the function space onto which f is projected.
    jitter
        Added to the diagonal of the Gram matrix in a projection, as a share of its mean diagonal.

    Examples
    --------
    >>> LearnerSettings(loss="hinge", label_rate=0.3).loss
    'hinge'
    >>> LearnerSettings(label_rate=0.0)
    Traceback (most recent call last):
    ...
    ValueError: label_rate must be above 0 and at most 1, or None to estimate it, not 0.0.
    """

    kernel: Kernel = field(default_factory=lambda: RBF(1.0))
    graph_width: float = 1.0
    loss: str = "logistic"
    ridge: float = 1e-4
    smoothness: float = 1e-4
    step: float = 1.0
    label_rate: float | None = None
    manifold: bool = True
    equations: Equations = "gradient"
    cap: bool = True
    projection: Projection = "exact"
    pursuit_steps: int = 10
    keep_gram: bool = True
    on_skip: OnSkip = "drop"
    sampling: Sampling = "reservoir"
    radius: float = 1e4
    jitter: float = 1e-3

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not isinstance(self.kernel, Kernel) or any(type(k) not in KERNELS for k in self.kernel.terms()):
            raise ValueError(
                f"kernel must be one of RBF, Laplacian, Polynomial, Linear, Constant or a sum of them, "
                f"not {self.kernel!r}."
            )
        check_choice("loss", self.loss, tuple(LOSSES))
        for name in ("manifold", "cap", "keep_gram"):
            check_flag(name, getattr(self, name))
        check_choice("equations", self.equations, get_args(Equations))
        check_choice("projection", self.projection, get_args(Projection))
        check_choice("on_skip", self.on_skip, get_args(OnSkip))
        check_choice("sampling", self.sampling, get_args(Sampling))
        for name in ("graph_width", "ridge", "smoothness"):
            check_range(name, getattr(self, name), least=0.0)
        for name in ("step", "radius", "jitter"):
            check_range(name, getattr(self, name), above=0.0)
        rate = self.label_rate
        if rate is not None and not (is_plain_number(rate) and 0.0 < rate <= 1.0):
            raise ValueError(
                f"label_rate must be above 0 and at most 1, or None to estimate it, not {rate!r}."
            )
        check_whole("pursuit_steps", self.pursuit_steps, 1, 1000)
        if not self.keep_gram and self.projection == "exact":
            raise ValueError(
                'keep_gram=False needs projection="pursuit": the exact one works on the Gram matrix.'
            )


def check_buffer_size(buffer_size: Any) -> None:
    """Raise ValueError unless a buffer can have this many rows."""
    check_whole("buffer_size", buffer_size, LEAST_BUFFER, MOST_BUFFER)
