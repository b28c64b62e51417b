"""Single logs that a cut in the wrong place, or a search from one, would misread."""

from pathlib import Path

import pytest

from tandemmq.spark.reading.log_files import list_log_files
from tandemmq.spark.reading.ranges import LogRange, split
from tandemmq.spark.reading.walking import RangeResult, RangeWalker
from tandemmq.spark.rebuilding.stitching import settle
from tandemmq.store.format.record import Message, encode_blank, encode_record
from tests.campaigns import in_campaigns
from tests.spark.kit import Sizes, by_job, by_log_code
from tests.unit.format.logs import V4, props

NOW = 1_700_000_000_000


def record(at: int, number: int, size: int = 200, topic: str = "T", body: bytes = b"") -> bytes:
    """A record of exactly ``size`` bytes."""
    message = Message(topic, 0, body, props(KEYS=f"k{number}"), born_host=V4, store_host=V4)
    rest = size - len(encode_record(message, number, at, NOW))
    message = Message(topic, 0, body + b"x" * rest, message.properties, born_host=V4, store_host=V4)
    return encode_record(message, number, at, NOW + number)


def store(root: Path, *files: bytes) -> Path:
    """A store of these log files; pages of zeros are holes."""
    directory = root / "commitlog"
    directory.mkdir(parents=True)
    for number, data in enumerate(files):
        with (directory / f"{number * len(data):020d}").open("wb") as file:
            for at in range(0, len(data), 4096):
                if any(data[at : at + 4096]):
                    file.seek(at)
                    file.write(data[at : at + 4096])
            file.truncate(len(data))
    return root


def walked(log_range: LogRange) -> RangeResult:
    with RangeWalker(log_range) as walking:
        for _ in walking.walks():
            pass
        return walking.result


@pytest.mark.parametrize("zeros", [1, 2, 3])
def test_a_record_whose_first_bytes_are_the_zeros_at_the_end_of_a_lost_page(tmp_path: Path, zeros: int) -> None:
    """The page is a hole, and the first bytes of a TOTALSIZE are zero: the record has lost nothing."""
    begin = 4096 - zeros
    data = bytearray(16_384)
    at, number = begin, 0
    while at < 12_000:
        data[at : at + 200] = record(at, number)
        at, number = at + 200, number + 1
    sizes = Sizes(log_file=16_384, queue_file=2_000, slots=5, entries=500)
    root = store(tmp_path / "store", bytes(data))
    want = by_log_code(root, tmp_path / "sequential", sizes)
    units = want.queues["consumequeue/T/0/00000000000000000000"]
    assert int.from_bytes(units[:8], "big") == begin
    for partitions in (1, 2, 7, 64):
        got, report = by_job(root, tmp_path / "staging", sizes, partitions)
        assert (got.differences(want), report.messages) == ([], number)


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 16, 39, *in_campaigns(*({*range(1, 40)} - {1, 2, 3, 7, 16, 39}))])
def test_forged_records_in_bodies_wherever_it_is_cut(tmp_path: Path, partitions: int) -> None:
    """A body may hold whole records with checksums that claim to stand where they do, one after the other."""
    data, at, number = bytearray(16_384), 0, 0
    while at < 15_000:
        body = b""
        for fake in range(6):
            body += record(at + 88 + len(body), 900 + fake, 150, "Forged")
        one = record(at, number, 88 + len(body) + 40, body=body)
        if at + len(one) + 8 > len(data):
            break
        data[at : at + len(one)] = one
        at, number = at + len(one), number + 1
    data[at : at + 8] = encode_blank(len(data) - at)
    sizes = Sizes(log_file=16_384, queue_file=2_000, slots=5, entries=500)
    root = store(tmp_path / "store", bytes(data), bytes(16_384))
    want = by_log_code(root, tmp_path / "sequential", sizes)
    got, report = by_job(root, tmp_path / "staging", sizes, partitions)
    assert got.differences(want) == []
    assert report.messages == number


def test_every_split_of_a_small_log_joins(tmp_path: Path) -> None:
    """Ranges that begin at any byte: each record is in exactly one, and the first is where the one before ended."""
    data, at, number = bytearray(2_048), 0, 0
    while at + 150 + 8 <= len(data):
        data[at : at + 150] = record(at, number, 150)
        at, number = at + 150, number + 1
    data[at : at + 8] = encode_blank(len(data) - at)
    root = store(tmp_path / "store", bytes(data), bytes(2_048))
    files = list_log_files(root)
    for cut in range(1, 2_048):
        ranges = [LogRange(0, files[0], 0, cut, exact=True), LogRange(1, files[0], cut, 2_048, exact=False)]
        found = [(one, walked(one)) for one in ranges]
        log = settle(found)
        assert (log.records, log.end, log.damage, log.misread) == (number, 2_048, [], set()), cut


def test_ranges_cover_the_log_once() -> None:
    """Whatever size is asked for."""
    from tandemmq.spark.reading.log_files import LogFile

    files = [LogFile(Path("x"), start, 1_000) for start in (5_000, 6_000, 8_000)]
    for size in (1, 7, 100, 333, 499, 500, 999, 1_000, 5_000):
        ranges = split(files, size, begin=5_100, end=8_500, boundaries=[5_400, 9_000], whole=[6_000])
        assert [one.number for one in ranges] == list(range(len(ranges)))
        at = 5_100
        for one in ranges:
            assert one.begin == (8_000 if at == 7_000 else at)
            assert one.file.start <= one.begin < one.end <= one.file.end
            at = one.end
        assert at == 8_500
        assert {one.begin for one in ranges if one.exact} == {5_100, 5_400, 6_000, 8_000}
        assert sum(one.file.start == 6_000 for one in ranges) == 1
