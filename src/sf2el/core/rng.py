"""The one random generator: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), 8 bytes of state.

The compiled core has the same one, so that ``paper.reference`` keeps the same rows of a stream.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
STRIDE = 0x9E3779B97F4A7C15
"""What the state grows by with each word."""


class SplitMix64:
    """A stream of uniform 64-bit words.

    >>> rng = SplitMix64(0)
    >>> hex(rng.next())
    '0xe220a8397b1dcdaf'
    >>> [SplitMix64(seed).below(10) for seed in range(5)]
    [8, 5, 5, 1, 4]
    """

    def __init__(self, state: int) -> None:
        self.state = state & _MASK

    def next(self) -> int:
        """Return the next word."""
        self.state = (self.state + STRIDE) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """Return a whole number in [0, n): the high word of a product, off uniform by less than n / 2^64."""
        return (self.next() * n) >> 64
