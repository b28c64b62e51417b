"""The tables of consumer offsets and of delay offsets, without files or network.

They change all the time, so a change takes effect at once and is written later. Entries are never changed in place: a
new one takes the old one's place, and a shallow copy of the table is a whole table of one moment.

A slave takes commits too, because consumers read from it while the master is away. Each offset counts together with
the number of times it was reset: of two values for a queue the one with more resets is right, and of two with the same
resets the greater offset. So master and slave may merge their tables as often as they like: nothing goes back but by
a reset, and a reset is never undone by an older commit.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.tables import VERSION_KEY, Change, Content, Stamp, TableKind, split_document, stale

_RESETS, _PENDING, _FOLLOWED = "tandemResets", "tandemPending", "tandemFollowed"
"""What our consumerOffset.json holds and RocketMQ's does not."""

NONE = -1
"""No offset."""


class GroupQueueOffsets(NamedTuple):
    """A group's progress in a topic. Its dictionaries are never changed."""

    offsets: Mapping[int, int]
    resets: Mapping[int, int] = {}

    def at(self, queue: int) -> tuple[int, int]:
        """(resets, offset) of a queue: of two such pairs the greater one is right."""
        return self.resets.get(queue, 0), self.offsets.get(queue, NONE)

    def having(self, queue: int, offset: int, resets: int) -> "GroupQueueOffsets":
        """The same with another offset at one queue."""
        counts = {**self.resets, queue: resets} if resets else self.resets
        return GroupQueueOffsets({**self.offsets, queue: offset}, counts)


_NO_OFFSETS = GroupQueueOffsets({})
_NONE: frozenset[int] = frozenset()


class PendingCommit(NamedTuple):
    """A commit that the master does not have yet."""

    key: str
    queue: int
    offset: int
    resets: int


def offsets_key(topic: str, group: str) -> str:
    """The table's key."""
    return f"{topic}@{group}" if group else topic


def topic_and_group(key: str) -> tuple[str, str]:
    """What a key says. RocketMQ's names hold no @; a key without one is kept, as a topic of no group."""
    topic, _, group = key.partition("@")
    return topic, group


class ConsumerOffsetTable:
    """How far groups have consumed: `topic@group` -> queue -> offset."""

    kind = TableKind.CONSUMER_OFFSETS

    def __init__(self) -> None:
        self.entries: dict[str, GroupQueueOffsets] = {}
        self.version = DataVersion()
        self.other: Mapping[str, Any] = {}
        self.pending: dict[str, frozenset[int]] = {}
        """Slave: queues whose commits the master does not have yet."""
        self.followed = False
        """Whether this is a slave's table that came from its master: only then are the two merged."""

    @property
    def content(self) -> Content:
        """The table at this moment."""
        return Content(self.version, dict(self.entries), self.other)

    # -- the file ---------------------------------------------------------------------------------------------------

    def read(self, document: Mapping[str, Any]) -> Content:
        """The content that a document says. Raises ValueError."""
        entries, version, other = split_document(document, self.kind.key)
        resets = _numbers_by_key(other.pop(_RESETS, {}))
        offsets = _numbers_by_key(entries)
        _queues_by_key(other.pop(_PENDING, {}))
        other.pop(_FOLLOWED, None)
        return Content(version, {key: GroupQueueOffsets(offsets[key], resets.get(key, {})) for key in offsets}, other)

    def load(self, document: Mapping[str, Any]) -> None:
        """Become what a document says. Raises ValueError."""
        self._become(self.read(document))
        self.pending = _queues_by_key(document.get(_PENDING, {}))
        self.followed = document.get(_FOLLOWED) is True

    def document(self, content: Content) -> dict[str, Any]:
        """The document that says a content of this table; what is pending is that of now. May run on any thread."""
        pending = dict(self.pending)
        document: dict[str, Any] = {**content.other, VERSION_KEY: content.version.to_json()}
        document[self.kind.key] = {key: _texts(entry.offsets) for key, entry in content.entries.items()}
        resets = {key: _texts(entry.resets) for key, entry in content.entries.items() if entry.resets}
        if resets:
            document[_RESETS] = resets
        if pending:
            document[_PENDING] = {key: sorted(queues) for key, queues in pending.items()}
        if self.followed:
            document[_FOLLOWED] = True
        return document

    # -- commits ----------------------------------------------------------------------------------------------------

    def get(self, topic: str, group: str) -> GroupQueueOffsets | None:
        """A group's offsets in a topic, or None."""
        return self.entries.get(offsets_key(topic, group))

    def commit(self, key: str, queue: int, offset: int, *, on_slave: bool = False) -> int:
        """Commit an offset; gives what stands then: the greater one of the two."""
        entry = self.entries.get(key) or _NO_OFFSETS
        resets, before = entry.at(queue)
        if offset <= before:
            return before
        self.entries[key] = entry.having(queue, offset, resets)
        if on_slave:
            self.pending[key] = self.pending.get(key, frozenset()) | {queue}
        return offset

    def reset(self, key: str, queue: int, offset: int) -> None:
        """Set an offset, backwards too."""
        entry = self.entries.get(key) or _NO_OFFSETS
        self.entries[key] = entry.having(queue, offset, entry.at(queue)[0] + 1)

    def delete(self, keys: Iterable[str]) -> list[str]:
        """Take entries away; gives those that were there."""
        gone = [key for key in keys if self.entries.pop(key, None) is not None]
        for key in gone:
            self.pending.pop(key, None)
        return gone

    def keys_of(self, *, topics: Container[str] | None = None, groups: Container[str] | None = None) -> list[str]:
        """Keys of some topics, of some groups, or of both, sorted."""
        found = []
        for key in self.entries:
            topic, group = topic_and_group(key)
            if (topics is None or topic in topics) and (groups is None or group in groups):
                found.append(key)
        return sorted(found)

    def changed(self, stamp: Stamp) -> None:
        """Commits were taken by a master: a new version."""
        self.version = self.version.next(stamp.now_ms, stamp.epoch)

    def begin_mastership(self, stamp: Stamp) -> None:
        """This table is the one that counts from now on."""
        self.pending, self.followed = {}, False
        self.changed(stamp)

    # -- slave ------------------------------------------------------------------------------------------------------

    def take_over(self, masters: Content) -> Change | None:
        """Become the master's table, merged with what was committed here; None if nothing changes.

        The tables are merged only within one mastership. After another one took over, its table counts and nothing
        else: offsets of an old master may speak of messages that the new one does not have. A master whose table is
        older than ours was killed before it had written its last commits: all of ours are kept, and handed back.

        Raises:
            StaleMaster: the master's table is of an older mastership.
        """
        own = self.version
        if masters.version == own and self.followed:
            return None
        if masters.version.state_version < own.state_version:
            raise stale(self.kind, masters.version, own)
        merge = self.followed and masters.version.state_version == own.state_version
        if not merge:
            self.pending = {}
            return Change(Content(masters.version, dict(masters.entries), masters.other), None)
        forgot = masters.version.older_than(own)
        kept = {key: frozenset(entry.offsets) for key, entry in self.entries.items()} if forgot else self.pending
        entries = {key: self._merged(key, entry, kept.get(key, _NONE)) for key, entry in masters.entries.items()}
        for key, queues in kept.items():
            if key not in entries:
                entries[key] = _only(self.entries[key], queues)
        return Change(Content(masters.version, entries, masters.other), None)

    def accept(self, change: Change, masters: Content) -> None:
        """Become the outcome of `take_over`; what the master does not have is pending."""
        self._become(change.content)
        self.followed = True
        pending = {}
        for key, entry in self.entries.items():
            theirs = masters.entries.get(key, _NO_OFFSETS)
            if entry is theirs:
                continue
            ahead = frozenset(queue for queue in entry.offsets if entry.at(queue) > theirs.at(queue))
            if ahead:
                pending[key] = ahead
        self.pending = pending

    def waiting(self) -> Iterator[PendingCommit]:
        """Every commit that the master does not have yet."""
        for key, queues in self.pending.items():
            for queue in sorted(queues):
                resets, offset = self.entries.get(key, _NO_OFFSETS).at(queue)
                yield PendingCommit(key, queue, offset, resets)

    def handed_over(self, told: PendingCommit) -> None:
        """The master has answered a commit; unless another one came since, it no longer waits."""
        entry = self.entries.get(told.key)
        if entry is not None and entry.at(told.queue) != (told.resets, told.offset):
            return
        left = self.pending.get(told.key, frozenset()) - {told.queue}
        if left:
            self.pending[told.key] = left
        else:
            self.pending.pop(told.key, None)

    def _merged(self, key: str, theirs: GroupQueueOffsets, kept: frozenset[int]) -> GroupQueueOffsets:
        own = self.entries.get(key)
        if own is None or own == theirs:
            return theirs
        merged = theirs
        for queue in own.offsets:
            resets, offset = own.at(queue)
            if (queue in theirs.offsets or queue in kept) and (resets, offset) > theirs.at(queue):
                merged = merged.having(queue, offset, resets)
        return merged

    def _become(self, content: Content) -> None:
        self.entries, self.version, self.other = dict(content.entries), content.version, content.other


class DelayOffsetTable:
    """How far delayed messages have been delivered: level -> offset."""

    kind = TableKind.DELAY_OFFSETS

    def __init__(self) -> None:
        self.entries: dict[str, int] = {}
        self.version = DataVersion()
        self.other: Mapping[str, Any] = {}

    @property
    def content(self) -> Content:
        """The table at this moment."""
        return Content(self.version, dict(self.entries), self.other)

    def read(self, document: Mapping[str, Any]) -> Content:
        """The content that a document says. Raises ValueError."""
        entries, version, other = split_document(document, self.kind.key)
        return Content(version, _texts(_numbers(entries)), other)

    def load(self, document: Mapping[str, Any]) -> None:
        """Become what a document says. Raises ValueError."""
        self.accept(Change(self.read(document), None))

    def document(self, content: Content) -> dict[str, Any]:
        """The document that says a content of this table."""
        return {**content.other, VERSION_KEY: content.version.to_json(), self.kind.key: content.entries}

    def put(self, level: int, offset: int, *, reset: bool = False) -> int:
        """Set an offset; gives what stands then: never a smaller one, unless `reset`."""
        before = self.entries.get(str(level), NONE)
        if offset > before or reset:
            self.entries[str(level)] = offset
            return offset
        return before

    def changed(self, stamp: Stamp) -> None:
        """A new version."""
        self.version = self.version.next(stamp.now_ms, stamp.epoch)

    def take_over(self, masters: Content) -> Change | None:
        """Become the master's table; None if it is that already. Raises StaleMaster: it is of an older mastership."""
        if masters.version == self.version:
            return None
        if masters.version.state_version < self.version.state_version:
            raise stale(self.kind, masters.version, self.version)
        return Change(masters, None)

    def accept(self, change: Change) -> None:
        """Become the outcome of `take_over`."""
        content = change.content
        self.entries, self.version, self.other = dict(content.entries), content.version, content.other


def _only(entry: GroupQueueOffsets, queues: Iterable[int]) -> GroupQueueOffsets:
    wanted = set(queues)
    return GroupQueueOffsets(
        {queue: offset for queue, offset in entry.offsets.items() if queue in wanted},
        {queue: count for queue, count in entry.resets.items() if queue in wanted},
    )


def _numbers(found: Any) -> dict[int, int]:
    """Integers by integers, the keys as texts or not. Raises ValueError."""
    if not isinstance(found, dict):
        raise ValueError("offsets are no object")
    numbers = {int(key): number for key, number in found.items()}
    if len(numbers) != len(found):
        raise ValueError("a queue or level is there twice")
    if not all(type(number) is int and NONE <= number < 1 << 63 for number in numbers.values()):
        raise ValueError(f"an offset is no integer of 64 bits, {NONE} or more")
    if not all(0 <= key < 1 << 31 for key in numbers):
        raise ValueError("a queue or level is no integer of 31 bits")
    return numbers


def _numbers_by_key(found: Any) -> dict[str, dict[int, int]]:
    if not isinstance(found, dict):
        raise ValueError("the offset table is no object")
    return {key: _numbers(numbers) for key, numbers in found.items()}


def _queues_by_key(found: Any) -> dict[str, frozenset[int]]:
    if not isinstance(found, dict) or not all(isinstance(queues, list) for queues in found.values()):
        raise ValueError(f"{_PENDING} is no object of lists")
    return {key: frozenset(int(queue) for queue in queues) for key, queues in found.items()}


def _texts(numbers: Mapping[int, int]) -> dict[str, int]:
    return {str(key): number for key, number in numbers.items()}
