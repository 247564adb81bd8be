"""Older formats of a model's file, brought up to the present one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FORMAT = 2

Tensors = dict[str, npt.NDArray[Any]]
Content = dict[str, Any]


def brought_up(content: Content, tensors: Tensors) -> tuple[Content, Tensors, bool]:
    """Return a file's text and arrays in the present format, and whether they were older."""
    number = content["format"]
    if number == FORMAT:
        return content, tensors, False
    if number == 1:
        return *_from_1(content, tensors), True
    raise ValueError(f"it has format {number!r}, and this version reads 1 to {FORMAT}")


def _from_1(content: Content, tensors: Tensors) -> tuple[Content, Tensors]:
    """Format 1 knew the paper's learners only: two classes, no doubt about periods, no past names."""
    found = dict(tensors)
    slots = found["events"]
    found["events"] = np.ascontiguousarray(np.hstack([slots, slots[:, :1]]))
    seen = list(content["labels"])
    brought = content | {
        "format": FORMAT,
        "kind": "classifier",
        "recipe": content["recipe"] | {"kind": "paper", "related": False, "precision": "float64"},
        "labels": {
            "seen": seen,
            "counts": [1] * len(seen),
            "fixed": False,
            "binary": True,
            "class_weight": None,
        },
        "pending": [],
        "tracker": {"doubt": 0, "overlap": 0, "losses": 0},
    }
    if content["stage"] is not None:
        brought["stage"] = _stage_from_1(content["stage"], found, bool(content["recipe"]["scaled"]))
    return brought, found


def _stage_from_1(stage: Content, tensors: Tensors, scaled: bool) -> Content:
    tensors["weights"] = tensors.pop("hedge")
    current = _space_from_1("current", stage["current"], tensors, scaled)
    upcoming = stage["upcoming"] and _space_from_1("upcoming", stage["upcoming"], tensors, scaled)
    past = None
    if stage["recovered"] is not None:
        dim = stage["recovered"]["dim"]
        _renamed("recovered", "past.0", tensors, ("rows", "beta", "weights", "kinds", "inverse"))
        tensors["psi"] = tensors.pop("recovered.map")
        if scaled:
            tensors["past.scaler"] = np.zeros(3 * dim)
        tensors["past.names"] = np.empty(0, np.uint8)
        past = {"dim": dim, "born": dim, "seats": [_seat_from_1(stage["recovered"])]}
    if stage["map"]:
        tensors["overlap"] = tensors.pop("upcoming.map")
    return {
        "index": stage["index"],
        "began": 0,
        "outputs": 1,
        "current": current,
        "past": past,
        "upcoming": upcoming,
        "psi": None if past is None else {"new_dim": current["dim"]},
        "overlap": {"new_dim": upcoming["dim"]} if stage["map"] else None,
    }


def _space_from_1(key: str, space: Content, tensors: Tensors, scaled: bool) -> Content:
    dim = len(space["names"])
    if scaled:
        state = tensors[f"{key}.scaler"]
        tensors[f"{key}.scaler"] = np.concatenate([state[: 2 * dim], np.full(dim, state[2 * dim])])
    seats = []
    if space["learner"] is not None:
        _renamed(key, f"{key}.0", tensors, ("rows", "beta", "weights", "kinds", "inverse"))
        seats.append(_seat_from_1(space["learner"]))
    texts = [f"\x01{name}" if isinstance(name, int) else name for name in space["names"]]
    tensors[f"{key}.names"] = np.frombuffer("".join(f"{text}\0" for text in texts).encode(), np.uint8)
    return {"dim": dim, "born": dim, "seats": seats}


def _seat_from_1(learner: Content) -> Content:
    return learner | {"kind": "learner", "name": ""}


def _renamed(old: str, new: str, tensors: Tensors, names: tuple[str, ...]) -> None:
    for name in names:
        if f"{old}.{name}" in tensors:
            tensors[f"{new}.{name}"] = tensors.pop(f"{old}.{name}")
