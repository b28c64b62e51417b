"""Following a log in its files: every record in exactly one micro-batch, and what is lost is said."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandemmq.spark.errors import BadJobOption, MissingLog
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streams.stream_files import FileFollower
from tests.contract.store_process import StoreProcess
from tests.faults.harness import records_on_disk
from tests.golden import copy_of, golden_store
from tests.spark.streams import Load, Row, batch_rows, follow, log_files, reader, send, together

pytestmark = pytest.mark.slow

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

COLUMNS = ("physical_offset", "size", "is_valid")
LOGS = [
    ("clean", "store"),
    ("aged", "store"),
    ("crash", "store"),
    ("torn", "body-flip/store"),
    ("torn", "body-flip-old/store"),
    ("torn", "tail-zero/store"),
]


def places(found: list[Row]) -> list[tuple[int, int]]:
    return [(row["physical_offset"], row["size"]) for row in found]


def valid(found: list[Row]) -> list[Row]:
    return [row for row in found if row["is_valid"]]


@pytest.mark.golden
@pytest.mark.parametrize(("golden", "name"), LOGS)
@pytest.mark.parametrize("limit", [None, 1000, 7777])
def test_micro_batches_hold_every_record_once(golden: str, name: str, limit: int | None) -> None:
    root = golden_store(golden) / name
    wanted = [(offset, len(data)) for offset, data, _ in records_on_disk(root)]
    batches = follow(reader(COLUMNS, path=root, rangeSize=1 << 16), limit)
    assert sorted(places(valid(together(batches)))) == wanted
    if limit is not None:
        assert all(len(valid(batch)) <= limit for batch in batches)
        assert len(batches) >= len(wanted) // limit


@pytest.mark.golden
def test_damage_is_in_exactly_one_micro_batch() -> None:
    root = golden_store("torn") / "body-flip-old" / "store"
    whole = together(follow(reader(COLUMNS, path=root)))
    damaged = [row for row in whole if not row["is_valid"]]
    assert damaged
    for limit in (100, 333, 5000):
        batches = follow(reader(COLUMNS, path=root), limit)
        assert [row for row in together(batches) if not row["is_valid"]] == damaged


@pytest.mark.golden
def test_a_batch_read_again_has_the_same_rows() -> None:
    root = golden_store("crash") / "store"
    stream = reader(path=root)
    start = stream.initialOffset()
    end = FileFollower(SourceOptions(path=root), root).within(start, {"offset": 1 << 40}, 500)
    assert batch_rows(stream, start, end) == batch_rows(reader(path=root), start, end)


@contextmanager
def filled(directory: Path, messages: int = 3000) -> Iterator[StoreProcess]:
    """A store with some files of log, while it runs."""
    with StoreProcess(directory) as store:
        with store.client() as client:
            for first in range(0, messages, 500):
                send(client, "orders", first, 500)
        yield store


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some files of log that does not run any more; not to be changed."""
    root = tmp_path_factory.mktemp("written") / "store"
    with filled(root):
        pass
    return root


@pytest.fixture
def closed(written: Path, tmp_path: Path) -> None:
    """A copy of it, in `store`."""
    copy_of(written, tmp_path)


def test_a_live_log_is_followed_to_its_last_message(tmp_path: Path) -> None:
    with filled(tmp_path / "store") as store, store.client() as client:
        for options in ({"path": store.directory}, {"path": store.directory, "store": store.address}):
            stream = reader(("body",), **options)
            start = stream.initialOffset()
            count = 0
            for first in (10_000, 20_000, 30_000):
                bodies = [row["body"] for row in together(follow(stream, None, start))]
                assert len(bodies) == len(set(bodies))
                assert count == 0 or len(bodies) == 100
                count += len(bodies)
                start = stream.latestOffset(start, stream.getDefaultReadLimit())
                send(client, "orders", first, 100)
            stream.stop()


@pytest.mark.parametrize("told", [True, False])
def test_a_log_that_is_written_to_is_read_once(tmp_path: Path, told: bool) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 1_000_000, 2)
        load = Load(store.address, "orders", pause=0)
        options = {"store": store.address} if told else {}
        stream = reader(("body", "is_valid"), path=store.directory, **options)
        start = stream.initialOffset()
        found: list[Row] = []
        load.start()
        while len(found) < 10_000:
            end = stream.latestOffset(start, stream.getDefaultReadLimit())
            found += batch_rows(stream, start, end)
            start = end
        load.stop()
        found += together(follow(stream, None, start))
        stream.stop()
    assert all(row["is_valid"] for row in found)
    assert Counter(int(row["body"]) for row in found) == Counter(load.sent | {1_000_000, 1_000_001})


def test_the_end_is_the_stores_own(tmp_path: Path) -> None:
    with filled(tmp_path / "store") as store, store.client() as client:
        told = reader(path=store.directory, store=store.address, startingOffsets="latest")
        walked = reader(path=store.directory, startingOffsets="latest")
        assert told.initialOffset() == walked.initialOffset() == {"offset": client.log().dispatched_offset}
        told.stop()


@pytest.mark.usefixtures("closed")
def test_a_stream_begins_where_it_is_told(tmp_path: Path) -> None:
    offsets = [offset for offset, _, _ in records_on_disk(tmp_path / "store")]
    for asked, first in ((offsets[1500], offsets[1500]), (offsets[1500] - 5, offsets[1500]), (0, offsets[0])):
        stream = reader(COLUMNS, path=tmp_path / "store", startingOffsets=asked)
        assert min(place for place, _ in places(together(follow(stream)))) == first
    with pytest.raises(BadJobOption, match="ends at"):
        reader(path=tmp_path / "store", startingOffsets=offsets[-1] + 10_000).initialOffset()


@pytest.mark.usefixtures("closed")
def test_expired_files_are_an_error_or_left_out(tmp_path: Path) -> None:
    root = tmp_path / "store"
    files = log_files(root)
    assert len(files) > 3
    files[0].unlink()
    with pytest.raises(MissingLog, match=r"expired unread.*failOnDataLoss"):
        follow(reader(COLUMNS, path=root), None, {"offset": 0})
    stream = reader(COLUMNS, path=root, failOnDataLoss="false")
    with pytest.warns(UserWarning, match="expired unread"):
        found = together(follow(stream, None, {"offset": 0}))
    assert sorted(places(found)) == [(offset, len(data)) for offset, data, _ in records_on_disk(root)]


@pytest.mark.usefixtures("closed")
def test_a_file_that_goes_between_plan_and_task_is_an_error(tmp_path: Path) -> None:
    stream = reader(COLUMNS, path=tmp_path / "store")
    start = stream.initialOffset()
    partitions = stream.partitions(start, stream.latestOffset(start, stream.getDefaultReadLimit()))
    log_files(tmp_path / "store")[0].unlink()
    with pytest.raises(MissingLog, match="is gone"):
        list(stream.read(partitions[0]))


@pytest.mark.usefixtures("closed")
def test_a_missing_file_in_the_middle_is_an_error(tmp_path: Path) -> None:
    log_files(tmp_path / "store")[1].unlink()
    with pytest.raises(MissingLog, match="holds offsets"):
        follow(reader(COLUMNS, path=tmp_path / "store"))


@pytest.mark.usefixtures("closed")
def test_a_log_that_got_shorter_is_an_error(tmp_path: Path) -> None:
    stream = reader(COLUMNS, path=tmp_path / "store")
    end = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    for path in log_files(tmp_path / "store")[2:]:
        path.unlink()
    with pytest.raises(MissingLog, match="lost its last messages"):
        reader(path=tmp_path / "store").latestOffset(end, stream.getDefaultReadLimit())


@pytest.mark.usefixtures("closed")
def test_a_log_that_was_written_anew_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingLog, match="inside of a message"):
        follow(reader(COLUMNS, path=tmp_path / "store"), None, {"offset": 1003})


def test_a_store_that_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    with filled(tmp_path / "store") as store:
        assert store.process is not None
        store.process.send_signal(signal.SIGSTOP)  # its files are of one moment
        os.waitid(os.P_PID, store.process.pid, os.WSTOPPED)
        shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=shutil.ignore_patterns("*.tmp"))
        store.process.send_signal(signal.SIGCONT)
        with pytest.raises(BadJobOption, match="Name that directory"):
            reader(path=tmp_path / "copy", store=store.address).initialOffset()
        with pytest.raises(BadJobOption, match="not on this host"):
            reader(path=tmp_path / "nowhere", store=store.address).initialOffset()
        os.symlink(tmp_path / "store", tmp_path / "other-name")
        reader(path=tmp_path / "other-name", store=store.address).initialOffset()
        reader(path=tmp_path / "store" / "commitlog", store=store.address).initialOffset()


def test_a_fresh_store_is_followed_from_its_first_message(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        stream = reader(("body",), path=store.directory, store=store.address)
        start = stream.initialOffset()
        assert follow(stream, None, start) == []
        send(client, "orders", 0, 10)
        assert len(together(follow(stream, None, start))) == 10
        stream.stop()


def test_options_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadJobOption, match="endingOffsets"):
        reader(path=tmp_path, endingOffsets=100)
    with pytest.raises(BadJobOption, match="endingTimestamp"):
        reader(path=tmp_path, endingTimestamp=100)
    with pytest.raises(BadJobOption, match="over the network"):
        reader(path=tmp_path).partitions({"orders": {"0": 1}}, {"orders": {"0": 2}})


@pytest.mark.golden
def test_a_copy_is_followed_as_it_grows(tmp_path: Path) -> None:
    root = copy_of(golden_store("crash") / "store", tmp_path)
    files = log_files(root)
    kept = tmp_path / "kept"
    kept.mkdir()
    for path in files[1:]:
        path.rename(kept / path.name)
    stream = reader(COLUMNS, path=root)
    start = stream.initialOffset()
    found: list[Row] = []
    for path in files:
        if not path.exists():
            (kept / path.name).rename(path)
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        found += batch_rows(stream, start, end)
        start = end
    assert sorted(places(valid(found))) == [(offset, len(data)) for offset, data, _ in records_on_disk(root)]
