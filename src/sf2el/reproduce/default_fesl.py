"""Which settings FESL-c gets in the study: the best of a few on seeds that the study does not use.

    python -m sf2el.reproduce.default_fesl

prints the tables ``fesl`` and ``fesl_by_rate`` of ``settings/default.toml``; about two minutes.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from sf2el.datasets import Dataset, load
from sf2el.reproduce.declared import settings_file
from sf2el.reproduce.fesl import Fesl
from sf2el.streams import stream_for


def chosen(dataset: Dataset, label_rate: float) -> dict[str, Any]:
    """Return the declared choice of best mean accuracy at a label rate."""
    content = settings_file("default")
    choice = content["fesl_choice"]
    size = "large" if dataset.name in content["large"] else "small"
    seeds = range(choice["first_seed"], choice["first_seed"] + choice["runs"][size])
    streams = [stream_for(dataset, seed, label_rate, content["overlap"]) for seed in seeds]

    def accuracy(values: dict[str, Any]) -> float:
        model = Fesl(**values)
        right = [(model.run(stream) >= 0.5) == (stream.y[stream.t1 :] > 0.0) for stream in streams]
        return float(np.mean(right))

    grid = [
        {"step": step, "decay": decay, "bias": bias}
        for (decay, steps), bias in product(choice["steps"].items(), choice["bias"])
        for step in steps
    ]
    return max(grid, key=accuracy)


def main() -> None:
    """Print the tables for all datasets of the study."""
    content = settings_file("default")
    rates = content["label_rates"]
    found = {name: [chosen(load(name), rate) for rate in rates] for name in content["datasets"]}
    print("[fesl]")
    for name, values in found.items():
        print(f"{name} = {_toml(values[rates.index(0.3)])}")
    print("\n[fesl_by_rate]")
    for name, values in found.items():
        print(f"{name} = [", *(f"  {_toml(one)}," for one in values), "]", sep="\n")


def _toml(values: dict[str, Any]) -> str:
    return f'{{ step = {values["step"]:g}, decay = "{values["decay"]}", bias = {values["bias"]:g} }}'


if __name__ == "__main__":
    main()
