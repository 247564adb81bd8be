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
MODELS: dict[str, tuple[Any, int, int, str]] = {
    "bank-swapped": (SF2EL(budget="8KiB", backend="native"), 90, 2, "b"),
    "bank-halves": (SF2EL(budget="3KiB", backend="native"), 94, 2, "b"),
    "bank-returned": (SF2EL(budget="12KiB", backend="native"), 126, 2, "b"),
    "bank-classes": (SF2EL(budget="8KiB", backend="native"), 45, 3, "a"),
    "regressor": (SF2ELRegressor(budget="8KiB", backend="native"), 90, 2, "b"),
    "paper-swapped": (paper(budget="4KiB", backend="native"), 90, 2, "b"),
}
"""Name of a sample: the model, rows it learns, labels there are, and the space it is asked in."""


def main() -> None:
    for name, (model, count, kinds, space) in MODELS.items():
        path = HERE / f"v2-{name}.safetensors"
        if path.exists():
            continue
        for x, y in rows(kinds)[:count]:
            model.learn_one(x, y)
        features = [f"{space}{j}" for j in range(3)]
        probes = np.random.default_rng(7).normal(size=(8, 3)).tolist()
        outputs = [
            np.asarray(model._output_one(dict(zip(features, row, strict=True)))).tolist() for row in probes
        ]
        model.save(path)
        told = {"features": features, "rows": probes, "scores": outputs}
        (HERE / f"v2-{name}.json").write_text(json.dumps(told, indent=1))


if __name__ == "__main__":  # and never because a test runner looks for doctests here
    main()
