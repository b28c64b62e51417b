"""A log followed in its files while the store is in the middle of a write: a message that is coming is no damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

from tandemmq.spark.data_source import wanted_of
from tandemmq.spark.reading.walked_end import NEWEST, PAUSES
from tandemmq.spark.source.schema import choose
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streaming import CommitLogStreamReader
from tandemmq.spark.streams.stream_files import FileFollower
from tandemmq.store.format.record import Message, encode_record
from tests.spark.streams import Row, batch_rows, follow, together
from tests.unit.format.logs import V4

_HEAD = 8
FILE = 1 << 20


class GrowingLog:
    """One file of log, written to by hand."""

    def __init__(self, root: Path, size: int = FILE) -> None:
        self.places: list[tuple[int, int]] = []
        """Offset and size of each record."""
        self.end = 0
        self._path = root / "commitlog" / f"{0:020d}"
        self._path.parent.mkdir()
        self._path.touch()
        with self._path.open("r+b") as file:
            file.truncate(size)
        self._root = root

    def append(self, count: int, body: bytes = b"") -> None:
        """Records one after the other; ``body``: of each, else their numbers."""
        for _ in range(count):
            number = len(self.places)
            message = Message("T", 0, body or b"%d" % number, b"", 0, 0, 1, V4, V4)
            data = encode_record(message, number, self.end, 1_700_000_000_000)
            self.put(self.end, data)
            self.places.append((self.end, len(data)))
            self.end += len(data)

    def put(self, at: int, data: bytes) -> None:
        with self._path.open("r+b") as file:
            file.seek(at)
            file.write(data)

    def take_head(self, number: int) -> Callable[[], None]:
        """Make the record's first bytes zero, as a store leaves them until the rest is there; returns what does it."""
        at, _ = self.places[number]
        with self._path.open("rb") as file:
            file.seek(at)
            head = file.read(_HEAD)
        self.put(at, bytes(_HEAD))
        return lambda: self.put(at, head)

    def stream(self, pause: Callable[[float], None], **options: str) -> CommitLogStreamReader:
        parsed = SourceOptions.parse({"path": str(self._root), **options})
        wanted = wanted_of(parsed, choose(("physical_offset", "size", "is_valid")))
        return CommitLogStreamReader(parsed, wanted, FileFollower(parsed, self._root, pause))


class Pauses:
    """Takes no time; at the pause that is told, something happens."""

    def __init__(self, happens: dict[int, Callable[[], None]] | None = None) -> None:
        self.asked: list[float] = []
        self._happens = {} if happens is None else happens

    def __call__(self, seconds: float) -> None:
        self._happens.get(len(self.asked), lambda: None)()
        self.asked.append(seconds)


def valid(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row["physical_offset"], row["size"]) for row in rows if row["is_valid"]]


def damaged(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row["physical_offset"], row["size"]) for row in rows if not row["is_valid"]]


@pytest.mark.parametrize("first", [0, 20], ids=["the log's first", "in the middle"])
@pytest.mark.parametrize("looks", [1, len(PAUSES)], ids=["at once", "at the last look"])
def test_a_group_whose_head_comes_last_is_read_once(tmp_path: Path, first: int, looks: int) -> None:
    log = GrowingLog(tmp_path)
    log.append(first + 10)
    pauses = Pauses({looks - 1: log.take_head(first)})
    rows = together(follow(log.stream(pauses)))
    assert valid(rows) == log.places
    assert damaged(rows) == []
    assert tuple(pauses.asked) == PAUSES[:looks]


def test_a_group_that_is_being_written_to_a_log_that_was_read(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path)
    log.append(10)
    happens: dict[int, Callable[[], None]] = {}
    pauses = Pauses(happens)
    stream = log.stream(pauses)
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    rows = batch_rows(stream, start, end)
    log.append(5)
    happens[0] = log.take_head(10)
    rows += together(follow(stream, None, end))
    assert valid(rows) == log.places
    assert damaged(rows) == []


def test_a_store_that_goes_on_writing_while_one_waits(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path)
    log.append(10)
    finish = [log.take_head(4)]

    def the_next_group() -> None:
        finish.pop()()
        first = len(log.places)
        if first < 100:
            log.append(10)
            finish.append(log.take_head(first + 1))

    pauses = Pauses(dict.fromkeys(range(1000), the_next_group))
    rows = together(follow(log.stream(pauses)))
    assert valid(rows) == log.places
    assert damaged(rows) == []
    assert set(pauses.asked) == {PAUSES[0]}


def test_a_group_that_never_comes_is_damage_and_waited_for_once(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path)
    log.append(30)
    log.take_head(20)
    pauses = Pauses()
    stream = log.stream(pauses)
    start = stream.initialOffset()
    rows = together(follow(stream, None, start))
    assert tuple(pauses.asked) == PAUSES
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    log.append(30)
    rows += together(follow(stream, None, end))
    assert valid(rows) == log.places[:20] + log.places[21:]
    assert damaged(rows) == [log.places[20]]
    assert tuple(pauses.asked) == PAUSES


def test_behind_damage_that_stays_a_group_may_be_in_writing(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path)
    log.append(30)
    log.take_head(10)
    pauses = Pauses({len(PAUSES) + 1: log.take_head(20)})
    rows = together(follow(log.stream(pauses)))
    assert valid(rows) == log.places[:10] + log.places[11:]
    assert damaged(rows) == [log.places[10]]
    assert tuple(pauses.asked) == PAUSES + PAUSES[:2]


def test_old_damage_is_not_waited_for(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path, NEWEST + (2 << 20))
    log.append(30)
    log.take_head(10)
    log.append(NEWEST // (1 << 20) + 1, bytes(1 << 20))
    pauses = Pauses()
    rows = together(follow(log.stream(pauses)))
    assert valid(rows) == log.places[:10] + log.places[11:]
    assert damaged(rows) == [log.places[10]]
    assert pauses.asked == []


def test_a_stream_from_the_end_begins_behind_the_group(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path)
    log.append(30)
    pauses = Pauses({0: log.take_head(20)})
    stream = log.stream(pauses, startingOffsets="latest")
    start = stream.initialOffset()
    assert start == {"offset": log.end}
    log.append(3)
    assert valid(together(follow(stream, None, start))) == log.places[30:]


def test_a_query_that_had_read_up_to_the_group_goes_on(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path)
    log.append(10)
    start = {"offset": log.end}
    log.append(10)
    finish = log.take_head(10)
    stream = log.stream(Pauses({2: finish}))
    rows = together(follow(stream, None, start))
    assert valid(rows) == log.places[10:]
    assert damaged(rows) == []
    log.take_head(10)  # the plan of a batch looks at where it begins: a record that is coming may begin there
    assert stream.partitions(start, {"offset": log.end})
