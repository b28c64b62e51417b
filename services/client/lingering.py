"""Lingering: messages that are sent within a short while go in one request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tandemmq.client.encode import Outgoing
from tandemmq.client.errors import ClientError, ClientFault, Refused
from tandemmq.client.outgoing import Sent
from tandemmq.common.timers import Timer, Timers

MOST_MESSAGES = 500
MOST_BYTES = 512 << 10
"""Of one request: what comes after that waits for the next."""


class Lingering:
    """Gathers messages, for one event loop. Close it: what waits is sent then.

    A request is refused as a whole; so where one is, its messages are sent again one by one, and each has its own end.
    """

    def __init__(
        self,
        seconds: float,
        send_all: Callable[[Sequence[Outgoing]], Awaitable[Sequence[Sent]]],
        send_one: Callable[[Outgoing], Awaitable[Sent]],
        timers: Timers,
    ) -> None:
        """`seconds`: how long the first message of a request waits for others."""
        self._seconds = seconds
        self._send_all = send_all
        self._send_one = send_one
        self._timers = timers
        self._waiting: list[tuple[Outgoing, asyncio.Future[Sent]]] = []
        self._bytes = 0
        self._timer: Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, message: Outgoing) -> Sent:
        """Store a message with others; who is cancelled in time has not sent it. Raises what sending it raises."""
        done: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, done))
        self._bytes += len(message.body)
        if len(self._waiting) >= MOST_MESSAGES or self._bytes >= MOST_BYTES:
            self._flush()
        elif self._timer is None:
            self._timer = self._timers.call_later(self._seconds, self._flush)
        return await done

    def hurry(self) -> None:
        """Send what waits; from now on nothing waits for long."""
        self._seconds = 0.0
        self._flush()

    async def close(self) -> None:
        """Send what waits, and wait for what is under way."""
        self.hurry()
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        gathered = [one for one in self._waiting if not one[1].done()]  # who is done has called it off
        self._waiting, self._bytes = [], 0
        if gathered:
            task = asyncio.create_task(self._send(gathered), name="send what was gathered")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, gathered: Sequence[tuple[Outgoing, asyncio.Future[Sent]]]) -> None:
        if len(gathered) == 1:
            await self._alone(*gathered[0])
            return
        try:
            all_sent = await self._send_all([message for message, _ in gathered])
        except Refused:
            await asyncio.gather(*(self._alone(message, done) for message, done in gathered))
        except Exception as error:  # noqa: BLE001 - whatever it was, raised where it is waited for
            for _, done in gathered:
                _fail(done, error)
        else:
            for (_, done), sent in zip(gathered, all_sent, strict=True):
                if not done.done():
                    done.set_result(sent)

    async def _alone(self, message: Outgoing, done: "asyncio.Future[Sent]") -> None:
        try:
            sent = await self._send_one(message)
        except Exception as error:  # noqa: BLE001 - as above
            _fail(done, error)
        else:
            if not done.done():
                done.set_result(sent)


def _fail(done: "asyncio.Future[Sent]", error: Exception) -> None:
    if not done.done():
        done.set_exception(error if isinstance(error, ClientError) else ClientFault("Sending", error))
