"""Message: what a consumer gets, without the calls that settle it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tandemmq.store.format import properties as names
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record


@dataclass(frozen=True, slots=True)
class MessageContent:
    """A message as it was sent, and where it comes from."""

    topic: str
    """As it was asked for, also where the message comes from the group's retry topic."""
    record: Record
    delivery_number: int
    """How often it was given out to the group, this time included: 1 the first time."""

    @property
    def body(self) -> bytes:
        """What was sent."""
        return self.record.body

    @property
    def tag(self) -> str:
        """The tag; empty if there is none."""
        return self.record.tags or ""

    @property
    def keys(self) -> list[str]:
        """The keys by which it can be found."""
        return list(self.record.keys)

    @property
    def properties(self) -> Mapping[str, str]:
        """All properties, the broker's too."""
        return self.record.properties

    @property
    def order_key(self) -> str:
        """The key in whose order a group made with --fifo gets it; empty if there is none."""
        return self.record.properties.get(names.SHARDING_KEY, "")

    @property
    def unique_key(self) -> str:
        """The producer's id of the message: the same in each delivery, for programs that must not do a thing twice."""
        return self.record.unique_key or ""

    @property
    def message_id(self) -> str:
        """The offset id, for `view`."""
        return encode_offset_id(self.record.store_host, self.record.physical_offset)

    @property
    def queue_id(self) -> int:
        """The queue in which its record lies."""
        return self.record.queue_id

    @property
    def queue_offset(self) -> int:
        """Where in that queue."""
        return self.record.queue_offset

    @property
    def sent_at(self) -> datetime:
        """When it was sent, by the producer's clock."""
        return datetime.fromtimestamp(self.record.born_timestamp / 1000, UTC)

    @property
    def stored_at(self) -> datetime:
        """When it was stored."""
        return datetime.fromtimestamp(self.record.store_timestamp / 1000, UTC)
