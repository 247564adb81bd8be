"""The simulated stand-in for RFID: signal strengths of moving tags, read by two generations of antennas."""

from __future__ import annotations

import numpy as np

from sf2el.datasets.dataset import Floats, Spaces, min_max

HALL = (24.0, 12.0)
"""Length and width of the hall, in metres. The classes are its two halves along the length."""

TAGS = 10
ANTENNAS = (78, 72)
POWER = (-45.0, -42.0)
"""Signal strength at one metre, in dBm, of the old and the new antennas."""

PATH_LOSS = 2.2
"""Decay of the signal: it loses 10 x this many dB for every tenfold distance."""

SHADOWING = 8.0
"""Standard deviation in dB of what goods and reflections add to a reading.

Chosen on streams of seeds 100 and above, so that the published learner is neither always right nor
hopeless.
"""

MISSED = 0.2
"""Share of readings that fail, and show the floor."""

FLOOR = -80.0
"""The weakest signal an antenna reports, in dBm."""

RESOLUTION = 0.5
SEED = 0


def simulate_rfid(rows: int = 940, *, shadowing: float = SHADOWING, seed: int = SEED) -> Spaces:
    """Return simulated signal strengths: 78 old antennas, 72 new ones, +1 where a tag is in the far half.

    Ten tags wander through a hall with antennas at random places. At distance ``d`` an antenna reads

    ``power - 10 * 2.2 * log10(d) + tag gain + shadowing``  (dBm, in steps of 0.5, at least -80),

    and one reading in five fails. Every feature is then scaled to [0, 1] over the whole set. It is no
    measurement, and no accuracy on it says anything about the RFID data of the paper.

    Examples
    --------
    >>> old, new, y, _ = simulate_rfid()
    >>> old.shape, new.shape, int((y > 0).sum())
    ((940, 78), (940, 72), 514)
    """
    rng = np.random.default_rng(seed)
    tag = np.arange(rows) * TAGS // rows
    places = np.concatenate([_wander(int(np.sum(tag == which)), rng) for which in range(TAGS)])
    gain = rng.normal(0.0, 3.0, size=TAGS)[tag]
    old, new = (
        min_max(_read(places, gain, antennas, power, shadowing, rng))
        for antennas, power in zip(ANTENNAS, POWER, strict=True)
    )
    return Spaces(old, new, np.where(places[:, 0] > HALL[0] / 2.0, 1.0, -1.0))


def _wander(rows: int, rng: np.random.Generator) -> Floats:
    """Return places on a smooth random walk: the velocity changes slowly, the walls reflect."""
    places = np.empty((rows, 2))
    place, velocity = rng.uniform((0.0, 0.0), HALL), rng.normal(0.0, 0.5, size=2)
    for row in range(rows):
        velocity = 0.9 * velocity + rng.normal(0.0, 0.35, size=2)
        moved = place + velocity
        place = np.clip(np.where(moved > HALL, 2.0 * np.array(HALL) - moved, np.abs(moved)), 0.0, HALL)
        velocity = np.where((moved < 0.0) | (moved > HALL), -velocity, velocity)
        places[row] = place
    return places


def _read(
    places: Floats, gain: Floats, antennas: int, power: float, shadowing: float, rng: np.random.Generator
) -> Floats:
    stands = rng.uniform((0.0, 0.0), HALL, size=(antennas, 2))
    distance = np.linalg.norm(places[:, None, :] - stands[None, :, :], axis=2)
    strength = power - 10.0 * PATH_LOSS * np.log10(np.maximum(distance, 0.5)) + gain[:, None]
    strength += rng.normal(0.0, shadowing, size=strength.shape)
    strength = np.maximum(np.round(strength / RESOLUTION) * RESOLUTION, FLOOR)
    return np.where(rng.random(strength.shape) < MISSED, FLOOR, strength)
