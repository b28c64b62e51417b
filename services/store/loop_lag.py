"""How late the event loop is: every send waits as long as whatever the loop is at when it comes."""

from collections.abc import Callable

from tandemmq.common.timers import Timers

_EVERY_SECONDS = 0.05


class LoopLag:
    """Asks to be called again and again, and tells by how many seconds the call was late."""

    def __init__(self, timers: Timers, told: Callable[[float], None]) -> None:
        """`told` hears each lateness."""
        self._timers = timers
        self._told = told
        self._stopped = False

    def start(self) -> None:
        """Begin; on the event loop."""
        due = self._timers.time() + _EVERY_SECONDS
        self._timers.call_at(due, self._look, due)

    def stop(self) -> None:
        """Look no more."""
        self._stopped = True

    def _look(self, due: float) -> None:
        if self._stopped:
            return
        self._told(max(self._timers.time() - due, 0.0))
        self.start()
