"""How names, statistics and maps are written to a model's file, and read by one who does not trust it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.experts.halves import from_front_halves, front_halves
from sf2el.inputs.rows import Names
from sf2el.maps.joint_map import LARGEST_READ, Fitted, JointMap
from sf2el.maps.sketch import ROOM, Sketch, unit_deviations
from sf2el.model.space import Seat, Space
from sf2el.model.strategy import Recipe
from sf2el.storage.persist_checks import MOST_ROWS, check_features, whole
from sf2el.storage.persist_seats import SEATS

Tensors = dict[str, npt.NDArray[Any]]
Content = dict[str, Any]
Floats = npt.NDArray[np.float64]

MOST_BLOW_UP = 64
SPARE = 1 << 26
"""A file may ask for 64 times its own size, and 64 MiB: more is not a model we wrote."""


class Writer:
    """Collects the arrays of a model."""

    def __init__(self) -> None:
        self.tensors: Tensors = {}

    def names(self, key: str, names: Names) -> None:
        """Write names as text, one after the other, each ended by a zero byte."""
        self.tensors[key] = np.frombuffer(b"".join(map(_name_out, names)), np.uint8)

    def scaler(self, key: str, space: Space) -> None:
        """Write what features are scaled by; in single precision means, and apart deviations and counts."""
        state = np.asarray(space.scaler.state())
        self.tensors[key] = state
        if space.scaling == "float32":
            mean, spread, count = state.reshape(3, space.dim)
            self.tensors[key] = mean.copy()
            deviation = np.sqrt(np.divide(spread, count, out=np.zeros(space.dim), where=count > 0.0))
            self.tensors[f"{key}.spread"] = np.concatenate([deviation, count]).astype(np.float32)

    def moments(self, key: str, moments: Any, dim: int, precision: str) -> None:
        """Write a running mean and covariance."""
        state = np.asarray(moments.state())
        head, sums, fourths = np.split(state, [1 + dim, 1 + dim + dim * (dim + 1) // 2])
        self.tensors[key] = head.copy()
        self.tensors[f"{key}.sums"] = sums.astype(precision)
        if len(fourths):
            self.tensors[f"{key}.fourths"] = fourths.astype(precision)

    def map(self, key: str, psi: Any) -> Content:
        """Write a map."""
        if not isinstance(psi, JointMap):
            self.tensors[key] = np.asarray(psi.state())
            return {"new_dim": psi.new_dim}
        fitted = psi.fitted
        if fitted is not None:
            self.tensors[key] = np.concatenate([fitted.center, fitted.offset])
            kept = front_halves(fitted.linear) if psi.brief else fitted.linear.astype(psi.precision)
            self.tensors[f"{key}.factors" if psi.rank else f"{key}.matrix"] = kept
        if isinstance(psi.joint, Sketch):
            dim, state = psi.new_dim + psi.old_dim, psi.joint.state()
            self.tensors[f"{key}.sketch"] = state[: 2 + 2 * dim].copy()
            self.tensors[f"{key}.sketch.directions"] = state[2 + 2 * dim :].astype(np.float16)
        elif not psi.settled:
            self.moments(f"{key}.joint", psi.joint, psi.new_dim + psi.old_dim, psi.precision)
        content = {"new_dim": psi.new_dim, "rows": psi.rows}
        return content | ({"brief": True} if psi.brief else {}) | ({"rank": psi.rank} if psi.rank else {})

    def seat(self, key: str, seat: Seat) -> Content:
        """Write an expert."""
        for kind, (cls, write, _) in SEATS.items():
            if isinstance(seat, cls):
                return {"kind": kind, "name": seat.name} | write(self, key, seat)
        raise AssertionError(f"no way to write {seat!r}")


class Reader:
    """Gives out the arrays of a file, checked."""

    def __init__(self, tensors: Tensors, size: int) -> None:
        self.tensors = tensors
        self.most = MOST_BLOW_UP * size + SPARE

    def array(
        self, key: str, shape: tuple[int, ...] | None = None, kind: Any = np.float64
    ) -> npt.NDArray[Any]:
        """Return an array of this shape and type, all of it finite."""
        array = self.tensors[key]
        if array.dtype != np.dtype(kind) or (shape is not None and array.shape != shape):
            raise ValueError("an array has another size or type than it should")
        if not np.all(np.isfinite(array)):
            raise ValueError("a number in it is not finite")
        return array

    def check_size(self, size: int) -> None:
        """Refuse what would take far more memory than the file has."""
        if size > self.most:
            raise ValueError("it asks for far more memory than it holds")

    def scaler(self, key: str, space: Space) -> Floats:
        """Read what features are scaled by."""
        dim = space.dim
        if space.scaling == "float32":
            spread = self.array(f"{key}.spread", (2 * dim,), np.float32).astype(np.float64)
            deviation, count = spread.reshape(2, dim)
            state = np.concatenate([self.array(key, (dim,)), deviation * np.abs(deviation) * count, count])
        else:
            state = self.array(key, (3 * dim,))
        if np.any(state[dim:] < 0.0) or np.any(state[2 * dim :] > MOST_ROWS):
            raise ValueError("a feature's spread is none")
        check_features(state[:dim])
        return state

    def map(self, key: str, content: Content, recipe: Recipe, new: Space, old: Space) -> Any:
        """Read a map between two spaces."""
        new_dim = whole(content["new_dim"])
        if not 1 <= new_dim <= new.dim:
            raise ValueError("a map is from another space")
        self.check_size(8 * (new_dim + old.dim) ** 2)
        psi = recipe.new_map(new, old, new_dim)
        if not isinstance(psi, JointMap):
            psi.set_state(self.array(key, np.shape(psi.state())))
            return psi
        joint = fitted = None
        psi.brief = content.get("brief") is True
        if f"{key}.joint" in self.tensors:
            joint = self.moments(f"{key}.joint", new_dim + old.dim, psi.precision)
        elif f"{key}.sketch" in self.tensors:
            psi.sketch()
            joint = self.sketch(f"{key}.sketch", new_dim + old.dim)
        rank = whole(content.get("rank", 0))
        if rank and (rank > min(new_dim, old.dim) or not psi.brief or joint is not None):
            raise ValueError("a map of factors has fewer than features, is brief and fitted no more")
        if key in self.tensors:
            center, offset = np.split(self.array(key, (new_dim + old.dim,)), [new_dim])
            check_features(center)
            name, shape = ("factors", (rank, new_dim + old.dim)) if rank else ("matrix", (old.dim, new_dim))
            linear = self._linear_map(f"{key}.{name}", shape, psi)
            fitted = Fitted(linear.astype(np.float64), offset, center)
        if (key == "psi") != (fitted is not None) or (key == "overlap" and joint is None):
            raise ValueError("a map has not what it needs")
        psi.take(whole(content["rows"]), joint, fitted, rank)
        return psi

    def _linear_map(self, key: str, shape: tuple[int, int], psi: JointMap) -> npt.NDArray[Any]:
        if not psi.brief:
            return self.array(key, shape, psi.precision)
        linear = from_front_halves(self.array(key, shape, np.uint16))
        if not np.all(np.isfinite(linear)):
            raise ValueError("a number in it is not finite")
        return linear

    def names(self, key: str) -> Names:
        """Return names, checked."""
        *texts, rest = self.array(key, None, np.uint8).tobytes().split(b"\0")
        names = tuple(map(_name_in, texts))
        if rest or len(set(names)) != len(names):
            raise ValueError("its features are not named")
        return names

    def moments(self, key: str, dim: int, precision: str) -> npt.NDArray[np.float64]:
        """Return the state of a running mean and covariance."""
        head = self.array(key, (1 + dim,))
        if not 0.0 <= head[0] < MOST_ROWS:
            raise ValueError("statistics rest on no number of rows")
        sums = self.array(f"{key}.sums", (dim * (dim + 1) // 2,), precision)
        squares = sums[np.cumsum(np.arange(1, dim + 1)) - 1]
        # No product of two features sums to more than the larger one's squares do, but for rounding.
        largest = min(1.1 * squares.max(), 5.0 * LARGEST_READ**2 * max(head[0], 1.0))
        if (
            np.any(squares < 0.0)
            or np.any(np.abs(sums) > largest)
            or np.any(np.abs(head[1:]) > 2.0 * LARGEST_READ)
        ):
            raise ValueError("statistics are of no rows")
        return np.concatenate([head, sums, self._fourths(f"{key}.fourths", dim, precision)])

    def _fourths(self, key: str, dim: int, precision: str) -> npt.NDArray[Any]:
        """Return mean fourth powers, if there are any."""
        if key not in self.tensors:
            return np.empty(0)
        fourths = self.array(key, (dim,), precision)
        if np.any(fourths < 0.0):
            raise ValueError("statistics are of no rows")
        return fourths

    def sketch(self, key: str, dim: int) -> Floats:
        """Return the state of a sketch of rows."""
        head = self.array(key, (2 + 2 * dim,))
        if not 0.0 <= head[0] < MOST_ROWS or np.any(head[2 + dim :] < 0.0):
            raise ValueError("a sketch rests on no number of rows")
        check_features(head[2 : 2 + dim])
        check_features(head[2 + dim :])
        key = f"{key}.directions"
        if self.tensors[key].dtype == np.float16:
            return np.concatenate([head, self.array(key, (ROOM * dim,), np.float16)])
        # Earlier versions kept float32, in deviations.
        units = np.tile(unit_deviations(head[0], head[2 + dim :]), ROOM)
        return np.concatenate([head, units * self.array(key, (ROOM * dim,), np.float32)])

    def seat(self, key: str, content: Content, recipe: Recipe, space: Space, outputs: int) -> Any:
        """Read an expert of a space."""
        _, _, read = SEATS[content["kind"]]
        return read(self, key, content, recipe, space, outputs)


NUMBER = b"\x01"
"""Before a name that is a whole number; before a text that begins so or has a zero byte, its JSON follows."""

OTHER = b"\x02"


def _name_out(name: Any) -> bytes:
    if not isinstance(name, str):
        return NUMBER + str(int(name)).encode() + b"\0"
    text = name.encode()
    if text[:1] in (NUMBER, OTHER) or b"\0" in text:
        text = OTHER + json.dumps(name).encode()
    return text + b"\0"


def _name_in(text: bytes) -> str | int:
    if text[:1] == NUMBER:
        if len(text) > 64:
            raise ValueError("a feature's number is too long")
        return int(text[1:])
    if text[:1] == OTHER:
        name = json.loads(text[1:])
        if not isinstance(name, str):
            raise ValueError("a feature is not named by text or a number")
        return name
    return text.decode()
