"""What a learner is told: every parameter and every switch, declared and checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, get_args

from sf2el.paper.kernels import KERNELS, LARGEST, RBF, Kernel, plain_numbers
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
        if rate is not None and not (_is_number(rate) and 0.0 < rate <= 1.0):
            raise ValueError(
                f"label_rate must be above 0 and at most 1, or None to estimate it, not {rate!r}."
            )
        check_whole("pursuit_steps", self.pursuit_steps, 1, 1000)
        if not self.keep_gram and self.projection == "exact":
            raise ValueError(
                'keep_gram=False needs projection="pursuit": the exact one works on the Gram matrix.'
            )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}.")


def check_range(name: str, value: Any, *, least: float | None = None, above: float | None = None) -> None:
    """Raise ValueError unless ``value`` is a finite number in range, at most 1e100."""
    bound = f"at least {least:g}" if least is not None else f"above {above:g}"
    if not (
        _is_number(value)
        and isfinite(value)
        and value <= LARGEST
        and (least is None or value >= least)
        and (above is None or value > above)
    ):
        raise ValueError(f"{name} must be a number {bound} and at most 1e100, not {value!r}.")


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Raise ValueError unless ``value`` is a whole number from ``least`` to ``most``."""
    if not (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")


def check_buffer_size(buffer_size: Any) -> None:
    """Raise ValueError unless a buffer can have this many rows."""
    check_whole("buffer_size", buffer_size, LEAST_BUFFER, MOST_BUFFER)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
