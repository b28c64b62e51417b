"""Reading records by where they begin: what is there, and all that is not."""

from pathlib import Path

from tandemmq.store.format.record import BLANK_SIZE, Message, encode_blank, encode_record
from tandemmq.store.format.unit import Unit
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.reading.record_reader import RecordReader, named_record
from tandemmq.store.log.recovery.damage import DamagedRange, DamageList
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue

FILE_SIZE = 4_096
MESSAGE = Message("orders", 2, b"body", b"TAGS\x01a\x02")


class Log:
    """Two files, the first of which begins with a record, and ends with a blank."""

    def __init__(self, root: Path) -> None:
        self.files = MappedFileQueue(root / "log", FILE_SIZE, LocalDisk())
        self.damage = DamageList(root, LocalDisk())
        self.reader = RecordReader(self.files, self.damage)
        self.first = self.files.roll(0)
        self.second = self.files.roll(FILE_SIZE)
        self.size = len(encode_record(MESSAGE, 0, 0, 1))
        self.put(self.first, 0, 7)
        self.put(self.second, FILE_SIZE, 8)
        self.first.map[FILE_SIZE - BLANK_SIZE :] = encode_blank(BLANK_SIZE)
        self.end = FILE_SIZE + self.size

    def put(self, file: MappedFile, offset: int, number: int) -> None:
        file.map[offset - file.start : offset - file.start + self.size] = encode_record(MESSAGE, number, offset, 1)


def test_a_record_is_read_whole(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.reader.read(FILE_SIZE, None, log.end) == encode_record(MESSAGE, 8, FILE_SIZE, 1)
    assert log.reader.read(FILE_SIZE, log.size, log.end) is not None


def test_what_is_no_whole_record_is_not_read(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.reader.read(0, log.size + 1, log.end) is None, "of another size"
    assert log.reader.read(1, None, log.end) is None, "within a record"
    assert log.reader.read(FILE_SIZE, None, log.end - 1) is None, "its end is not there yet"
    assert log.reader.read(FILE_SIZE - BLANK_SIZE, None, log.end) is None, "a blank"
    assert log.reader.read(FILE_SIZE - 3, None, log.end) is None, "the last bytes of a file"
    assert log.reader.read(2 * FILE_SIZE, None, log.end) is None, "no file"
    log.first.map[:4] = (90).to_bytes(4, "big")
    assert log.reader.read(0, None, log.end) is None, "too short for a record"
    log.put(log.first, 0, 7)
    assert log.reader.read(0, None, log.end) is not None
    log.damage.add(DamagedRange(0, 10, "rot", "for the test"))
    assert log.reader.read(0, None, log.end) is None, "damaged"


def test_what_is_decoded_is_compared_with_what_is_known_of_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.reader.decoded(0, verify=True) == log.reader.placed(0) == log.reader.named(0, ("orders", 2), 7)
    assert log.reader.named(0, ("orders", 2), 8) is None
    assert log.reader.named(0, ("orders", 1), 7) is None
    assert log.reader.named(0, ("others", 2), 7) is None
    data = log.reader.read(0, None, log.end)
    assert data is not None
    assert named_record(data, ("orders", 2), 7) == log.reader.decoded(0), "the same of bytes that were read"
    assert named_record(data, ("orders", 2), 8) is named_record(data[:-1], ("orders", 2), 7) is None
    assert log.reader.decoded(1) is log.reader.decoded(3 * FILE_SIZE) is None
    log.first.map[: log.size] = encode_record(MESSAGE, 7, 4_000, 1)
    assert log.reader.decoded(0) is not None
    assert log.reader.placed(0) is None, "it says that it is at another place"
    log.put(log.first, 0, 7)
    body = log.first.map.find(b"body")
    log.first.map[body : body + 1] = b"B"
    assert log.reader.decoded(0) is not None
    assert log.reader.decoded(0, verify=True) is log.reader.named(0, ("orders", 2), 7, verify=True) is None


def test_the_end_of_the_record_that_a_unit_names(tmp_path: Path) -> None:
    log = Log(tmp_path)
    unit = Unit(FILE_SIZE, log.size, 0)
    assert log.reader.end_of(unit, b"orders", 2, 8, log.end) == log.end
    assert log.reader.end_of(unit, b"orders", 2, 8, log.end - 1) == -1
    assert log.reader.end_of(unit, b"orders", 2, 9, log.end) == -1
    assert log.reader.end_of(unit, b"others", 2, 8, log.end) == -1
    assert log.reader.end_of(unit._replace(size=5), b"orders", 2, 8, log.end) == -1
    assert log.reader.end_of(Unit(-5, log.size, 0), b"orders", 2, 8, log.end) == -1
    assert log.reader.end_of(Unit(FILE_SIZE - 10, log.size, 0), b"orders", 2, 8, log.end) == -1
    log.damage.add(DamagedRange(FILE_SIZE, FILE_SIZE + 10, "rot", "for the test"))
    assert log.reader.end_of(unit, b"orders", 2, 8, log.end) == -1
