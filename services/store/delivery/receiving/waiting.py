"""Receives that wait for a message.

Whoever waits stands in a line: of its group, the topic it asked for, and the queue it wants, or any. What may have made
a message available wakes the first of each line that it concerns, and nobody else: a new message in a queue, a message
that is due again, an unlocked message group, freed room, a reset. A waiter that leaves without having looked passes its
wake on to the next.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.common.slices import in_turns
from tandemmq.common.timers import Timers
from tandemmq.store.broker.errors import StoreStopping
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.log.message_store import MessageStore

_LATE_SECONDS = 3600.0
"""The alarm looks again after so long, whatever is due."""
_AT_ONCE = 256
"""Places that are told at once that they have something; where there are more, in turns."""


class LineKey(NamedTuple):
    """Whose line it is: receives of a group that asked for a topic, and for one queue of it or any."""

    group: str
    topic: str
    queue: int


class _Waiter:
    __slots__ = ("client_id", "future", "gone", "key", "sources", "woken")

    def __init__(self, key: LineKey, sources: tuple[Place, ...], client_id: str) -> None:
        self.key = key
        self.sources = sources
        self.client_id = client_id
        self.gone = False
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.woken = False

    def expire(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Waiters:
    """All who wait, in their lines."""

    def __init__(self, store: MessageStore, timers: Timers) -> None:
        self._store = store
        self._timers = timers
        self._lines: dict[LineKey, dict[_Waiter, None]] = {}
        self._of_group: dict[str, dict[LineKey, None]] = {}
        self._by_place: dict[Place, dict[LineKey, int]] = {}
        self._watched: dict[tuple[str, int], _Watch] = {}
        self._ended: TandemError | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def end(self, error: TandemError) -> None:
        """End every wait, and every later one, with `error`."""
        self._ended = error
        for line in list(self._lines.values()):
            for waiter in list(line):
                if not waiter.future.done():
                    waiter.future.set_exception(error)

    def stop(self) -> None:
        """End every wait, and every later one, with StoreStopping."""
        self.end(StoreStopping("The store stops.", remedy="Receive again when it is back."))

    def resume(self) -> None:
        """Let receives wait again, after `end`."""
        self._ended = None

    def check(self) -> None:
        """Raises what waits are ended with, if they are."""
        if self._ended is not None:
            raise self._ended

    def gone(self, group: str, client_id: str) -> None:
        """A client ends: it waits no more."""
        for waiter in [one for key in self._of_group.get(group, ()) for one in self._lines[key]]:
            if waiter.client_id == client_id and not waiter.future.done():
                waiter.gone = True
                waiter.future.set_result(None)

    async def wait(self, key: LineKey, sources: Iterable[Place], seconds: float, client_id: str = "") -> bool | None:
        """Wait until one of the `sources` may have something for the line; False when the time is over.

        None when the client has ended. Raises what `end` was given.
        """
        self.check()
        waiter = _Waiter(key, tuple(sources), client_id)
        self._join(waiter)
        timer = self._timers.call_later(max(seconds, 0), waiter.expire)
        try:
            await waiter.future
            return None if waiter.gone else waiter.woken
        except asyncio.CancelledError:
            self._leave(waiter)
            if waiter.woken:
                self.wake_line(key)
            raise
        finally:
            self._leave(waiter)
            timer.cancel()

    def _join(self, waiter: _Waiter) -> None:
        self._lines.setdefault(waiter.key, {})[waiter] = None
        self._of_group.setdefault(waiter.key.group, {})[waiter.key] = None
        self._count += 1
        for place in waiter.sources:
            lines = self._by_place.setdefault(place, {})
            lines[waiter.key] = lines.get(waiter.key, 0) + 1
            self._watch(place)

    def _leave(self, waiter: _Waiter) -> None:
        line = self._lines.get(waiter.key)
        if line is None or waiter not in line:
            return
        del line[waiter]
        self._count -= 1
        if not line:
            del self._lines[waiter.key]
            of_group = self._of_group[waiter.key.group]
            del of_group[waiter.key]
            if not of_group:
                del self._of_group[waiter.key.group]
        for place in waiter.sources:
            lines = self._by_place[place]
            lines[waiter.key] -= 1
            if not lines[waiter.key]:
                del lines[waiter.key]
            if not lines:
                del self._by_place[place]
                self._unwatch(place)

    # -- wakes ------------------------------------------------------------------------------------------------------

    def wake(self, place: Place) -> None:
        """A message of the place may be had."""
        for key in list(self._by_place.get(place, ())):
            self.wake_line(key)

    def wake_line(self, key: LineKey) -> None:
        """Wake the first of a line that is not awake yet."""
        for waiter in self._lines.get(key, ()):
            if not waiter.woken and not waiter.future.done():
                waiter.woken = True
                waiter.future.set_result(None)
                return

    def wake_group(self, group: str, topic: str) -> None:
        """Wake the first of each line of a group at a topic as it was asked for."""
        for key in [key for key in self._of_group.get(group, ()) if key.topic == topic]:
            self.wake_line(key)

    # -- new messages -----------------------------------------------------------------------------------------------

    def _watch(self, place: Place) -> None:
        queue = place.topic, place.queue
        watch = self._watched.get(queue)
        if watch is None:
            watch = self._watched[queue] = _Watch(self._store, queue, self._arrived)
        watch.groups[place.group] = watch.groups.get(place.group, 0) + 1

    def _unwatch(self, place: Place) -> None:
        queue = place.topic, place.queue
        watch = self._watched[queue]
        del watch.groups[place.group]
        if not watch.groups:
            watch.end()
            del self._watched[queue]

    def _arrived(self, watch: "_Watch") -> None:
        for group in list(watch.groups):
            self.wake(Place(group, *watch.queue))


class _Watch:
    """One queue that somebody waits for."""

    def __init__(self, store: MessageStore, queue: tuple[str, int], arrived: "Callable[[_Watch], None]") -> None:
        self._store = store
        self._arrived = arrived
        self._future: asyncio.Future[None] | None = None
        self.queue = queue
        self.groups: dict[str, int] = {}
        self._wait()

    def end(self) -> None:
        future, self._future = self._future, None
        if future is not None:
            future.cancel()

    def _wait(self) -> None:
        queue = self._store.ensure_queue(*self.queue)
        self._future = queue.wait_beyond(queue.readable_end)
        self._future.add_done_callback(self._done)

    def _done(self, future: "asyncio.Future[None]") -> None:
        if future.cancelled() or future is not self._future:
            return
        self._wait()
        self._arrived(self)


class Alarm:
    """Makes ready what is due, when it is due, and wakes those who wait for it."""

    def __init__(self, ledger: Ledger, clock: DeliveryClock, timers: Timers, came_due: Callable[[Place], None]) -> None:
        """`came_due` hears of each place that has something to give again."""
        self._ledger = ledger
        self._clock = clock
        self._timers = timers
        self._came_due = came_due
        self._set_for: int | None = None
        self._ended = False

    def end(self) -> None:
        """Nothing comes due any more."""
        self._ended = True

    def look(self) -> None:
        """Make ready what is due now, and be called when the next message is. To be called after facts with times.

        Where very many are due at the same time, the others are in the next turns of the loop.
        """
        if self._ended:
            return
        ledger, now = self._ledger, self._clock.now_ms()
        due = ledger.next_due()
        if due is not None and due <= now:
            places = ledger.come_due(now)
            if len(places) > _AT_ONCE:
                in_turns(self._timers, places, self._came_due, lambda: None)
            else:
                for place in places:
                    self._came_due(place)
            due = ledger.next_due()
        if due is None or (self._set_for is not None and self._set_for <= due):
            return
        self._set_for = due
        if due <= now:
            self._timers.call_soon(self._ring, due)
        else:
            self._timers.call_later(min((due - now) / 1000, _LATE_SECONDS), self._ring, due)

    def _ring(self, due: int) -> None:
        if self._set_for == due:
            self._set_for = None
        self.look()
