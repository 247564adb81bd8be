"""SF2EL, two kernel learners on two spaces of 10 features, against OpenMOA's FESL, two linear ones.

OpenMOA is taken from the environment this runs in. Its FESL learns from every row and has all labels;
SF2EL has 30 % of them and learns from every row too.
"""

from __future__ import annotations

import os
import shutil
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from common import DIM, LABEL_RATE, Row, faster, fastest, learner_settings, main, stream
from per_row import paper_model

from sf2el.core import native
from sf2el.paper.learner import build_learner

BUFFER = 60
OLD_ROUNDS, NEW_ROUNDS, OVERLAP = 5_000, 5_000, 10
ROUNDS = OLD_ROUNDS + NEW_ROUNDS
TARGET = 15.0


class TwoSpaces:
    """A stream whose old features vanish after ``OLD_ROUNDS``, with an overlap before."""

    def __init__(self) -> None:
        old, y, revealed = stream(ROUNDS)
        new = old @ np.random.default_rng(1).uniform(size=(DIM, DIM)) / DIM
        self.old, self.new, self.y, self.revealed = old, new, y, revealed
        # Both spaces side by side, 0 where a feature is not there: what OpenMOA takes for absent.
        self.wide = np.hstack([old, new])
        self.wide[: OLD_ROUNDS - OVERLAP, DIM:] = 0.0
        self.wide[OLD_ROUNDS:, :DIM] = 0.0

    def dicts(self) -> tuple[list[dict[str, float]], list[bool | None]]:
        names = [f"{space}_{j}" for space in ("old", "new") for j in range(DIM)]
        rows = [{k: v for k, v in zip(names, row, strict=True) if v != 0.0} for row in self.wide.tolist()]
        return rows, [None if label != label else label > 0 for label in self.revealed.tolist()]


def measure() -> list[Row]:
    spaces = TwoSpaces()
    if find_spec("openmoa") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return [Row("OpenMOA FESL", "SF2EL", "OpenMOA", least=TARGET, note=MISSING)]
    jobs: dict[str, Any] = {
        "evaluator": lambda: theirs_evaluated(spaces),
        "bare": lambda: theirs_bare(spaces),
    }
    for skip in ("drop", "project"):
        jobs[f"run {skip}"] = partial(ours_whole, spaces, skip)
        jobs[f"dicts {skip}"] = partial(ours_dicts, spaces, skip)
    us = {name: seconds / ROUNDS * 1e6 for name, seconds in fastest(jobs, 5).items()}
    pairs = (
        ("SF2EL run()", "run", "prequential_evaluation", "evaluator", TARGET),
        ("SF2EL run()", "run", "predict and train only", "bare", TARGET),
        ("SF2EL.paper dicts", "dicts", "predict and train only", "bare", None),
    )
    return [
        faster(
            "OpenMOA FESL", f"{ours}, {skip}", theirs, us[f"{key} {skip}"], us[other], least=least, note=NOTE
        )
        for ours, key, theirs, other, least in pairs
        for skip in ("drop", "project")
    ]


MISSING = "OpenMOA FESL: not measured. Install OpenMOA beside sf2el (pip install openmoa) and Java 17."
NOTE = (
    f"OpenMOA FESL: {OLD_ROUNDS:,} rounds of the old space, the last {OVERLAP} with both, {NEW_ROUNDS:,} of "
    f"the new; b = {BUFFER}, {LABEL_RATE:.0%} labelled. run(): arrays, whole stream, accuracy included. "
    "dicts: predict_one and learn_one, nothing counted."
)


def ours_whole(spaces: TwoSpaces, on_skip: str) -> Any:
    settings = learner_settings(on_skip)
    old = build_learner(settings, DIM, BUFFER, 0)
    new = build_learner(settings, DIM, BUFFER, 1)
    psi = native().RecoveryMap(DIM, DIM, 1e-3, False)
    hedge = native().Hedge(2, float(np.sqrt(np.log(2.0) / NEW_ROUNDS)))
    t, both = OLD_ROUNDS, slice(OLD_ROUNDS - OVERLAP, OLD_ROUNDS)

    def job() -> float:
        before, _ = old.run(spaces.old[:t], spaces.revealed[:t])
        psi.observe(spaces.new[both], spaces.old[both])
        psi.solve()
        recovered = old.run(psi.recover(spaces.new[t:]), spaces.revealed[t:])
        scratch = new.run(spaces.new[t:], spaces.revealed[t:])
        after, _, _ = hedge.run(*(np.column_stack([a, b]) for a, b in zip(recovered, scratch, strict=True)))
        scores = np.concatenate([before, after])
        return float(np.mean((scores >= 0.0) == (spaces.y > 0.0)))

    return job


def ours_dicts(spaces: TwoSpaces, on_skip: str) -> Any:
    model = paper_model(on_skip)
    rows, labels = spaces.dicts()

    def job() -> None:
        for row, label in zip(rows, labels, strict=True):
            model.predict_one(row)
            model.learn_one(row, label)

    return job


def theirs_evaluated(spaces: TwoSpaces) -> Any:
    from openmoa.evaluation import prequential_evaluation

    source, model = openmoa_model(spaces)
    return lambda: prequential_evaluation(source, model, max_instances=ROUNDS)


def theirs_bare(spaces: TwoSpaces) -> Any:
    from openmoa.instance import LabeledInstance

    source, model = openmoa_model(spaces)
    schema = source.get_schema()
    classes = (spaces.y > 0.0).astype(int)
    rows = [LabeledInstance.from_array(schema, x, y) for x, y in zip(spaces.wide, classes, strict=True)]

    def job() -> None:
        for row in rows:
            model.predict(row)
            model.train(row)

    return job


def openmoa_model(spaces: TwoSpaces) -> tuple[Any, Any]:
    """OpenMOA's stream of these rows, and its FESL with the same overlap."""
    from openmoa.classifier import FESLClassifier
    from openmoa.stream import NumpyStream

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that two values mean classes
        source = NumpyStream(spaces.wide, (spaces.y > 0.0).astype(int), dataset_name="two spaces")
    return source, FESLClassifier(source.get_schema(), window_size=OVERLAP)


if __name__ == "__main__":
    main(measure, __doc__)
