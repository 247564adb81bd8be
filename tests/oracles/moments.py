"""Means and covariances of rows with gaps, computed anew from all rows each time."""

from __future__ import annotations

import numpy as np

RIDGE = 0.01


class Moments:
    """Rows as filled, and the covariance that their gaps have given the rest."""

    def __init__(self, dim):
        self.rows, self.added = [], np.zeros((dim, dim))

    def mean(self):
        return np.mean(self.rows, axis=0)

    def covariance(self):
        apart = np.array(self.rows) - self.mean()
        return (apart.T @ apart + self.added) / len(self.rows)

    def fill(self, row, view, keep=False):
        """The row with its gaps filled by their Gaussian mean given the rest, shrunk while rows are few."""
        gaps, seen = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
        filled, more = view.copy(), np.zeros_like(self.added)
        if len(gaps) and len(seen) and len(self.rows) >= 2:
            mean, C = self.mean(), self.covariance()
            ridge = (RIDGE + 1.0 / len(self.rows)) * np.trace(C) / len(C) + 1e-12
            among, across = C[np.ix_(seen, seen)] + ridge * np.eye(len(seen)), C[np.ix_(gaps, seen)]
            filled[gaps] = mean[gaps] + across @ np.linalg.solve(among, view[seen] - mean[seen])
            more[np.ix_(gaps, gaps)] = C[np.ix_(gaps, gaps)] - across @ np.linalg.solve(among, across.T)
        if keep and len(seen):
            self.rows.append(filled)
            self.added = self.added + more
        return filled
