"""Where a message stopped that nobody got: what a node's log, journal and index of timers say of it.

    python -m tests.faults.delivery_trace directory-of-a-node p1-9 [p0-17 ...]

The node is not running. Nothing of it is changed.
"""

import argparse
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tandemmq.common.topic_names import dead_letter_topic
from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.delivery.delays.timer_checkpoint import BadCheckpoint, TimerCheckpoint
from tandemmq.store.delivery.delays.timer_entry import TimerEntry, entry_of, recalled_key
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.journal.facts import LevelDone, TimersDone
from tandemmq.store.delivery.journal.journal_format import JOURNAL_TOPIC
from tandemmq.store.format import properties
from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tandemmq.store.log.edges.disk import LocalDisk
from tests.faults.harness import value_of
from tests.faults.pair_checks import log_files
from tests.journal_record import decode_record_body

DEFAULT_RULES = (1_000, 60_000)


def records_of(root: Path) -> Iterator[Record]:
    """All records of a log that can be read, in order."""
    for start, path in sorted(log_files(root).items()):
        data = path.read_bytes()
        at = 0
        while at + 4 <= len(data) and (size := int.from_bytes(data[at : at + 4], "big")):
            try:
                record = decode_record(data, at)
            except CorruptRecord:  # the blank at the file's end, or damage: what comes then is in the next file
                break
            if record.physical_offset != start + at:
                break
            yield record
            at += size


class Trace:
    """What is known of some messages on one node, in the order of its log."""

    def __init__(self, root: Path, values: Iterable[str]) -> None:
        """Raises OSError."""
        self._wanted = set(values)
        self._keys: dict[str, str] = {}
        self._waiting: dict[tuple[str, int], list[tuple[str, Record]]] = defaultdict(list)
        self._checkpoint = _checkpoint(root)
        self.found: dict[str, list[str]] = {value: [] for value in sorted(self._wanted)}
        for record in records_of(root):
            self._take(record)
        self._look_into_the_index(root)

    def _take(self, record: Record) -> None:
        if record.topic == JOURNAL_TOPIC:
            for fact in decode_record_body(record.body).facts:
                if isinstance(fact, TimersDone | LevelDone):
                    self._done(fact, record)
            return
        where = f"{record.topic}-{record.queue_id} at {record.queue_offset}, log offset {record.physical_offset}"
        recalled = recalled_key(record) if record.topic == TIMER_TOPIC else None
        if recalled is not None and recalled in self._keys:
            self.found[self._keys[recalled]].append(f"taken back by {where}")
        value = value_of(record.body)
        if value not in self._wanted:
            return
        self._keys[record.properties.get(properties.UNIQ_KEY, "")] = value
        stage = "copied to"
        if record.topic in (TIMER_TOPIC, SCHEDULE_TOPIC):
            stage = "waits in"
            self._waiting[record.topic, record.queue_id].append((value, record))
        elif record.topic.startswith(dead_letter_topic("")):
            stage = "dead letter in"
        self.found[value].append(f"{stage} {where}, stored at {record.store_timestamp}")

    def _entry(self, record: Record) -> TimerEntry:
        rules = DEFAULT_RULES if self._checkpoint is None else self._checkpoint.rules
        return entry_of(record, *rules)

    def _done(self, fact: TimersDone | LevelDone, record: Record) -> None:
        """A fact says that some of what waits is delivered: the first one is of interest."""
        at = (TIMER_TOPIC, 0) if isinstance(fact, TimersDone) else (SCHEDULE_TOPIC, fact.level - 1)
        left = []
        for value, one in self._waiting[at]:
            done = one.queue_offset < (fact.indexed if isinstance(fact, TimersDone) else fact.offset)
            if done and isinstance(fact, TimersDone):
                done = self._entry(one)[:2] <= (fact.due, fact.offset)
            if done:
                self.found[value].append(f"done, by {fact} at log offset {record.physical_offset}")
            else:
                left.append((value, one))
        self._waiting[at] = left

    def _look_into_the_index(self, root: Path) -> None:
        known = self._checkpoint
        if known is None:
            return
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(root / "timers", Path(scratch) / "timers")
            index = TimerIndex(Path(scratch) / "timers", LocalDisk(), known.rules)
            whole = index.load()
            for value, record in self._waiting[TIMER_TOPIC, 0]:
                entry = index.entry_of(record.queue_offset)
                what = "not in the index of timers" if entry is None else f"in the index as {entry}"
                self.found[value].append(f"{what}: indexed {index.indexed}, whole {whole}, dropped {index.dropped}")
            index.close()


def _checkpoint(root: Path) -> TimerCheckpoint | None:
    try:
        return TimerCheckpoint.decode((root / "timers" / "checkpoint").read_bytes())
    except (FileNotFoundError, BadCheckpoint):
        return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("values", nargs="+")
    arguments = parser.parse_args()
    for value, lines in Trace(arguments.root, arguments.values).found.items():
        sys.stdout.write("\n    ".join([f"{value}:", *lines]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
