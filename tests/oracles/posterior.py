"""Gaussian posteriors of f = linear part + Gaussian process, label by label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_NOVELTY = 1e-12


@dataclass(frozen=True)
class Settings:
    """What an expert is told; names are the compiled core's."""

    task: str = "binary"
    outputs: int = 1
    dim: int = 3
    size: int = 60
    gamma: float = 2.0
    linear_scale: float = 5.0
    rbf_scale: float = 5.0
    bias: float = 0.03
    novelty: float = 0.0
    forget: float = 0.0
    centred: float = 0.0
    tie_noise: float = 0.0
    tie_novelty: float = 0.25
    tie_power: int = 6
    most_ties: int = 500
    slopes: bool = True

    @property
    def numbers(self):
        return self.task.startswith("regression")


def kernels(s, A, B):
    return np.exp(-s.gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def score(s, mean, variance):
    """A mean, or log odds: the logistic function averaged over f is near that of the softened mean."""
    return mean if s.numbers else mean / np.sqrt(1.0 + np.pi * variance / 8.0)


def risk(s, scores, y):
    if s.task == "regression_squared":
        return (y - scores[0]) ** 2
    if s.task == "regression_absolute":
        return abs(y - scores[0])
    p = sigmoid(np.clip(scores, -8.0, 8.0))
    if s.task == "binary":
        return -np.log(p[0] if y > 0 else 1.0 - p[0])
    return min(-np.log(p[int(y)] / p.sum()), 8.0)


def reading(s, mean, y, weight, residuals, labels):
    """What a label says of f: that it is mean + pull, up to noise of this variance."""
    if s.numbers:
        pull, scale = y - mean, (1.0 + residuals) / (1.0 + labels)
        if s.task == "regression_absolute":
            scale *= max(abs(pull[0]), 0.1 * scale)
        return pull, max(scale, 1e-4) / weight
    wanted = np.array([float(y > 0)]) if s.task == "binary" else (np.arange(s.outputs) == y).astype(float)
    p = sigmoid(mean)
    curvature = max((p * (1.0 - p)).max(), 1e-3)
    return (wanted - p) / curvature, 1.0 / curvature / weight


def residual(s, mean, y):
    squared, absolute = (y - mean[0]) ** 2, abs(y - mean[0])
    return {"regression_squared": squared, "regression_absolute": absolute}.get(s.task, 0.0)


def tie(s, among, to, ties):
    """What an unlabelled row tells, from kernels among and to kept rows: "joins", (i, j, noise) or None."""
    n = len(to)
    if not s.tie_noise > 0.0 or not s.size or ties >= s.most_ties:
        return None
    new = 1.0 - to @ np.linalg.solve(among, to) if n else 1.0
    if n < s.size and new > s.tie_novelty:
        return "joins"
    if n < 2 or 2 * n < s.size:
        return None
    i, j = np.argsort(-to, kind="stable")[:2]
    weight = to[j] ** s.tie_power
    return (int(i), int(j), s.tie_noise / weight) if weight >= 0.01 else None


def process(s, X, y, weights):
    """Scores and risks with room for every row: mean and covariance of f at all rows, no basis."""
    table = np.vstack([np.zeros((int(s.centred > 0.0), X.shape[1])), X])
    K = kernels(s, table, table) if s.size else np.zeros((len(table), len(table)))
    prior = s.linear_scale * ((table @ table.T if s.slopes else 0.0) + s.bias) + s.rbf_scale * K
    covariance, kept = prior.copy(), []
    if s.centred > 0.0:
        covariance, kept = covariance - s.centred * s.rbf_scale * np.outer(K[0], K[0]), [0]
    means, ties, labels, residuals = np.zeros((s.outputs, len(table))), 0, 0, 0.0
    scores, risks = np.zeros((len(X), s.outputs)), np.full(len(X), np.nan)
    for t, i in enumerate(range(len(table) - len(X), len(table))):
        mean = means[:, i].copy()
        scores[t] = score(s, mean, covariance[i, i])
        if np.isnan(y[t]):
            told = tie(s, K[np.ix_(kept, kept)], K[kept, i], ties)
            if told == "joins":
                kept.append(i)
            elif told:
                a, b = kept[told[0]], kept[told[1]]
                gain = covariance[a] - covariance[b]
                divisor = told[2] + gain[a] - gain[b]
                means -= np.outer((means[:, a] - means[:, b]) / divisor, gain)
                covariance = covariance - np.outer(gain, gain) / divisor
                ties += 1
            continue
        risks[t] = risk(s, scores[t], y[t])
        covariance = (1.0 - s.forget) * covariance + s.forget * prior
        pull, noise = reading(s, mean, y[t], weights[t], residuals, labels)
        gain, divisor = covariance[i].copy(), noise + covariance[i, i]
        means += np.outer(pull / divisor, gain)
        covariance = covariance - np.outer(gain, gain) / divisor
        labels, residuals = labels + 1, residuals + residual(s, mean, y[t])
        kept.append(i)
    return scores, risks, ties


class Posterior:
    """f = a'psi with psi = (x, sqrt(bias), kernels to kept rows), C = posterior minus prior covariance."""

    def __init__(self, s):
        self.s, self.linear = s, (s.dim if s.slopes else 0) + 1
        self.rows = np.zeros((int(s.centred > 0.0), s.dim))
        self.a = np.zeros((s.outputs, self.linear + len(self.rows)))
        self.C = np.zeros((self.a.shape[1],) * 2)
        if len(self.rows):
            self.C[-1, -1] = -s.centred * s.rbf_scale
        self.labels = self.ties = self.removed = 0
        self.residuals = 0.0

    def psi(self, x):
        bias = [np.sqrt(self.s.bias)]
        return np.concatenate([x if self.s.slopes else [], bias, kernels(self.s, self.rows, x[None])[:, 0]])

    def prior(self, x):
        first = self.psi(x)[: self.linear]
        return self.s.linear_scale * first @ first + (self.s.rbf_scale if self.s.size else 0.0)

    def predict(self, x):
        psi = self.psi(x)
        return score(self.s, self.a @ psi, self.prior(x) + psi @ self.C @ psi)

    def learn(self, x, y, weight=1.0):
        scores = self.predict(x)
        if np.isnan(y):
            self.tie(x)
            return scores, np.nan
        s, L = self.s, self.linear
        psi, mean = self.psi(x), self.a @ self.psi(x)
        self.C = (1.0 - s.forget) * self.C
        v = self.prior(x) + psi @ self.C @ psi
        pull, noise = reading(s, mean, y, weight, self.residuals, self.labels)
        gain = self.C @ psi
        gain[:L] += s.linear_scale * psi[:L]
        if s.size:
            k, K = psi[L:], kernels(s, self.rows, self.rows)
            if 1.0 - k @ np.linalg.solve(K, k) > max(s.novelty, LEAST_NOVELTY):
                self.join(x)
                gain = np.append(gain, s.rbf_scale)
            else:
                gain[L:] += s.rbf_scale * np.linalg.solve(K, k)
        self.a = self.a + np.outer(pull / (noise + v), gain)
        self.C = self.C - np.outer(gain, gain) / (noise + v)
        self.labels, self.residuals = self.labels + 1, self.residuals + residual(s, mean, y)
        if len(self.rows) > s.size:
            self.remove()
        return scores, risk(s, scores, y)

    def join(self, x):
        self.rows = np.vstack([self.rows, x])
        self.a = np.pad(self.a, ((0, 0), (0, 1)))
        self.C = np.pad(self.C, (0, 1))

    def remove(self):
        """The row whose projection onto the others, by least squares between functions, moves f least."""
        K, L, n = kernels(self.s, self.rows, self.rows), self.linear, len(self.rows)
        best = None
        for i in range(n):
            others = [j for j in range(n) if j != i]
            T = np.linalg.solve(K[np.ix_(others, others)], K[others])
            gap = np.eye(n)
            gap[others] -= T
            moved = np.trace(self.a[:, L:] @ gap.T @ K @ gap @ self.a[:, L:].T)
            if best is None or moved < best[0]:
                best = moved, others, T
        _, others, T = best
        whole = np.block([[np.eye(L), np.zeros((L, n))], [np.zeros((n - 1, L)), T]])
        self.rows, self.a, self.C = self.rows[others], self.a @ whole.T, whole @ self.C @ whole.T
        self.removed += 1

    def tie(self, x):
        s, L = self.s, self.linear
        K = kernels(s, self.rows, self.rows)
        told = tie(s, K, kernels(s, self.rows, x[None])[:, 0], self.ties)
        if told == "joins":
            self.join(x)
        elif told:
            i, j, noise = told
            w = self.psi(self.rows[i]) - self.psi(self.rows[j])
            gain = self.C @ w
            gain[:L] += s.linear_scale * w[:L]
            gain[L + i] += s.rbf_scale
            gain[L + j] -= s.rbf_scale
            self.a = self.a - np.outer(self.a @ w / (noise + w @ gain), gain)
            self.C = self.C - np.outer(gain, gain) / (noise + w @ gain)
            self.ties += 1
