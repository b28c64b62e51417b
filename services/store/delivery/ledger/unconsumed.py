"""Log files that are kept since a group has not dealt with what is in them, where the group asks for that.

Else messages expire whether they are consumed or not: then they are counted for the group, and passed.
"""

from tandemmq.common.attributes.group_attributes import KEEP_UNCONSUMED
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.progress import QueueProgress
from tandemmq.store.delivery.members.groups import GroupTable
from tandemmq.store.format.unit import is_blank, is_empty
from tandemmq.store.log.message_store import MessageStore


class Unconsumed:
    """Knows what groups have not dealt with."""

    def __init__(self, store: MessageStore, ledger: Ledger, groups: GroupTable) -> None:
        self._store = store
        self._ledger = ledger
        self._groups = groups

    def oldest(self) -> int | None:
        """Log offset of the oldest message that such a group has not dealt with; None where there is none."""
        groups = [group.name for group in self._groups.all() if group.attributes.get(KEEP_UNCONSUMED) == "true"]
        found = [self._oldest(progress) for name in groups for progress in self._ledger.places(name)]
        return min((offset for offset in found if offset is not None), default=None)

    def _oldest(self, progress: QueueProgress) -> int | None:
        place = progress.place
        queue = self._store.queue(place.topic, place.queue)
        if queue is None or max(progress.cursor, queue.readable_begin) >= queue.max_offset:
            return None
        units = queue.read(max(progress.cursor, queue.readable_begin), 1)
        if not units or is_blank(units[0]) or is_empty(units[0]):
            return self._store.commit_log.min_offset  # it is being put right: nothing goes meanwhile
        return units[0].physical_offset
