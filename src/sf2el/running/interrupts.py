"""Interrupts that wait until what is in work is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Turns SIGINT and SIGTERM into KeyboardInterrupt: at once, or after what must not be cut in two."""

    def __init__(self) -> None:
        self._busy = self._came = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Catch them meanwhile, where Python lets us: in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._met) for number in HELD}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold them back meanwhile, and let the last one go at the end."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def _met(self, number: int, frame: FrameType | None) -> None:
        if not self._busy:
            raise KeyboardInterrupt
        self._came = True
