"""Two readings of the paper: the switches and hyperparameters under which its experiments are run."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import check_choice
from sf2el.mixing.hedge import Hedge
from sf2el.paper.kernels import RBF
from sf2el.paper.methods import Setup
from sf2el.paper.settings import LearnerSettings
from sf2el.reproduce.declared import settings_file
from sf2el.streams import TwoSpaceStream

Floats = npt.NDArray[np.float64]

READINGS = ("best", "published")
WIDTH_ROWS = 200
"""Rows of each space from which kernel widths are taken."""


@dataclass(frozen=True)
class Hyperparameters:
    """What is tuned, for one dataset.

    Attributes
    ----------
    width
        The kernel's gamma times the median squared distance of 200 rows.
    graph_factor
        The graph's width as a multiple of gamma.
    ridge, smoothness, step, loss
        As in :class:`sf2el.LearnerSettings`.
    eta_factor
        The hedge's rate as a multiple of the paper's sqrt(ln 2 / T2).
    """

    width: float
    graph_factor: float
    ridge: float
    smoothness: float
    step: float
    loss: str
    eta_factor: float = 1.0


@dataclass(frozen=True)
class Reading:
    """The switches of a reading, and its hyperparameters by dataset."""

    name: str
    switches: dict[str, Any]
    datasets: dict[str, Hyperparameters]
    file: str = ""
    """The user's settings file that it was read from; none for the package's own."""

    @property
    def zero_score(self) -> Literal["positive", "error"]:
        """How the evaluator counts a score of exactly 0."""
        choice: Literal["positive", "error"] = self.switches["zero_score"]
        return choice

    def setup(
        self,
        stream: TwoSpaceStream,
        dataset: str,
        *,
        buffer_size: int,
        label_rate: float,
        hyperparameters: Hyperparameters | None = None,
    ) -> Setup:
        """Return the setup of the eight methods on a stream of the dataset.

        Kernel widths come from the first 200 rows of each space, which is a look-ahead of the paper's
        protocol; the product itself has none.
        """
        values = hyperparameters or self.datasets[dataset]

        def settings(rows: Floats) -> LearnerSettings:
            gamma = values.width / median_squared_distance(rows[:WIDTH_ROWS])
            return LearnerSettings(
                kernel=RBF(gamma),
                graph_width=values.graph_factor * gamma,
                loss=values.loss,
                ridge=values.ridge,
                smoothness=values.smoothness,
                step=values.step,
                label_rate=label_rate,
                equations=self.switches["equations"],
                cap=self.switches["cap"],
                on_skip=self.switches["on_skip"],
                projection=self.switches["projection"],
            )

        return Setup(
            old=settings(stream.old),
            new=settings(stream.new),
            buffer_size=buffer_size,
            restart=self.switches["restart"],
            eta=values.eta_factor * Hedge.rate_for(len(stream.after_swap)),
        )


@cache
def reading(name: str) -> Reading:
    """Return a reading from its settings file.

    >>> reading("best").switches["on_skip"], reading("published").switches["on_skip"]
    ('project', 'drop')
    """
    check_choice("reading", name, READINGS)
    content = settings_file(name)
    datasets = {key: Hyperparameters(**values) for key, values in content["datasets"].items()}
    return Reading(name, content["switches"], datasets)


def reading_from(path: Path, name: str) -> Reading:
    """Return a reading from a settings file like those that ``sf2el tune`` writes.

    It has the switches and hyperparameters of the file; ``name`` is the package's reading that it stands for.
    """
    own = reading(name)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        datasets = {key: Hyperparameters(**values) for key, values in content["datasets"].items()}
        switches = content["switches"]
        if switches.keys() != own.switches.keys():
            raise ValueError(f"[switches] must have {', '.join(own.switches)}")
    except (
        tomllib.TOMLDecodeError,
        UnicodeDecodeError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise ValueError(f"{path} is not a settings file as sf2el tune writes them: {error}.") from error
    return Reading(name, switches, datasets, path.name)


def median_squared_distance(rows: Floats) -> float:
    """Return the median squared distance of two different rows.

    >>> median_squared_distance(np.array([[0.0], [1.0], [3.0]]))
    4.0
    """
    differences = rows[:, None, :] - rows[None, :, :]
    squared = np.einsum("ijk,ijk->ij", differences, differences)
    return float(np.median(squared[np.triu_indices(len(rows), 1)]))
