"""The answer to a receive, while messages are put into it, and as it is given."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.order import Spot
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress
from tandemmq.store.delivery.port import Connected, GivenMessage


class Share(NamedTuple):
    """One message that was given out: where it lies, and for the how many-th time it was given from there."""

    place: Place
    offset: int
    number: int
    resets: int

    def entry_in(self, progress: QueueProgress | None) -> OpenEntry | None:
        """What its place knows of the message, if that is still given out as it was."""
        entry = None if progress is None or progress.resets != self.resets else progress.entries.get(self.offset)
        return entry if entry is not None and entry.number == self.number else None


class Answer:
    """Messages for one receive, as many as it may have."""

    __slots__ = ("bytes", "chosen", "messages", "most", "most_bytes", "shares", "until")

    def __init__(self, most: int, most_bytes: int) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.bytes = 0
        self.messages: list[GivenMessage] = []
        self.shares: list[Share] = []
        self.chosen: dict[str, set[Spot]] = {}
        """By topic: what of an ordered group is in it."""
        self.until: int | None = None
        """When it is to go with what it has: half of the time for which that is invisible has passed then."""

    def begins(self, now: int, invisible_ms: int) -> None:
        """It is looked for, from now on: what is put into it is invisible for so long."""
        if self.until is None:
            self.until = now + invisible_ms // 2

    def is_late(self, now: int) -> bool:
        """Whether nothing that is due again goes into it any more, lest one of its own messages comes a second time."""
        return self.until is not None and now >= self.until and bool(self.messages)

    @property
    def room(self) -> int:
        """How many more messages it may have."""
        return self.most - len(self.messages)

    def is_full(self) -> bool:
        """Whether it takes no more."""
        return len(self.messages) >= self.most or (bool(self.messages) and self.bytes >= self.most_bytes)

    def fits(self, size: int) -> bool:
        """Whether it takes a record of so many bytes; the first is taken whatever its size."""
        if not self.messages:
            return True
        return len(self.messages) < self.most and self.bytes + size <= self.most_bytes

    def cut(self, most: int) -> list[Share]:
        """Leave out all messages but the first ones: the shares of those that are left out."""
        rest = self.shares[most:]
        self.bytes -= sum([len(one.record) for one in self.messages[most:]])
        del self.messages[most:], self.shares[most:]
        return rest

    def add(self, message: GivenMessage, share: Share) -> None:
        """Put in a message that is given out."""
        self.messages.append(message)
        self.shares.append(share)
        self.bytes += len(message.record)


class GivenBatch:
    """See `port.Batch`."""

    __slots__ = ("_release", "_sent", "_shares", "messages")

    def __init__(
        self,
        messages: Sequence[GivenMessage] = (),
        shares: Sequence[Share] = (),
        release: Callable[[Sequence[Share]], None] | None = None,
        sent: Callable[[Sequence[Share], Connected], None] | None = None,
    ) -> None:
        self.messages: Sequence[GivenMessage] = messages
        self._shares = shares
        self._release = release
        self._sent = sent

    def sent(self, connected: Connected) -> None:
        """See `port.Batch`."""
        release, self._release = self._release, None
        if release is not None and self._sent is not None:
            self._sent(self._shares, connected)

    def release(self) -> None:
        """See `port.Batch`."""
        release, self._release = self._release, None
        if release is not None and self._shares:
            release(self._shares)
