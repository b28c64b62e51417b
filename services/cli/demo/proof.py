"""The proof: what the store gives back, compared with what it acknowledged. Every finding is a sentence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.cli.demo.ledger import DemoEntry, DemoLedger, ReceiptPlace

if TYPE_CHECKING:
    from tandemmq.client import Record, StoreClient

_CHUNK = 1 << 20
_SHOWN = 5
"""Findings told of each kind; the rest are counted."""


class Proof:
    """Compares records with a ledger; `losses` says what is wrong."""

    def __init__(self, ledger: DemoLedger) -> None:
        self._ledger = ledger
        self.losses: list[str] = []

    def of_everything(self, records: Iterable["Record"]) -> int:
        """Each acknowledged message lies where its receipt says, once, byte for byte; gives how many do.

        `records` are all that a reader without a filter was given.
        """
        by_place = {(record.topic, record.queue_id, record.queue_offset): record for record in records}
        good, wrong = 0, []
        for entry in self._ledger.acknowledged:
            place = self._ledger.places[entry.unique_key]
            record = by_place.get((entry.item.topic, place.queue_id, place.queue_offset))
            problem = _difference(entry, place, record)
            if problem:
                wrong.append(f"{entry.item.key}: {problem}")
            else:
                good += 1
        self._tell(wrong)
        self._tell(_holes(by_place))
        return good

    def of_filter(self, records: Sequence["Record"], topic: str, tags: Iterable[str]) -> int:
        """A reader with a filter got the messages of its tags, all and no others; gives how many."""
        wanted = set(tags)
        expected = {e.unique_key for e in self._ledger.acknowledged if e.item.topic == topic and e.item.tag in wanted}
        got = Counter(record.unique_key or "" for record in records)
        self._tell([f"message {key} was not given to the reader with a filter" for key in expected - got.keys()])
        self._tell(
            [f"message {record.unique_key} has tag {record.tags}" for record in records if record.tags not in wanted]
        )
        return len(expected & got.keys())

    def of_lookups(self, client: "StoreClient", entries: Sequence[DemoEntry]) -> int:
        """Messages are found by key and by id, with the same bytes; gives how many."""
        good, wrong = 0, []
        for entry in entries:
            place = self._ledger.places[entry.unique_key]
            by_key = client.query(entry.item.topic, key=entry.item.key, max_messages=64)
            if not any(record.unique_key == entry.unique_key and record.body == entry.item.body for record in by_key):
                wrong.append(f"{entry.item.key}: not found by its key")
                continue
            problem = _difference(entry, place, client.view(place.message_id))
            if problem:
                wrong.append(f"{entry.item.key}, by id: {problem}")
                continue
            good += 1
        self._tell(wrong)
        return good

    def of_files(self, one: Path, other: Path) -> int:
        """Two directories have the same files, byte by byte; gives how many they have in common.

        A file that only one of them has must be empty, all zeros: the next one, allocated ahead of use.
        """
        names = [{path.relative_to(root) for path in root.rglob("*") if path.is_file()} for root in (one, other)]
        common = names[0] & names[1]
        wrong = [f"{one / name} and {other / name} differ from byte {at:,} on" for name in sorted(common)
                 if (at := first_difference(one / name, other / name)) is not None]  # fmt: skip
        for root, mine in ((one, names[0]), (other, names[1])):
            wrong += [f"only {root} has {name}" for name in sorted(mine - common) if not is_empty(root / name)]
        self._tell(wrong)
        return len(common)

    def _tell(self, problems: Sequence[str]) -> None:
        self.losses += problems[:_SHOWN]
        if len(problems) > _SHOWN:
            self.losses.append(f"and {len(problems) - _SHOWN:,} more like these")


def first_difference(one: Path, other: Path) -> int | None:
    """Position of the first byte that differs; None if the files are equal."""
    with one.open("rb") as left, other.open("rb") as right:
        at = 0
        while True:
            mine, its = left.read(_CHUNK), right.read(_CHUNK)
            if mine != its:
                same = next((n for n, (a, b) in enumerate(zip(mine, its, strict=False)) if a != b), None)
                return at + (same if same is not None else min(len(mine), len(its)))
            if not mine:
                return None
            at += len(mine)


def is_empty(path: Path) -> bool:
    """Whether a file holds zeros only."""
    with path.open("rb") as file:
        return all(chunk.count(0) == len(chunk) for chunk in iter(lambda: file.read(_CHUNK), b""))


def stored_twice(records: Iterable["Record"]) -> int:
    """Messages that lie there more than once: resent after a receipt was lost."""
    return sum(count - 1 for count in Counter(record.unique_key for record in records).values())


def _difference(entry: DemoEntry, place: ReceiptPlace, record: "Record | None") -> str:
    """What is wrong with a record; empty if nothing is."""
    if record is None:
        return f"acknowledged at queue {place.queue_id} offset {place.queue_offset}, and not there"
    if record.unique_key != entry.unique_key:
        return f"another message lies at queue {place.queue_id} offset {place.queue_offset}"
    if record.body != entry.item.body:
        return f"its {len(entry.item.body):,} bytes came back different"
    if (
        record.physical_offset != place.physical_offset
        or record.tags != entry.item.tag
        or record.keys != [entry.item.key]
    ):
        return "its log offset, tag or key came back different"
    return ""


def _holes(by_place: "dict[tuple[str, int, int], Record]") -> list[str]:
    """Queue offsets that were skipped: within a queue they count up one by one."""
    queues: dict[tuple[str, int], list[int]] = {}
    for topic, queue_id, offset in by_place:
        queues.setdefault((topic, queue_id), []).append(offset)
    return [
        f"queue {queue_id} of {topic} has holes in its offsets"
        for (topic, queue_id), offsets in queues.items()
        if max(offsets) - min(offsets) + 1 != len(offsets)
    ]
