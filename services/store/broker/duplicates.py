"""Messages that are sent again: recognized by topic and UNIQ_KEY, within a window of time.

A producer that heard nothing sends again, and cannot know that the first try was stored. The copy is not stored: its
receipt names the place of the first, and waits for disk and replicas as the first does, so it never says more than is
true. A send that failed leaves nothing here, and may be tried again.

What was stored since this broker began is remembered. What was stored before, by an earlier process or by another
master, is looked up in the index, as long as the window reaches back to the last of it.
"""

from array import array
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.segments.commit_log import Appended

MOST_REMEMBERED = 1_000_000
"""So many messages are remembered at most, some 210 bytes each; then the oldest go, whatever the window is."""

MOST_REPEATABLE = 100_000
"""The same where the window is only for messages that are repeated at once when their time-out has passed."""

_NO_END = 1 << 62
"""More than any log holds."""

_OWN_COPIES = GROUP_TOPICS
"""Topics that hold the same message several times, under the same key."""

Lookup = Callable[[str, str, int, int], bytes | None]
"""The newest record of a topic with a UNIQ_KEY that was stored at or after a time in ms, by the index.

What begins at or after a log offset, the last argument, is remembered here, and need not be found.
"""


_KIND = "q"
"""Of an array that is remembered as bytes: queue, physical offset, size, offset in the queue, store time.

One object that the collector never looks at.
"""


def name_of(topic: str, unique_key: str) -> str:
    """By what a message is remembered. No property has the character 02, so no two messages have the same."""
    return f"{topic}\x02{unique_key}"


class FirstCopy(NamedTuple):
    """Where a message was stored."""

    queue_id: int
    place: Appended


class DuplicateWindow:
    """The messages that were stored a short while ago."""

    def __init__(
        self,
        window_ms: int,
        clock: Clock,
        lookup: Lookup,
        most: int = MOST_REMEMBERED,
        *,
        of_all: bool = True,
        newest: int | None = None,
        log_end: Callable[[], int] = lambda: _NO_END,
    ) -> None:
        """`window_ms`: how long after a message its copy is recognized. `of_all`: not of repeatable messages only.

        `newest`: the time in ms at which the last message was stored that is there already; unset where that is not
        known. `log_end`: where the log ends now.
        """
        self.of_all = of_all
        self.window_ms = window_ms
        self._clock = clock
        self._lookup = lookup
        self.most = most
        self.stored: dict[str, bytes] = {}
        """Bytes of an array, by `name_of`. The compiled core, too, looks here, and adds."""
        self.order: deque[str] = deque()
        """Their keys, the oldest first."""
        self.remembered_since = clock.now_ms() if newest is None else newest
        """Of what was stored later nothing has to be looked up."""
        self._log_end = log_end
        self._remembered_from = log_end()
        self.recognized = 0
        """Copies that were not stored."""

    def begin_anew(self) -> None:
        """The role has changed: from now on the log may be another's."""
        self.stored.clear()
        self.order.clear()
        self.remembered_since = self._clock.now_ms()
        self._remembered_from = self._log_end()

    def watches(self, topic: str, unique_key: str, reconsume_times: int, *, repeatable: bool = False) -> bool:
        """Whether a copy of such a message is one that nobody wants. One that is consumed again is wanted.

        `repeatable`: its key is of one send alone. A classic client's program that sends the same object twice has
        the same key twice, and may want both.
        """
        if not (unique_key and (repeatable or self.of_all)):
            return False
        return not reconsume_times and not topic.startswith(_OWN_COPIES)

    def find(self, topic: str, unique_key: str) -> FirstCopy | None:
        """Where the message was stored, if it was within the window."""
        since = self._clock.now_ms() - self.window_ms
        known = self.stored.get(name_of(topic, unique_key))
        if known is None:
            found = self._in_index(topic, unique_key, since) if since <= self.remembered_since else None
            return found if found is not None and found.place.store_timestamp >= since else None
        queue_id, begin, size, queue_offset, store_timestamp = array(_KIND, known)
        if store_timestamp < since:
            return None
        return FirstCopy(queue_id, Appended(begin, size, queue_offset, store_timestamp, begin + size))

    def _in_index(self, topic: str, unique_key: str, since: int) -> FirstCopy | None:
        data = self._lookup(topic, unique_key, since, self._remembered_from)
        if data is None:
            return None
        record = decode_record(data, verify=False)
        if record.reconsume_times:
            return None
        begin, size = record.physical_offset, len(data)
        place = Appended(begin, size, record.queue_offset, record.store_timestamp, begin + size)
        return FirstCopy(record.queue_id, place)

    def add(self, topic: str, unique_key: str, stored: FirstCopy) -> None:
        """Remember a message, and forget those that are too old or too many."""
        key, place = name_of(topic, unique_key), stored.place
        if key not in self.stored:
            self.order.append(key)
        self.stored[key] = array(
            _KIND,
            (stored.queue_id, place.physical_offset, place.size, place.queue_offset, place.store_timestamp),
        ).tobytes()
        self.forget(place.store_timestamp - self.window_ms)

    def forget(self, since: int) -> None:
        """Forget what was stored before a time in ms, and what is too much."""
        entries, order = self.stored, self.order
        while len(order) > self.most or array(_KIND, entries[order[0]])[-1] < since:
            del entries[order.popleft()]

    def __len__(self) -> int:
        return len(self.stored)
