"""Order by message group: which messages of an ordered group must wait for which. No I/O and no clock.

A line is the messages of one message group (`__SHARDINGKEY`) that a consumer group has looked at and not dealt with,
over all queues of a topic. Only its first may be given out, with those directly after it in the same answer. The
others are held back: they have an entry of number 0, or wait to be given out again, and are set aside until the first
is dealt with. So a message that fails holds up its own message group and nothing else.

What has no message group is in one line with all such messages of its queue.

What is acknowledged out of turn is settled only when all before it is. If one before it is given out again first, it
comes again too: who gets messages in order gets them again from the first that was not acknowledged on.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator
from itertools import dropwhile, takewhile

from tandemmq.store.delivery.journal.facts import Place

Spot = tuple[int, int]
"""A queue, and an offset in it."""


class Line:
    """One message group. Messages of one queue are in order of their offsets; queues take turns when one is empty."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: dict[int, deque[int]] = {}

    def add(self, spot: Spot) -> None:
        """A message was looked at. One that was there before is passed over."""
        queue, offset = spot
        offsets = self._queues.get(queue)
        if offsets is None:
            self._queues[queue] = deque((offset,))
        elif offset > offsets[-1]:
            offsets.append(offset)
        elif offset not in offsets:  # rare: after a restart, and what comes late
            self._queues[queue] = deque(sorted((*offsets, offset)))

    def head(self) -> Spot | None:
        """The message that is first."""
        for queue, offsets in self._queues.items():
            return queue, offsets[0]
        return None

    def drop(self, spot: Spot) -> None:
        """A message is dealt with."""
        queue, offset = spot
        offsets = self._queues.get(queue)
        if offsets is None:
            return
        if offsets[0] == offset:
            offsets.popleft()
        elif offset in offsets:
            offsets.remove(offset)
        if not offsets:
            del self._queues[queue]

    def follows(self, spot: Spot, chosen: Container[Spot]) -> bool:
        """Whether all before `spot` are among those that are `chosen` for the same answer."""
        queue, offset = spot
        for first, offsets in self._queues.items():
            if first != queue:
                return False
            for one in offsets:
                if one == offset:
                    return True
                if (queue, one) not in chosen:
                    return False
            return False
        return False

    def __iter__(self) -> Iterator[Spot]:
        """All messages, in their order."""
        return ((queue, offset) for queue, offsets in self._queues.items() for offset in offsets)

    def after(self, spot: Spot) -> Spot | None:
        """The message after one of those that are first."""
        queue, offset = spot
        behind = iter(self._queues.get(queue, ()))
        for one in behind:
            if one >= offset:
                following = next(behind, None)
                return None if following is None else (queue, following)
        return None

    def __bool__(self) -> bool:
        return bool(self._queues)


class MessageGroups:
    """The lines of one consumer group in one topic."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._keys: dict[Spot, str] = {}
        self._acknowledged: set[Spot] = set()  # out of turn
        self.held: dict[int, set[int]] = {}
        """By queue: offsets that are set aside until they are first in their line."""

    def __len__(self) -> int:
        """Messages that are in some line."""
        return len(self._keys)

    def add(self, spot: Spot, key: str) -> None:
        """A message with this message group was looked at."""
        if spot not in self._keys:
            self._keys[spot] = key
            self._lines.setdefault(key, Line()).add(spot)

    def may_go(self, spot: Spot, chosen: Container[Spot] = ()) -> bool:
        """Whether a message may be given out, together with those that are `chosen` already."""
        return self._lines[self._keys[spot]].follows(spot, chosen)

    def let_follow(self, spot: Spot) -> Spot | None:
        """A message is given out: the one after it, if it was set aside, no longer is, and may go with it."""
        following = self._lines[self._keys[spot]].after(spot)
        return following if following is not None and self._let_go(following) else None

    def hold(self, spot: Spot) -> None:
        """A message is set aside until it is first."""
        self.held.setdefault(spot[0], set()).add(spot[1])

    def acknowledge(self, spots: Iterable[Spot]) -> list[Spot]:
        """Messages are acknowledged. Gives what is settled by that: none while one before them is not acknowledged."""
        settled: list[Spot] = []
        lines: dict[str, None] = {}
        for spot in spots:
            key = self._keys.get(spot)
            if key is None:
                settled.append(spot)
            else:
                self._acknowledged.add(spot)
                lines[key] = None
        for key in lines:
            settled += self._settled(self._lines[key])
        return settled

    def _settled(self, line: Line) -> list[Spot]:
        """The messages at the head of a line that are acknowledged."""
        return list(takewhile(self._acknowledged.__contains__, line))

    def reopen(self, spot: Spot) -> list[Spot]:
        """A message is given out again. Gives those after it that were acknowledged: they no longer are."""
        if not self._acknowledged:
            return []
        line = self._lines[self._keys[spot]]
        behind = [one for one in dropwhile(lambda one: one != spot, line) if one in self._acknowledged]
        self._acknowledged.difference_update(behind)
        return behind

    def dealt(self, spots: Iterable[Spot]) -> tuple[list[Spot], list[Spot]]:
        """Messages are dealt with.

        Gives those that were set aside for them, and are first now: they no longer are. And what is settled by that.
        """
        lines: dict[str, Line] = {}
        for spot in spots:
            self._acknowledged.discard(spot)
            self._let_go(spot)
            key = self._keys.pop(spot, None)
            if key is not None:
                lines[key] = self._lines[key]
                lines[key].drop(spot)
        freed: list[Spot] = []
        settled: list[Spot] = []
        for key, line in lines.items():
            head = line.head()
            if head is None:
                del self._lines[key]
            elif head in self._acknowledged:
                settled += self._settled(line)
            elif self._let_go(head):
                freed.append(head)
        return freed, settled

    def _let_go(self, spot: Spot) -> bool:
        held = self.held.get(spot[0])
        if held is None or spot[1] not in held:
            return False
        held.remove(spot[1])
        if not held:
            del self.held[spot[0]]
        return True


def line_key(place: Place, message_group: str | None) -> str:
    """The line that a message belongs to."""
    return f"g{message_group}" if message_group else f"q{place.queue}"
