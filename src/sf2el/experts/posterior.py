"""What the experts of the default learner are told, and the bytes they keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, get_args

from sf2el.paper.settings import check_choice, check_flag, check_range, check_whole

Task = Literal["binary", "classes", "regression_squared", "regression_absolute"]


class Form(Enum):
    """How experts keep what they have learned, the fastest first and the smallest last."""

    FULL = "in single precision"
    HALF = "in half precision"
    LEAST = "in half precision, without what follows from the rest"


MOST_SIZE = 1 << 12
MOST_OUTPUTS = 1 << 12

POSTERIOR_COUNTER_BYTES = 56
"""Counters of one posterior (``PosteriorCounters`` in ``native/core/params.hpp``)."""


@dataclass(frozen=True, kw_only=True)
class PosteriorSettings:
    r"""A linear part and at most ``size`` radial functions under one Gaussian posterior.

    .. math:: f(x) = a' \psi(x), \quad \psi = (x, \sqrt{bias}, k), \quad k_i = \exp(-\gamma \|x_i - x\|^2).

    Labels are +1 / -1 (``"binary"``), 0 to ``outputs`` - 1 (``"classes"``), or standardised numbers.

    Parameters
    ----------
    size
        Radial functions kept at most; 0 leaves the linear part alone.
    gamma
        Width of the radial functions.
    linear_scale, rbf_scale
        Prior variance of the linear and of the radial part.
    bias
        Square of the constant feature.
    novelty
        A labelled row joins the kept ones where these leave more than this share of it unexpressed.
    outputs
        1, or one for each of three or more classes (one against the rest, on one basis).
    task
        What is learned.
    forget
        Share of the way back to the prior covariance that every labelled round goes; 0: never forget.
    centred
        Share of the radial part's prior variance at the origin that is taken away beforehand: what all rows
        have in common is left to the constant.
    tie_noise
        Unlabelled rows tie the two kept rows they lie between: f is the same at both, observed with this
        variance over the weight of the tie. 0: unlabelled rows tell nothing.
    tie_novelty
        An unlabelled row joins the kept ones, while there is room, where these leave more than this share of
        it unexpressed.
    tie_power
        A tie weighs the smaller of the row's two largest kernel values to this power.
    most_ties
        Ties after which unlabelled rows have told what they can.
    keep_inverse
        Whether the inverse of the kept rows' Gram matrix is kept, in half precision a factor of it. Without,
        an expert takes up to 45 % fewer bytes, and every labelled round (in half precision every row)
        computes it anew.
    slopes
        Whether features have coefficients of their own. Without, psi is the constant and the radial
        functions, and an expert of many features takes a fraction of the bytes.
    matched
        What a class label says of f(x) is taken as a number read with noise. Either mean and variance become
        those that f(x) has given the label (assumed-density filtering, Opper 1998, with the logistic function
        averaged as predictions are), or, without, it is the likelihood's curvature at the mean that tells
        (Laplace's step), which overshoots where f is unsure. A label of another weight is that number, read
        with as much more or less noise; several classes share the variance of the least sure.

    Examples
    --------
    >>> PosteriorSettings(size=20, gamma=5.0).rbf_scale
    5.0
    >>> PosteriorSettings(task="classes")
    Traceback (most recent call last):
    ...
    ValueError: outputs must be 3 or more for several classes and 1 for every other task, not 1.
    """

    size: int = 40
    gamma: float = 1.0
    linear_scale: float = 5.0
    rbf_scale: float = 5.0
    bias: float = 0.03
    novelty: float = 0.01
    outputs: int = 1
    task: Task = "binary"
    forget: float = 0.0
    centred: float = 0.0
    tie_noise: float = 0.0
    tie_novelty: float = 0.25
    tie_power: int = 6
    most_ties: int = 500
    keep_inverse: bool = True
    slopes: bool = True
    matched: bool = False

    def __post_init__(self) -> None:
        check_whole("size", self.size, 0, MOST_SIZE)
        check_range("gamma", self.gamma, least=0.0)
        for name in ("linear_scale", "rbf_scale", "bias"):
            _check_between(name, getattr(self, name), 0.0, 1e3)
        for name in ("novelty", "forget", "centred", "tie_novelty"):
            _check_between(name, getattr(self, name), 0.0, 1.0)
        _check_between("tie_noise", self.tie_noise, 0.0, 1e6)
        check_whole("tie_power", self.tie_power, 0, 100)
        check_whole("most_ties", self.most_ties, 0, 1 << 30)
        check_flag("keep_inverse", self.keep_inverse)
        check_flag("slopes", self.slopes)
        check_flag("matched", self.matched)
        _check_task(self.task, self.outputs)

    def linear_of(self, dim: int) -> int:
        """Return the coordinates before those of the radial functions, on so many features."""
        return _linear(dim, self.slopes)


@dataclass(frozen=True, kw_only=True)
class LogisticSettings:
    """Logistic (or least squares, or least absolute) regression by stochastic gradient steps.

    Parameters
    ----------
    step, power
        The step is ``step / (1 + labels) ** power``.
    scale
        What a row is multiplied by: the divisor of the scaler, to see standard deviations.
    outputs, task
        As for :class:`PosteriorSettings`.

    Examples
    --------
    >>> LogisticSettings(step=0.5).power
    0.0
    """

    step: float = 0.1
    power: float = 0.0
    scale: float = 1.0
    outputs: int = 1
    task: Task = "binary"

    def __post_init__(self) -> None:
        check_range("step", self.step, above=0.0)
        _check_between("power", self.power, 0.0, 10.0)
        check_range("scale", self.scale, above=0.0)
        _check_task(self.task, self.outputs)


def posterior_bytes(
    dim: int,
    size: int,
    outputs: int = 1,
    precision: str = "float64",
    *,
    keep_inverse: bool = True,
    slopes: bool = True,
) -> int:
    """Return the bytes a posterior keeps, working scratch apart: exactly what the compiled core allocates.

    In halves (float16) a factor of the inverse is in its place, and the mean is in single precision.

    >>> posterior_bytes(10, 40, precision="float32")
    10864
    >>> posterior_bytes(10, 40, precision="float32", keep_inverse=False)
    7416
    >>> posterior_bytes(10, 40, precision="float16")
    5432
    >>> posterior_bytes(10, 40, precision="float16", keep_inverse=False)
    3712
    >>> posterior_bytes(10, 40, precision="float16", keep_inverse=False, slopes=False)
    2744
    """
    linear = _linear(dim, slopes)
    if precision == "float16":
        coordinates = linear + size
        reals, factor = outputs * coordinates, size + _triangle(size) if keep_inverse else 0
        halves = size * dim + _triangle(coordinates) + factor
        return POSTERIOR_COUNTER_BYTES + (4 * reals + 2 * halves + 7) // 8 * 8
    real = 8 if precision == "float64" else 4
    slots = size + 1 if size else 0
    coordinates = linear + slots
    reals = slots * dim + outputs * coordinates + _triangle(coordinates)
    reals += _triangle(slots) if keep_inverse else 0
    return POSTERIOR_COUNTER_BYTES + (real * reals + 7) // 8 * 8


def logistic_bytes(dim: int, outputs: int = 1) -> int:
    """Return the bytes of the weights and intercepts and of the count of labels."""
    return 8 * (outputs * (dim + 1) + 1)


def fixed_share_bytes(experts: int, *, sure: bool = True) -> int:
    """Return the bytes of weights that are shared anew each round, of the experts' losses and sureness."""
    return 8 * ((4 if sure else 2) * experts + 1)


def moments_bytes(dim: int, precision: str = "float64", *, fourths: bool = False) -> int:
    """Return the bytes of a running mean and covariance, and of each feature's mean fourth power."""
    real = 8 if precision == "float64" else 4
    return 8 * (1 + dim) + (real * (_triangle(dim) + fourths * dim) + 7) // 8 * 8


def affine_bytes(new_dim: int, old_dim: int, precision: str = "float64", rank: int = 0) -> int:
    """Return the bytes of an affine map with its center, kept whole or as factors of this rank.

    >>> affine_bytes(60, 90, "bfloat16"), affine_bytes(60, 90, "bfloat16", rank=13)
    (12000, 5104)
    """
    real = {"float64": 8, "float32": 4, "bfloat16": 2}[precision]
    numbers = rank * (new_dim + old_dim) if rank else new_dim * old_dim
    return 8 * (new_dim + old_dim) + (real * numbers + 7) // 8 * 8


def _linear(dim: int, slopes: bool) -> int:
    return (dim if slopes else 0) + 1


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _check_between(name: str, value: float, least: float, most: float) -> None:
    check_range(name, value, least=least)
    if value > most:
        raise ValueError(f"{name} must be at most {most:g}, not {value!r}.")


def _check_task(task: str, outputs: int) -> None:
    check_choice("task", task, get_args(Task))
    check_whole("outputs", outputs, 1, MOST_OUTPUTS)
    if (task == "classes") != (outputs > 2) or outputs == 2:
        raise ValueError(
            f"outputs must be 3 or more for several classes and 1 for every other task, not {outputs}."
        )
