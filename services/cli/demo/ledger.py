"""What was sent, and where its receipt says that it lies: what a store must answer for."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tandemmq.cli.demo.material import Item


class ReceiptPlace(NamedTuple):
    """Where a receipt says that a message lies."""

    queue_id: int
    queue_offset: int
    physical_offset: int
    message_id: str


@dataclass(frozen=True, slots=True)
class DemoEntry:
    """A message under the unique key that its producer gave it."""

    unique_key: str
    item: Item


class DemoLedger:
    """All messages of one demo, in the order of sending; a receipt makes a message `acknowledged`."""

    def __init__(self, items: Iterable[Item]) -> None:
        from tandemmq.store.format.message_id import UniqueIdGenerator

        ids = UniqueIdGenerator(bytes((127, 0, 0, 1)), os.getpid(), int.from_bytes(os.urandom(4), "big"))
        now_ms = time.time_ns() // 1_000_000
        self.entries = [DemoEntry(ids.next(now_ms), item) for item in items]
        self.places: dict[str, ReceiptPlace] = {}

    def acknowledge(self, unique_key: str, place: ReceiptPlace) -> None:
        """A receipt came."""
        self.places[unique_key] = place

    @property
    def acknowledged(self) -> list[DemoEntry]:
        """What the store must have."""
        return [entry for entry in self.entries if entry.unique_key in self.places]

    @property
    def open(self) -> list[DemoEntry]:
        """What has no receipt."""
        return [entry for entry in self.entries if entry.unique_key not in self.places]
