"""Topics whose messages are kept for a shorter time than the files of the log.

The log is shared by all topics, so no file goes for one of them. Its queues begin later for readers instead, at the
first message that is young enough (`ConsumeQueue.readable_begin`). Nothing of that is on disk. It follows from the
hours of the topic and the store times in the log, so that files, manifest, rebuilds and audits are what they are
without it, and a start or a promotion finds it again.

The bound of a queue only rises while the hours stay the same, whatever the clock does. With other hours it is found
anew: more of them bring back what the log still has. How old messages are is asked of the clock as it is: one that was
ahead for a while hides nothing that is stored afterwards.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from tandemmq.common.slices import Slices
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.time_search import first_since, store_time_at

log = logging.getLogger(__name__)

_HOUR_MS = 3_600_000
_REST_MS = 60_000
"""A queue is not looked at more often."""
_MOST_UNREADABLE = 128
"""No further is a message looked for after units without one. Where there is none so near, what follows is kept."""
_LOOK_BACK = 8
"""So many messages before a bound are asked whether it is true: the store time of a single one may be wrong."""


class _Kept(NamedTuple):
    """For how many hours the messages of a queue are kept, when that was looked at, and when it is to be again, ms."""

    hours: int
    looked: int
    due: int


class TopicRetention:
    """Lets the queues of such topics begin later."""

    def __init__(self, parts: StoreParts, log_end: Callable[[], int]) -> None:
        """``log_end``: log offset after the last record."""
        self._parts = parts
        self._log_end = log_end
        self._hours: Callable[[str], int] | None = None
        self._kept: dict[ConsumeQueue, _Kept] = {}

    def follow(self, hours: Callable[[str], int]) -> None:
        """Have the messages of a topic kept for so many ``hours`` from now on; 0: as long as the files of the log.

        Queues that are opened later follow when they are.
        """
        self._hours = hours
        self._parts.queues.opening.append(self.apply)
        for queue in self._parts.queues.opened:
            self.apply(queue)

    async def run_once(self) -> None:
        """Look at all queues of such topics, in slices."""
        hours, queues = self._hours, self._parts.queues
        if hours is None:
            return
        slices = Slices(self._parts.timers)
        for topic in queues.topics():
            for number in queues.ids(topic) if hours(topic) > 0 else ():
                try:
                    queue = queues.get(topic, number)
                except OSError as error:
                    self._failed(topic, number, error)
                else:
                    if queue is not None:
                        self.apply(queue)
                await slices.pause()
            await slices.pause()
        for queue in [one for one in self._kept if hours(one.topic) <= 0]:
            self.apply(queue)

    def apply(self, queue: ConsumeQueue) -> None:
        """Let a queue begin where its topic's hours say; where it cannot be read, that is tried again."""
        try:
            self._apply(queue)
        except OSError as error:
            self._failed(queue.topic, queue.queue_id, error)

    def _failed(self, topic: str, queue_id: int, error: OSError) -> None:
        log.error("Queue %d of topic %s cannot be read for its topic's retention: %s", queue_id, topic, error)
        self._parts.observer.failed("retention")

    def _apply(self, queue: ConsumeQueue) -> None:
        hours = 0 if self._hours is None else self._hours(queue.topic)
        known = self._kept.get(queue)
        if hours <= 0:
            if known is not None:
                del self._kept[queue]
                queue.kept_from = 0
            return
        now = self._parts.clock.now_ms()
        if known is not None and known.hours == hours and known.looked <= now < known.due:
            return
        if known is None or known.hours != hours:
            queue.kept_from = 0
        if queue.rebuilding:
            return  # what is not restored yet cannot be searched
        queue.kept_from = self._first_kept(queue, now - hours * _HOUR_MS)
        first = store_time_at(self._parts, queue, queue.readable_begin, self._log_end())
        due = now if first is None else first + hours * _HOUR_MS
        self._kept[queue] = _Kept(hours, now, max(due, now + _REST_MS))

    def _first_kept(self, queue: ConsumeQueue, since_ms: int) -> int:
        """The first message that readers may see and that was stored at ``since_ms`` or later."""
        parts, log_end = self._parts, self._log_end()
        begin, end = queue.readable_begin, queue.readable_end
        while True:
            found = first_since(parts, queue, range(begin, end), since_ms, log_end, _MOST_UNREADABLE)
            for number in range(max(begin, found - _LOOK_BACK), found):
                stored = store_time_at(parts, queue, number, log_end)
                if stored is not None and stored >= since_ms:
                    end = number
                    break
            else:
                return found
