"""SIGTERM and SIGINT as something to wait for."""

import asyncio
import signal

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Becomes set when the program asks for it: all that a service hears which shares its process with others."""

    def __init__(self) -> None:
        self._stopped = asyncio.Event()
        self.reason = ""

    def listen(self) -> None:
        """Whoever may ask is to be heard from now on."""

    def request(self, reason: str) -> None:
        """Stops the service for a reason of its own."""
        self.reason = self.reason or reason
        self._stopped.set()

    async def wait(self) -> str:
        """Returns the reason once there is one."""
        await self._stopped.wait()
        return self.reason


class StopSignal(StopRequest):
    """Becomes set at the first SIGTERM or SIGINT too.

    A second signal while stopping kills the process at once, as for any other program: an impatient operator can
    always get out, and a store survives that.
    """

    def listen(self) -> None:
        """Catches the signals from now on, unless one has come; needs a running loop in the main thread."""
        if self._stopped.is_set():
            return
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._caught, number)

    def _caught(self, number: signal.Signals) -> None:
        self.forget()
        self.request(number.name)

    def forget(self) -> None:
        """Gives the signals back to their default handling."""
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
