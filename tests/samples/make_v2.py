"""Write the samples of format 2: models small enough to be committed, rows, and the scores they give.

    python tests/samples/make_v2.py

Once a sample is out it stays as it is, and every later version must read it: only those that are not there
are written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostile import paper, rows

from sf2el import SF2EL, SF2ELRegressor

HERE = Path(__file__).parent
MODELS: dict[str, tuple[Any, int, int, str, int]] = {
    "bank-swapped": (SF2EL(budget="8KiB", backend="native"), 90, 2, "b", 3),
    "bank-halves": (SF2EL(budget="3KiB", backend="native"), 94, 2, "b", 3),
    "bank-returned": (SF2EL(budget="12KiB", backend="native"), 126, 2, "b", 3),
    "bank-classes": (SF2EL(budget="8KiB", backend="native"), 45, 3, "a", 3),
    "regressor": (SF2ELRegressor(budget="8KiB", backend="native"), 90, 2, "b", 3),
    "paper-swapped": (paper(budget="4KiB", backend="native"), 90, 2, "b", 3),
    "bank-sure": (SF2EL(budget="8KiB", backend="native"), 110, 2, "b", 3),
    "bank-sure-classes": (SF2EL(budget="8KiB", backend="native"), 45, 3, "a", 3),
    "bank-factors": (SF2EL(budget="6KiB", backend="native"), 90, 2, "b", 36),
    "bank-slopeless": (SF2EL(budget="5KiB", backend="native"), 90, 2, "b", 16),
    "bank-even": (SF2EL(budget="6KiB", backend="native"), 90, 2, "b", 3),
}
"""Name of a sample: the model, rows it learns, labels there are, the space it is asked in, its features."""


def main() -> None:
    for name, (model, count, kinds, space, width) in MODELS.items():
        path = HERE / f"v2-{name}.safetensors"
        if path.exists():
            continue
        for x, y in rows(kinds, width=width)[:count]:
            model.learn_one(x, y)
        features = [f"{space}{j}" for j in range(width)]
        probes = np.random.default_rng(7).normal(size=(8, width)).tolist()
        outputs = [
            np.asarray(model._output_one(dict(zip(features, row, strict=True)))).tolist() for row in probes
        ]
        model.save(path)
        told = {"features": features, "rows": probes, "scores": outputs}
        (HERE / f"v2-{name}.json").write_text(json.dumps(told, indent=1))


if __name__ == "__main__":  # and never because a test runner looks for doctests here
    main()
