"""The copy of a message that is due: in its real topic and queue, as if it had been sent now."""

from collections.abc import Mapping

from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.store.broker import rules
from tandemmq.store.broker.broker import Traffic
from tandemmq.store.broker.errors import IllegalMessage
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.format import properties
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Record
from tandemmq.store.log.errors import RecordTooLarge
from tandemmq.store.log.segments.commit_log import Appended

_MOST_QUEUE = 0x7FFF_FFFF


class Undeliverable(IllegalMessage):
    """The message names no topic or queue that it could go to. It is passed over: to try again would not help."""


class DueCopies:
    """Makes the copies of one store."""

    def __init__(self, journal: Journal, host: Host, traffic: Traffic) -> None:
        """`host`: the store host of the copies."""
        self._journal = journal
        self._host = host
        self._traffic = traffic

    def append(self, record: Record) -> Appended:
        """Copy a waiting message to where it belongs.

        Raises:
            Undeliverable. NotDelivering: this store is no master any more. StoreError: the log does not take it now.
        """
        given = record.properties
        topic, queue_id = given.get(properties.REAL_TOPIC, ""), _queue_id(given.get(properties.REAL_QID))
        try:
            rules.check_topic_name(topic)
            rules.check_not_system(topic)
            message = internal_copy(record, topic, queue_id, self._host, extra=_kept(topic, given))
            place = self._journal.copy(message)
        except (IllegalMessage, FormatError, RecordTooLarge) as error:
            raise Undeliverable(
                f"The message at log offset {record.physical_offset} cannot be delivered: {error}"
            ) from error
        self._traffic.sent(topic, 1, place.size)
        return place


def _kept(topic: str, given: Mapping[str, str]) -> Mapping[str, str] | None:
    """The time that the producer has asked for, which consumers are told; that of a retry is nobody's business."""
    due = given.get(properties.TIMER_DELIVER_MS)
    return {properties.TIMER_DELIVER_MS: due} if due and not topic.startswith(GROUP_TOPICS) else None


def _queue_id(text: str | None) -> int:
    """The queue that a message names; the first where that is no number, since it must go somewhere."""
    try:
        number = int(text or "")
    except ValueError:
        return 0
    return number if 0 <= number <= _MOST_QUEUE else 0
