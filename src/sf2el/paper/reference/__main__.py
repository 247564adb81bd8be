"""``python -m sf2el.paper.reference``: the published algorithm on a small generated stream."""

from __future__ import annotations

from math import log, nan, sqrt

import numpy as np

from sf2el.paper.reference.model import ReferenceSF2EL, run_two_spaces
from sf2el.paper.settings import LearnerSettings


def main() -> None:
    """Print the accuracy of the published algorithm and of its learners on a generated stream."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0.0, 1.0, -1.0)
    labels = np.where(rng.random(600) < 0.3, y, nan)
    model = ReferenceSF2EL(LearnerSettings(label_rate=0.3), eta=sqrt(log(2.0) / 300))
    rounds = run_two_spaces(X[:300], X[290:] @ rng.normal(size=(2, 3)), labels, overlap=10, model=model)
    scores = np.array([[round.score, *round.scores] for round in rounds])
    right = ((scores >= 0.0) == (y[300:, None] > 0.0)).mean(axis=0)
    for name, accuracy in zip(("SF2EL", "old learner, recovered", "new learner"), right, strict=True):
        print(f"{name}: {accuracy:.3f} of {len(rounds)} rounds right")


if __name__ == "__main__":
    main()
