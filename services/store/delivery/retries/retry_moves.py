"""Messages that a group fails on for long: they move to its retry topic, so that its position goes on without them.

That is what consumers have put off, and what has come due again. It moves when it has held up the group's position for
ten minutes, when a million messages were given out after it, or when more of a queue are put off than may be in
flight. To move is a copy in `%RETRY%<group>`, by way of the delay where it is to wait, and the fact that the message is
dealt with; the copy comes first. RocketMQ does the same when a consumer sends a message back. Ordered groups move
nothing.

Who still has the handle of a message that waits in its copy may use it: the copy is taken back as a producer takes back
a message that waits for its time.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.common.topic_names import GROUP_TOPICS, RETRY
from tandemmq.store.broker.postponing import TIMER_TOPIC, DelayRules, orders_for, postpone
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.delays.recalls import DELETE_KEY
from tandemmq.store.delivery.errors import HandleExpired
from tandemmq.store.delivery.journal.facts import Dealt, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable
from tandemmq.store.delivery.receiving.handles import ReceiptHandle, Shown, own_topic, topic_shown
from tandemmq.store.delivery.receiving.place_reader import PlaceReader
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.delivery.retries.dead_letters import origin_of
from tandemmq.store.format import properties as names
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.edges.clock import Clock

log = get_log(__name__)

LONGEST_HOLD_MS = 600_000
MOST_BEHIND = 1_000_000
_LOOK_SECONDS = 30.0
_LEAST_LEFT_MS = 60_000
"""What comes again so soon is left where it is: its consumer may be putting it off again and again while it works."""
_AT_ONCE = 128


class MovesInto(NamedTuple):
    """Where moved messages go, and by what rules they wait."""

    topics: TopicTable
    host: Host
    delays: DelayRules
    wall: Clock


class _Hold(NamedTuple):
    """Since `since` something below the offset `given` is not dealt with."""

    given: int
    since: int


class WaitingCopy(NamedTuple):
    """A copy that waits: of that delivery, until `due` by the wall clock. No key: it cannot be taken back."""

    delivery: OpenEntry
    due: int
    topic: str
    queue: int
    unique_key: str
    takes_back: bool = False
    """It is what takes the copy back that is due then."""


class RetryMoves:
    """Moves messages, and looks now and then for those that are to move."""

    def __init__(
        self,
        into: MovesInto,
        journal: Journal,
        groups: GroupTable,
        reader: PlaceReader,
        clock: DeliveryClock,
        timers: Timers,
        most_put_off: int,
        *,
        dealt: Callable[[Sequence[Dealt]], None],
        open_topic: Callable[[GroupConfig], None],
    ) -> None:
        """`dealt` hears of what has moved, `open_topic` of a group whose retry topic is to be made."""
        self._into = into
        self._journal = journal
        self._groups = groups
        self._reader = reader
        self._clock = clock
        self._timers = timers
        self._most_put_off = most_put_off
        self._dealt = dealt
        self._open_topic = open_topic
        self._holds: dict[Place, _Hold] = {}
        self._by_queue: set[tuple[str, str]] = set()
        self.made = 0
        """Copies so far."""
        self._ended = False
        self.moved: dict[tuple[str, str], int] = {}
        """By group and topic: messages that have moved."""
        timers.call_later(_LOOK_SECONDS, self._look)

    def end(self) -> None:
        """Move nothing any more."""
        self._ended = True

    def spare(self, group: str, topic: str) -> None:
        """The group receives from single queues of a topic, and so would not find what has moved."""
        self._by_queue.add((group, topic))

    # -- which --------------------------------------------------------------------------------------------------------

    def is_to_move(self, group: GroupConfig, progress: QueueProgress, offset: int) -> bool:
        """Whether a message that has come due again is to move instead of being given out."""
        return offset < self._limit(progress) and self._may_move(group, progress.place)

    def _limit(self, progress: QueueProgress) -> int:
        """What is put off, or has come due, below this offset is to move."""
        now, hold = self._clock.now_ms(), self._holds.get(progress.place)
        if hold is None or progress.cursor >= hold.given:
            hold = self._holds[progress.place] = _Hold(progress.given, now)
        long = hold.given if now - hold.since > LONGEST_HOLD_MS else 0
        return max(long, progress.given - MOST_BEHIND)

    def _may_move(self, group: GroupConfig, place: Place) -> bool:
        """Whether the group gets again what moves, and may have it moved."""
        topic = topic_shown(place)
        if group.consume_message_orderly or group.retry_queues <= 0 or (group.name, topic) in self._by_queue:
            return False
        if topic.startswith(GROUP_TOPICS) and topic != own_topic(group.name, topic, Shown.RETRY):
            return False  # a receive from such a topic gets nothing of the retry topic
        if self._into.topics.get(own_topic(group.name, topic, Shown.RETRY)) is None:
            self._open_topic(group)
            return False
        return True

    def _look(self) -> None:
        """Move what is put off for long; the rest in later turns."""
        if self._ended or not self._journal.open:
            return
        left = _AT_ONCE
        for place in self._journal.ledger.places_put_off():
            left -= self._look_at(place, left)
            if left <= 0:
                self._timers.call_later(0, self._look)
                return
        self._timers.call_later(_LOOK_SECONDS, self._look)

    def _look_at(self, place: Place, most: int) -> int:
        """Move so many of a place; gives how many were moved."""
        progress, group = self._journal.ledger.progress(place), self._groups.get(place.group)
        if progress is None or group is None:
            return 0
        limit, put_off = self._limit(progress), sorted(self._journal.ledger.put_off_at(place))
        too_many = max(len(put_off) - self._most_put_off, 0)
        moved = 0
        for at, offset in enumerate(put_off):
            if (offset >= limit and at >= too_many) or moved >= most or not self._may_move(group, place):
                break
            entry = progress.entries.get(offset)
            left_ms = 0 if entry is None else entry.due - self._clock.now_ms()
            data = self._reader.one(place, offset)
            if entry is None or left_ms < _LEAST_LEFT_MS or not isinstance(data, bytes):
                continue
            fact = self.move(group, place, offset, data, entry, left_ms)
            if fact is None:
                break
            self._journal.note(fact)
            self._dealt([fact])
            moved += 1
        return moved

    # -- how ----------------------------------------------------------------------------------------------------------

    def move(
        self, group: GroupConfig, place: Place, offset: int, data: bytes, delivery: OpenEntry, wait_ms: int
    ) -> Dealt | None:
        """Write the copy of a message that was given out last as `delivery` says; the fact is to be noted at once.

        None where it cannot be written, or cannot wait so long: the message stays where it is.
        """
        topic, record = topic_shown(place), decode_record(data, verify=False)
        retry, queue = own_topic(group.name, topic, Shown.RETRY), self.made % group.retry_queues
        times = delivery.number + (record.reconsume_times if place.topic.startswith(RETRY) else 0)
        now = self._into.wall.now_ms()
        wait = orders_for(wait_ms, now, self._into.delays)
        if wait is None:
            return None
        extra = {**origin_of(record, self._into.host, topic), **wait}
        try:
            waits = postpone(retry, queue, extra, now, self._into.delays)
            to, to_queue = (retry, queue) if waits is None else (waits.topic, waits.queue_id)
            copy = self._journal.copy(
                internal_copy(record, to, to_queue, self._into.host, extra=extra, reconsume_times=times)
            )
        except TandemError as error:
            log.warning("a message cannot move to the retry topic now", group=group.name, reason=str(error))
            return None
        self.made += 1
        self.moved[group.name, topic] = self.moved.get((group.name, topic), 0) + 1
        return Dealt(place, offset, 1, copy.physical_offset)

    # -- handles of what has moved ------------------------------------------------------------------------------------

    def waiting_copy(self, handle: ReceiptHandle) -> WaitingCopy | None:
        """The copy in which the message of a handle waits and can be taken back, as far as that is remembered.

        Raises HandleExpired: it has moved, and comes again from where it is.
        """
        copy = self._copy_of(handle)
        if copy is None:
            return None
        is_its = copy.delivery.is_delivery(handle.number, handle.start)
        if not is_its or not copy.unique_key or copy.due <= self._into.wall.now_ms():
            raise _moved()
        return copy

    def take_back(self, handle: ReceiptHandle, copy: WaitingCopy) -> None:
        """Take back the copy in which a message waits. Raises StoreError, HandleExpired: it is too late."""
        if not self._recall(handle.place, handle.offset, copy):
            raise _moved()

    def wait_again(self, handle: ReceiptHandle, before: WaitingCopy, wait_ms: int) -> None:
        """A message that waits in a copy is to come again after another time. Raises StoreError, HandleExpired."""
        place, offset = handle.place, handle.offset
        now = self._into.wall.now_ms()
        precision = self._into.delays.precision_ms
        if (now + wait_ms - 1) // precision == (before.due - 1) // precision:
            wait_ms += precision  # or the recall would be about both
        group, data = self._groups.get(place.group), self._reader.one(place, offset)
        fact = None
        if group is not None and isinstance(data, bytes):
            fact = self.move(group, place, offset, data, before.delivery, wait_ms)
        if fact is None:
            raise HandleExpired("The message waits in the group's retry topic, and its time cannot be changed now.")
        self._journal.note(fact)
        self._recall(place, offset, before)

    def _copy_of(self, handle: ReceiptHandle) -> WaitingCopy | None:
        """The copy in which the message of a handle has moved, as far as that is remembered, and not taken back.

        Raises HandleExpired: it cannot be said.
        """
        known = self._journal.ledger.copied(handle.place, handle.offset)
        if known is None or known.resets != handle.resets:
            if self._journal.ledger.forgot_copies(handle.place, handle.offset):
                raise HandleExpired(
                    "The receipt handle counts no more: the message was dealt with, or has moved to the group's retry "
                    "topic, so long ago that it is not known which.",
                    remedy="Receive what comes: if the message has moved, it is among that.",
                )
            return None
        taken_back, unreadable = set[int](), 0
        for at in reversed(known.copies):
            data = self._reader.copy_at(at)
            copy = None if data is None else _copy_said(data, known.delivery)
            if copy is None:
                unreadable += 1
            elif copy.takes_back:
                taken_back.add(copy.due)
            elif copy.topic.startswith(RETRY) and copy.due not in taken_back:
                return copy
            else:
                taken_back.discard(copy.due)
        if unreadable > len(taken_back):
            raise HandleExpired(
                "The receipt handle counts no more: the message was copied since, and the copy cannot be read any more."
            )
        return None

    def _recall(self, place: Place, offset: int, copy: WaitingCopy) -> bool:
        """Take a copy back; False: its time has come."""
        now, host = self._into.wall.now_ms(), self._into.host
        given = {names.TIMER_DELIVER_MS: str(copy.due), DELETE_KEY: f"{copy.topic}+{copy.unique_key}"}
        waits = postpone(copy.topic, copy.queue, given, now, self._into.delays)
        if waits is None:
            return False
        message = Message(waits.topic, waits.queue_id, b"0", names.encode(given))
        message.born_timestamp, message.born_host, message.store_host = now, host, host
        recall = self._journal.copy(message)
        self._journal.note(Dealt(place, offset, 1, recall.physical_offset))  # so that it is waited for
        return True


def _copy_said(data: bytes, delivery: OpenEntry) -> WaitingCopy | None:
    """What the record of a copy of that delivery says; None: it is damaged."""
    try:
        record = decode_record(data, verify=False)
        given = record.properties
        due, queue = int(given.get(names.TIMER_DELIVER_MS, 0)), int(given.get(names.REAL_QID, 0))
    except ValueError:
        return None
    key = (record.unique_key or "") if record.topic == TIMER_TOPIC else ""
    return WaitingCopy(delivery, due, given.get(names.REAL_TOPIC, record.topic), queue, key, DELETE_KEY in given)


def _moved() -> HandleExpired:
    return HandleExpired(
        "The receipt handle counts no more: the message has moved to the group's retry topic since.",
        remedy="Receive the message again.",
    )
