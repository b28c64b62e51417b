"""worker: a handler is called with each message of a group, as many at a time as it may; for asyncio."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Unpack

from tandemmq.client.aio_consumer import INVISIBLE_SECONDS, Consumer, Message
from tandemmq.client.cluster import Access
from tandemmq.client.errors import ClientError, NoLongerHeld
from tandemmq.client.message import MessageContent
from tandemmq.client.observing import Observers, observed_handling
from tandemmq.client.outgoing import Seconds, seconds_of
from tandemmq.common.timers import time_limit

log = logging.getLogger("tandemmq.client")

FIRST_RETRY, LONGEST_RETRY = 1.0, 600.0
"""Seconds until a message comes again whose handler failed: doubled each time."""

GRACE_SECONDS = 30.0
"""How long handlers may go on when the worker is stopped."""


_ATTEMPTS = 17
"""Tries of a message with an order key while the group's retryMaxTimes is not known: RocketMQ's default, 16 and one."""


class Retry(Exception):
    """Raised by a handler: the message is to come again after so many seconds, or a timedelta."""

    def __init__(self, after: Seconds | None = None) -> None:
        """Without `after` the worker's back-off decides."""
        super().__init__("the handler asks for a retry")
        self.after = after


class DeadLetter(Exception):
    """Raised by a handler: no retry can help, the message goes to the group's dead letters."""


BackOff = Callable[[int], Seconds]
"""How long until the next delivery, after the delivery of that number has failed (1 the first time)."""

Handler = Callable[[Message], Awaitable[object]]


def back_off(number: int) -> float:
    """1 s, 2 s, 4 s, and so on, at most 10 minutes."""
    return min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** min(number - 1, 20))


def _policy_of(consumer: Consumer) -> BackOff:
    """By the group's own retry policy, as the broker has told it last; `back_off` where it has none."""

    def wait(number: int) -> float:
        waits = consumer.retry_waits
        return waits[min(number, len(waits)) - 1] if waits else back_off(number)

    return wait


@dataclass
class WorkerCounts:
    """What a worker has done so far."""

    done: int = 0
    retried: int = 0
    dead: int = 0


async def worker(
    handler: Handler,
    addresses: str | Sequence[str],
    *,
    group: str,
    topic: str,
    filter: str = "*",
    sql: str = "",
    concurrency: int = 16,
    retry_after: BackOff | None = None,
    invisible: Seconds = INVISIBLE_SECONDS,
    attempts: int | None = None,
    grace: float = GRACE_SECONDS,
    stop: asyncio.Event | None = None,
    observers: Observers = (),
    **access: Unpack[Access],
) -> WorkerCounts:
    """Call `handler` with each message, at most `concurrency` at a time, until `stop` is set or the task is cancelled.

    A handler that returns has dealt with its message; one that raises gets it again after `retry_after`, or what
    `Retry` says, without both by the group's retry policy, and by `back_off` where it has none of its own. After the
    group's retryMaxTimes it is in the dead letters, where `DeadLetter` brings it at once.
    Messages of one order key are handled one after the other: one that fails is kept and tried again here, up to its
    delivery number `attempts` (without it what retryMaxTimes says), before it is a dead letter and those after it go
    on. At the end what is being handled is finished, within `grace` seconds. `observers` are told of each message.
    Gives the counts.

    Raises ValueError for a number that makes no sense, RequestFailed for what no retry can mend.
    """
    check_numbers(concurrency, attempts)
    async with Consumer(
        addresses,
        group=group,
        topic=topic,
        filter=filter,
        sql=sql,
        prefetch=concurrency,
        invisible=invisible,
        observers=observers,
        **access,
    ) as consumer:
        waits = retry_after or _policy_of(consumer)
        crew = _Crew(handler, concurrency, waits, _Tries(consumer, attempts), consumer)
        stopping = asyncio.create_task(_stop(consumer, stop), name="worker stop")
        try:
            async for message in consumer:
                await crew.take(message)
        finally:
            stopping.cancel()
            await consumer.stop()
            await crew.finish(grace)
        return crew.counts


def check_numbers(concurrency: int, attempts: int | None) -> None:
    """Raises ValueError: one of them makes no sense."""
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}: it must be 1 or more")
    if attempts is not None and attempts < 1:
        raise ValueError(f"attempts is {attempts}: it must be 1 or more")


class _Tries:
    """How many deliveries of a message there may be, by what the caller wants and the broker has said of the group."""

    def __init__(self, consumer: Consumer, asked: int | None) -> None:
        """`asked`: for messages with an order key; None: as for all others."""
        self._consumer = consumer
        self._asked = asked

    def is_last(self, message: Message) -> bool:
        """Whether there is to be no other delivery."""
        number, known = message.delivery_number, self._consumer.retry_max_times
        if message.order_key and (self._asked is not None or known is None):
            return number >= (self._asked or _ATTEMPTS)
        return known is not None and 0 <= known < number


async def _stop(consumer: Consumer, stop: asyncio.Event | None) -> None:
    if stop is not None:
        await stop.wait()
        await consumer.stop()


class _Crew:
    """Handlers at work. Messages of one order key form a line, in which one is handled at a time."""

    def __init__(
        self, handler: Handler, concurrency: int, retry_after: BackOff, tries: _Tries, consumer: Consumer
    ) -> None:
        self.counts = WorkerCounts()
        self._consumer = consumer
        self._timers = consumer._cluster.timers
        self._handler = handler
        self._places = asyncio.Semaphore(concurrency)
        self._retry_after = retry_after
        self._tries = tries
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines: dict[str, deque[Message]] = {}
        self._finishing = asyncio.Event()

    async def take(self, message: Message) -> None:
        """Begin with a message, when there is a place; one after others of its key waits without."""
        key = message.order_key
        if key and key in self._lines:
            self._lines[key].append(message)
            return
        await self._places.acquire()
        if key:
            self._lines[key] = deque([message])
        work = self._work_off(key) if key else self._work(message)
        task = asyncio.create_task(work, name="handle message")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, grace: float) -> None:
        """Wait for those at work; who is not ready in time is cancelled, and his message comes again."""
        self._finishing.set()
        if self._tasks:
            with suppress(TimeoutError):
                async with time_limit(self._timers, grace):
                    await asyncio.wait(self._tasks)
            late = [task for task in self._tasks if not task.done()]
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, message: Message) -> None:
        """One message without a key: if it is to come again, the broker brings it, to whichever member."""
        try:
            wait = await self._handle(message)
            if wait is not None and self._tries.is_last(message):
                await self._give_up(message)
            elif wait is not None:
                await self._put_off(message, wait)
        finally:
            self._places.release()

    async def _work_off(self, key: str) -> None:
        """All of a key, with a place for each try. A failed one is tried again here, so that nothing overtakes it."""
        line = self._lines[key]
        try:
            while line:
                try:
                    wait = await self._handle(line[0])
                finally:
                    self._places.release()
                if wait is None:
                    line.popleft()
                elif self._tries.is_last(line[0]):
                    await self._give_up(line.popleft())
                elif not await self._pause(wait):
                    break
                else:
                    line[0] = line[0].tried()
                if line:
                    await self._places.acquire()
        finally:
            del self._lines[key]
        if line:
            await self._put_off(line.popleft(), 0)
        for message in line:
            await message.give_back()

    async def _pause(self, seconds: float) -> bool:
        """Wait, while the message stays ours; False if the worker ends first."""
        try:
            async with time_limit(self._timers, seconds):
                await self._finishing.wait()
        except TimeoutError:
            self.counts.retried += 1
            return True
        return False

    async def _handle(self, message: Message) -> float | None:
        """One try; gives how many seconds the message waits, if there is to be another."""
        try:
            with observed_handling(self._consumer.observers, self._consumer.group, message):
                await self._handler(message)
        except DeadLetter as reason:
            await self._bury(message, str(reason))
        except Retry as asked:
            return self._wait(message, asked.after)
        except Exception:
            log.exception("%s: the handler failed", _name(message))
            return self._wait(message)
        else:
            await self._settle(message, message.ack)
            self.counts.done += 1
        return None

    def _wait(self, message: Message, asked: Seconds | None = None) -> float:
        """Seconds until the next try. What the program says and is no duration does not keep the message for ever."""
        number = message.delivery_number
        try:
            return seconds_of(self._retry_after(number) if asked is None else asked)
        except Exception:
            log.exception("%s: nobody knows how long it is to wait", _name(message))
            return back_off(number)

    async def _give_up(self, message: Message) -> None:
        await self._bury(message, f"{message.delivery_number} tries have failed")

    async def _bury(self, message: Message, reason: str) -> None:
        log.warning("%s: to the dead letters: %s", _name(message), reason)
        await self._settle(message, message.dead_letter)
        self.counts.dead += 1

    async def _put_off(self, message: Message, wait: float) -> None:
        log.info("%s: comes again in %s s", _name(message), wait)
        await self._settle(message, lambda: message.retry(wait))
        self.counts.retried += 1

    async def _settle(self, message: Message, call: Callable[[], Awaitable[None]]) -> None:
        """What cannot be said is no disaster: the message is renewed no more, and comes again."""
        try:
            await call()
        except NoLongerHeld as error:
            log.warning("%s: it was given to others too: %s", _name(message), error)
        except ClientError as error:
            message.let_go()
            log.warning("%s: the store was not told, so it comes again: %s", _name(message), error)


def _name(message: MessageContent) -> str:
    return f"{message.topic} {message.unique_key} (delivery {message.delivery_number})"
