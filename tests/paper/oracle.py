"""The equations of the paper, once more and as plainly as they can be written.

Nothing here is shared with the package but the names of its settings. Kernels, losses, risk, step and
projection are sums over representers, in plain Python: no cache, no Gram matrix that is kept, no
saturation, no shortcut. Slow, and meant to be.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import exp, isnan, log, sqrt

import numpy as np

from sf2el.paper.kernels import RBF, Constant, Laplacian, Linear, Polynomial, Sum


def K(kernel, a, b):
    match kernel:
        case RBF(gamma=gamma):
            return exp(-gamma * sum((p - q) ** 2 for p, q in zip(a, b, strict=True)))
        case Laplacian(gamma=gamma):
            return exp(-gamma * sum(abs(p - q) for p, q in zip(a, b, strict=True)))
        case Polynomial(degree=degree, gamma=gamma, offset=offset):
            return (gamma * sum(p * q for p, q in zip(a, b, strict=True)) + offset) ** degree
        case Linear():
            return sum(p * q for p, q in zip(a, b, strict=True))
        case Constant(value=value):
            return value
        case Sum(parts=parts):
            return sum(K(part, a, b) for part in parts)
    raise TypeError(kernel)


def loss(name, score, y):
    match name:
        case "logistic":
            return log(1.0 + exp(-y * score))
        case "hinge":
            return max(0.0, 1.0 - y * score)
        case "squared_hinge":
            return max(0.0, 1.0 - y * score) ** 2
        case "squared":
            return (score - y) ** 2
        case "absolute":
            return abs(score - y)
    raise ValueError(name)


def slope(name, score, y):
    """The derivative of the loss in the score (at a kink, that of the flat side)."""
    match name:
        case "logistic":
            return -y / (1.0 + exp(y * score))
        case "hinge":
            return -y if y * score < 1.0 else 0.0
        case "squared_hinge":
            return -2.0 * y * (1.0 - y * score) if y * score < 1.0 else 0.0
        case "squared":
            return 2.0 * (score - y)
        case "absolute":
            return float(np.sign(score - y))
    raise ValueError(name)


@dataclass(frozen=True)
class Function:
    """sum_s beta_s K(x_s, .)"""

    kernel: object
    rows: tuple = ()
    beta: tuple = ()

    @classmethod
    def of_state(cls, kernel, state):
        rows = tuple(tuple(map(float, row)) for row in state["rows"])
        return cls(kernel, rows, tuple(map(float, state["beta"])))

    def __call__(self, x):
        return sum(b * K(self.kernel, row, x) for b, row in zip(self.beta, self.rows, strict=True))

    def at(self, points):
        return np.array([self(tuple(map(float, point))) for point in points])

    def inner(self, other):
        """<self, other>_K, by the reproducing property."""
        return sum(b * other(row) for b, row in zip(self.beta, self.rows, strict=True))

    def norm(self):
        return sqrt(max(self.inner(self), 0.0))

    def plus(self, other, times=1.0):
        beta = self.beta + tuple(times * b for b in other.beta)
        return Function(self.kernel, self.rows + other.rows, beta)

    def scaled(self, factor):
        return replace(self, beta=tuple(factor * b for b in self.beta))


def gram(kernel, rows):
    return np.array([[K(kernel, a, b) for b in rows] for a in rows]).reshape(len(rows), len(rows))


@dataclass
class Round:
    """What a round is worked out from, besides f: the row, its label and the learner's counts before it."""

    x: tuple
    y: float
    seen: int
    labels: int
    clock: int
    # Rows seen for each row kept, one for each row of the buffer: seen / n, or by kind.
    scales: tuple = field(default=())

    @property
    def labelled(self):
        return not isnan(self.y)

    def c(self, settings):
        """1 / p_l, given or as rounds / labels with this round's included."""
        if settings.label_rate is not None:
            return 1.0 / settings.label_rate
        return (self.seen + 1) / (self.labels + 1)

    def tau(self, settings):
        return settings.step / sqrt(self.clock + 1)

    @classmethod
    def from_state(cls, settings, state, x, y):
        kinds = [int(kind) for kind in state["kinds"]]
        if settings.sampling == "stratified":
            scales = [state["seen_by_kind"][kind] / kinds.count(kind) for kind in kinds]
        else:
            scales = [state["seen"] / len(kinds)] * len(kinds)
        x = tuple(map(float, x))
        return cls(x, float(y), state["seen"], state["labels"], state["clock"], tuple(scales))


def edge(settings, a, b):
    return exp(-settings.graph_width * sum((p - q) ** 2 for p, q in zip(a, b, strict=True)))


def risk(s, f, r, neighbours=None):
    """J(f). The manifold term runs over ``neighbours``: the buffer's rows, by default f's own."""
    total = r.c(s) * loss(s.loss, f(r.x), r.y) if r.labelled else 0.0
    if not s.manifold:
        return total
    total += s.ridge / 2.0 * f.inner(f)
    rows = f.rows if neighbours is None else neighbours
    for row, scale in zip(rows, r.scales, strict=True):
        total += s.smoothness * scale * edge(s, row, r.x) * (f(row) - f(r.x)) ** 2
    return total


def overshoot(s, f, r):
    """q: the curvature of the manifold part times the step. Beyond 1 the step would overshoot."""
    total = 0.0
    for row, scale in zip(f.rows, r.scales, strict=True):
        apart = K(s.kernel, row, row) - 2.0 * K(s.kernel, row, r.x) + K(s.kernel, r.x, r.x)
        total += scale * edge(s, row, r.x) * apart
    return 2.0 * r.tau(s) * s.smoothness * total


def stepped(s, f, r, skipped=False):
    """f', on f's representers and the arriving row's (the last)."""
    tau, at_x = r.tau(s), f(r.x)
    beta, new = list(f.beta), 0.0
    if s.manifold:
        rate = 2.0 * tau * s.smoothness
        if s.cap:
            rate /= max(1.0, overshoot(s, f, r))
        for i, (row, scale) in enumerate(zip(f.rows, r.scales, strict=True)):
            difference, w = f(row) - at_x, edge(s, row, r.x)
            new += rate * scale * w * difference
            taken = {
                "gradient": scale * w,
                "printed": 1.0 if skipped else w,
                "printed-weighted": w,
            }[s.equations]
            beta[i] = (1.0 - tau * s.ridge) * beta[i] - rate * taken * difference
    elif r.labelled:
        beta = [(1.0 - tau * s.ridge) * b for b in beta]
    if r.labelled:
        new -= tau * r.c(s) * slope(s.loss, at_x, r.y)
    return Function(s.kernel, (*f.rows, r.x), (*beta, new))


def into_ball(s, f):
    norm = f.norm()
    return f.scaled(s.radius / norm) if norm > s.radius else f


def jitter(s, rows):
    return s.jitter * sum(K(s.kernel, row, row) for row in rows) / len(rows)


def spread(s, row, rows):
    """K(row, .) written over ``rows``."""
    target = np.array([K(s.kernel, row, other) for other in rows])
    added = jitter(s, rows) * np.eye(len(rows))
    if s.projection == "exact":
        alpha = np.linalg.solve(gram(s.kernel, rows) + added, target)
    else:
        alpha = matching_pursuit(gram(s.kernel, rows), added, target, s.pursuit_steps)
    return Function(s.kernel, tuple(rows), tuple(map(float, alpha)))


def matching_pursuit(G, added, target, steps):
    """Greedy: the representer nearest in angle to what is left, then all chosen ones fitted again."""
    n, chosen, alpha = len(target), [], np.zeros(len(target))
    while len(chosen) < min(steps, n):
        left = np.abs(target - G @ alpha) / np.sqrt(np.diag(G + added))
        left[chosen] = -np.inf
        chosen.append(int(np.argmax(left)))
        alpha = np.zeros(n)
        alpha[chosen] = np.linalg.solve((G + added)[np.ix_(chosen, chosen)], target[chosen])
    return alpha


def kept(s, f, r, slot):
    """The function after a round in which the arriving row took ``slot`` (None: it was skipped)."""
    n = len(f.rows)
    wanted = stepped(s, f, r, skipped=slot is None)
    leaves = n if slot is None else slot
    if slot == n:
        return into_ball(s, wanted)
    rows = tuple(row for i, row in enumerate(wanted.rows) if i != leaves)
    beta = tuple(b for i, b in enumerate(wanted.beta) if i != leaves)
    stays = Function(s.kernel, rows, beta)
    if slot is None and s.on_skip == "drop":
        return into_ball(s, stays)
    return into_ball(s, stays.plus(spread(s, wanted.rows[leaves], rows), times=wanted.beta[leaves]))


class Unbuffered:
    """The learner that keeps every row: the paper before "Buffering"."""

    def __init__(self, settings):
        self.settings = settings
        self.f = Function(settings.kernel)
        self.seen = self.labels = 0

    def learn(self, x, y):
        """One round; returns score and risk from before the step."""
        s, x = self.settings, tuple(map(float, x))
        r = Round(x, float(y), self.seen, self.labels, clock=self.seen, scales=(1.0,) * self.seen)
        score, J = self.f(x), risk(s, self.f, r)
        self.f = into_ball(s, stepped(s, self.f, r))
        self.seen += 1
        self.labels += r.labelled
        return score, J
