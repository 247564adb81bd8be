r"""The map from new features to old ones, from the rows that had both.

a = W'x + e with e ~ N(0, R) and x ~ N(m, S), turned round by Bayes' rule: E[x | a] = S W (W'SW + R)^{-1} a.
W and R by ridge regression on the overlap, then by expectation-maximisation on what later rows have shown.
"""

from __future__ import annotations

import numpy as np

RIDGE, STEPS, FEW_STEPS, FEW, LEAST_NOISE, SHRUNK, UNSEEN, SOON = 0.1, 10, 5, 5.0, 1e-3, 0.2, 0.1, 5.0
COMMON, UNLIKELY, ONE_SIGN, SHARES_OF_NOISE, LEAST_WEIGHT = 0.3, 2.0, 3.0, (0.1, 0.9), 0.05
SURE_OF_ZERO, FARTHEST_ZERO, TRIAL_RIDGE, CAUTION, NOISE = 3.0, 100.0, 0.1, 20.0, 0.5


def correlation(C):
    deviation = np.sqrt(np.diag(C))
    inverse = np.where(deviation > 1e-9, 1.0 / np.where(deviation > 1e-9, deviation, 1.0), 0.0)
    return C * inverse[:, None] * inverse


def coordinates(tau, c):
    """A = D (I + c 11')^(1/2) / (1 + c)^(1/2), D = diag(tau): W has covariance AA' beforehand."""
    values, vectors = np.linalg.eigh(np.eye(len(tau)) + c * np.ones((len(tau), len(tau))))
    return np.diag(tau) @ vectors @ np.diag(np.sqrt(values)) @ vectors.T / np.sqrt(1.0 + c)


def evidence(X, A, a):
    """Log probability of centred new features of covariance (1 - r) K + r I, any scale, K = X A A' X'."""
    B = len(X)
    K = X @ A @ A.T @ X.T
    K *= (B - 1) / np.trace(K)
    found = []
    for r in SHARES_OF_NOISE:
        covariance = (1.0 - r) * K + r * np.eye(B)
        # The direction of the mean, in which centred rows have nothing, has eigenvalue r.
        volume = np.linalg.slogdet(covariance)[1] - np.log(r)
        left = np.mean([one @ np.linalg.solve(covariance, one) / (one @ one) for one in a.T])
        found.append(-0.5 * a.shape[1] * (volume + (B - 1) * np.log(left)))
    return np.logaddexp(*found)


def thought(X, a, mean, deviation, m, a_at_zero):
    """Coordinates of the old features, and where they all read 0 if the new ones do so there too."""
    B, p = X.shape
    tau = np.maximum(deviation / np.sqrt(np.mean(deviation**2)), LEAST_WEIGHT)
    odds = evidence(X, coordinates(tau, COMMON), a) - evidence(X, np.eye(p), a) - UNLIKELY
    share = 1.0 / (1.0 + np.exp(-odds))
    squares = share * tau**2 + (1.0 - share)
    tau = np.sqrt(squares / squares.mean())
    A, zero = coordinates(tau, share * COMMON), -mean / deviation - m
    if np.abs(mean / deviation).max() > FARTHEST_ZERO:
        return A, None
    at = coordinates(tau, ONE_SIGN)
    Y, x = X @ at, at.T @ zero
    inverse = np.linalg.inv(Y.T @ Y + RIDGE * np.eye(p))
    scale = B / np.trace(Y.T @ Y)
    known = scale * RIDGE * (1.0 + 1.0 / B + x @ inverse @ x)
    unknown = known + scale * x @ x
    left = (a_at_zero - x @ inverse @ Y.T @ a) / np.sqrt((a**2).mean(axis=0))
    odds = 0.5 * np.sum(np.log(unknown / known) - left**2 * (1.0 / known - 1.0 / unknown))
    return A, zero if odds >= SURE_OF_ZERO else None


def doubt(X, a):
    """The unexplained share of the new features, and what of each counts as noise whatever later rows say."""
    B, p = X.shape
    chance, t, K = CAUTION / B**2, TRIAL_RIDGE * p, X @ X.T
    if chance >= 1.0:
        return 0.0, np.zeros(a.shape[1])
    inverse = np.linalg.inv(K + t * np.eye(B))
    exact = t**2 * np.trace(K @ inverse @ inverse) / np.trace(K)
    noise = (t**2 * np.trace(inverse @ inverse) - 1.0) / (B - 1)  # B - 1 eigenvalues, without the mean's
    left = np.array([t**2 * one @ inverse @ inverse @ one / (one @ one) for one in a.T])

    def unexplained(left):
        return np.clip(((left - exact) / noise - chance) / (1.0 - chance), 0.0, 1.0)

    own, share = unexplained(left), unexplained(np.sort(left)[:p].mean())
    return share, NOISE * own * (share / own.mean() if share < own.mean() else 1.0)


def gaussian_map(Z, X, divisor, old=None, shown=None, read=None):
    """Matrix, center and unexplained share by the overlap's rows, old features in deviations / divisor.

    ``shown``: mean, deviation, covariance of the new features over all rows, and how many came later.
    """
    (B, q), p, later = Z.shape, X.shape[1], shown[3] if shown else 0.0
    center, deviation, G, _ = shown or (Z.mean(axis=0), Z.std(axis=0), None, 0.0)
    m = X.mean(axis=0) * divisor
    x, a = (X - X.mean(axis=0)) * divisor, (Z - Z.mean(axis=0)) / deviation
    a_mean = (Z.mean(axis=0) - center) / deviation
    S = np.eye(p) if old is None else (1.0 - SHRUNK) * correlation(old) + SHRUNK * np.eye(p)
    A, zero = np.eye(p), None
    if read is not None and old is not None:
        A, zero = thought(x, a, *read, m, -Z.mean(axis=0) / deviation)
    x, m, S = x @ A, A.T @ m, A.T @ S @ A
    unexplained, least = doubt(x, a)
    ridge = RIDGE + unexplained * p
    if zero is not None:  # as good as one more row with both spaces
        x, a = np.vstack([x, A.T @ zero]), np.vstack([a, -Z.mean(axis=0) / deviation])

    def regress(xx, xa, aa, weight):
        W = np.linalg.solve(xx + ridge * np.eye(p), xa)
        left = aa - np.array([w @ c + ridge * w @ w for w, c in zip(W.T, xa.T, strict=True)])
        return W, np.maximum(left / weight, least) + LEAST_NOISE

    def fit(xx, xa, aa, weight):
        W, R = regress(xx, xa, aa, weight)
        unseen = ridge * np.trace(np.linalg.inv(xx + ridge * np.eye(p))) / p
        more = UNSEEN * unseen * np.mean([w @ S @ w for w in W.T])
        return W, R + more, more

    xx, xa, aa, weight, extra, rest = x.T @ x, x.T @ a, (a**2).sum(axis=0), float(B), 0.0, np.zeros(q)
    W, R, _ = fit(xx, xa, aa, weight)
    if later > 0.0:
        # The later rows' mean is as good as one row of this weight at the old features' mean.
        extra, rest = later * R.mean(), -B * a_mean / later
        weight = B + extra
        apart = np.sqrt(B * extra / weight)
        x, a = np.vstack([x, apart * m]), np.vstack([a, apart * (a_mean - rest)])
        xx, xa, aa = x.T @ x, x.T @ a, (a**2).sum(axis=0)
        W, R, more = fit(xx, xa, aa, weight)
        G, counts = correlation(G), min(FEW * B, later)
        for _ in range(STEPS if old is not None else FEW_STEPS):
            gain = np.linalg.solve(W.T @ S @ W + np.diag(R), W.T @ S)  # E[x | a] = gain' a
            spread = S - S @ W @ gain + gain.T @ G @ gain
            W, R = regress(
                xx + counts * spread, xa + counts * gain.T @ G, aa + counts * np.diag(G), weight + counts
            )
            R = R + more * (SOON / (SOON + later)) ** 2
    gain = np.linalg.solve(W.T @ S @ W + np.diag(R), W.T @ S)
    back = np.linalg.inv(A.T)
    matrix = np.column_stack([back @ gain.T / deviation, back @ m * B / weight]) / divisor
    return matrix, center + deviation * (B * a_mean + extra * rest) / weight, unexplained
