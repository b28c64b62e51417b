"""Counts work between two turns of the event loop: what holds up all others, without measuring time."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class TurnCounter:
    """Call it for each unit of work."""

    def __init__(self) -> None:
        self.most = 0
        """Units in one turn."""
        self.all = 0
        self._now = 0
        self._runs = True

    def __call__(self, units: int = 1) -> None:
        self.all += units
        self._now += units
        self.most = max(self.most, self._now)

    def _turn(self) -> None:
        self._now = 0
        if self._runs:
            asyncio.get_running_loop().call_soon(self._turn)

    @classmethod
    @contextmanager
    def counting(cls) -> Iterator["TurnCounter"]:
        """Count from here to the end of the block."""
        counter = cls()
        counter._turn()
        try:
            yield counter
        finally:
            counter._runs = False
