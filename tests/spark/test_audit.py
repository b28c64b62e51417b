"""The audit of stores of our own: sound, in use, and with one thing after the other made wrong in them."""

import asyncio
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.spark.auditing.audit_index import find_index_layout, index_paths
from tandemmq.spark.auditing.audit_job import AuditRequest, audit
from tandemmq.spark.auditing.audit_report import AuditReport
from tandemmq.spark.errors import BadJobOption, NotAStore
from tandemmq.spark.running.runner import InProcessRunner
from tandemmq.store.format.host import Host
from tandemmq.store.format.index_layout import entry_position
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import encode
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE
from tandemmq.store.log.message_store import MessageStore
from tests.spark.kit import Sizes

SIZES = Sizes(log_file=64 << 10, queue_file=2_000, slots=100, entries=250)
MESSAGES = 400
HOST = Host("127.0.0.1", 10911)


async def fill(root: Path, sizes: Sizes = SIZES) -> MessageStore:
    """Orders in two queues, three keys a record with UNIQ_KEY; still open."""
    store = MessageStore.open(sizes.config(root, compiled_walker="never"))
    store.start()
    for number in range(MESSAGES):
        properties = encode({"UNIQ_KEY": f"{number:032X}", "KEYS": f"key-{number} twin", "TAGS": "t"})
        store.append(Message("orders", number % 2, b"x" * 200, properties, born_host=HOST, store_host=HOST))
        await asyncio.sleep(0)
    return store


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def make(root: Path) -> Path:
        store = await fill(root)
        await store.close()
        return root

    return asyncio.run(make(tmp_path_factory.mktemp("audit") / "store"))


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "store")


def look(root: Path, **more: Any) -> AuditReport:
    return audit(AuditRequest(root, **more), InProcessRunner())


def faults(report: AuditReport) -> dict[str, int]:
    return {kind.name: number for kind, number, _ in report.found(faults=True)}


def edit(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def record_at(root: Path, number: int) -> tuple[Path, int]:
    """File and position of a record: all are of one size but for what their numbers change."""
    files = sorted((root / "commitlog").iterdir())
    left = number
    for path in files:
        data, at = path.read_bytes(), 0
        while at + 8 <= len(data):
            size, magic = struct.unpack_from(">iI", data, at)
            if magic != 0xDAA320A7:
                break
            if not left:
                return path, at
            left -= 1
            at += size
    raise AssertionError(f"there is no record {number}")


def queue_file(root: Path, queue_id: int, number: int = 0) -> Path:
    return sorted((root / "consumequeue" / "orders" / str(queue_id)).iterdir())[number]


def test_a_sound_store(store: Path) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in store.rglob("*") if path.is_file()}
    report = look(store)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in store.rglob("*") if path.is_file()} == before
    assert faults(report) == {}
    assert report.faults == 0
    assert report.records == MESSAGES
    assert [(one.queue_id, one.first, one.end, one.messages) for one in report.queues] == [
        (0, 0, 200, 200),
        (1, 0, 200, 200),
    ]
    assert report.index is not None
    assert sum(file.entries for file in report.index) == 3 * MESSAGES
    assert report.statistics.totals()["orders"][0] == MESSAGES
    assert json.loads(json.dumps(report.document()))["faults"] == 0


def test_a_missing_queue_file_is_one_stretch_of_missing_units(store: Path) -> None:
    queue_file(store, 1).unlink()
    report = look(store, partitions=7)
    assert faults(report) == {"unit-missing": 100}
    (place,) = report.findings.places["unit-missing"]
    assert (place.topic, place.queue_id, place.queue_offset, place.count) == ("orders", 1, 0, 100)
    assert place.physical_offset == 0 + struct.unpack(">i", record_at(store, 0)[0].read_bytes()[:4])[0]
    assert report.queue(("orders", 1)).faults == 100


@pytest.mark.parametrize(
    ("unit", "kind", "told"),
    [
        (bytes(UNIT_SIZE), "unit-missing", ""),
        (BLANK_UNIT, "unit-blank", ""),
        (struct.pack(">qiq", 12_345, 200, 0), "unit-wrong", "another place in the log"),
    ],
)
def test_a_changed_unit(store: Path, unit: bytes, kind: str, told: str) -> None:
    edit(queue_file(store, 0), 7 * UNIT_SIZE, unit)
    report = look(store)
    assert faults(report) == {kind: 1}
    (place,) = report.findings.places[kind]
    assert (place.queue_offset, place.told) == (7, told)


@pytest.mark.parametrize(("at", "told"), [(8, "another length"), (16, "another tag")])
def test_a_unit_with_one_wrong_field(store: Path, at: int, told: str) -> None:
    edit(queue_file(store, 0), 7 * UNIT_SIZE + at + 3, b"\x7b")
    report = look(store)
    assert faults(report) == {"unit-wrong": 1}
    assert report.findings.places["unit-wrong"][0].told == told


def test_units_behind_the_last_message(store: Path) -> None:
    path = queue_file(store, 0, 1)
    edit(path, 2_000 - UNIT_SIZE, b"")
    shutil.copy(path, path.with_name(f"{4_000:020d}"))
    edit(path.with_name(f"{4_000:020d}"), 0, struct.pack(">qiq", 1 << 40, 200, 0))
    report = look(store)
    assert faults(report) == {"unit-extra": 99, "unit-behind-end": 1}
    assert report.findings.places["unit-behind-end"][0].queue_offset == 200


def test_odd_files_among_the_queues(store: Path) -> None:
    directory = queue_file(store, 0).parent
    (directory / "notes.txt").write_text("?")
    (directory / f"{2_000_000:020d}").write_bytes(b"short")
    assert faults(look(store)) == {"queue-file": 2}


def test_a_queue_of_a_topic_that_the_log_does_not_have(store: Path) -> None:
    shutil.copytree(store / "consumequeue" / "orders", store / "consumequeue" / "gone")
    report = look(store)
    assert faults(report) == {"unit-extra": MESSAGES}
    assert report.queue(("gone", 0)).messages == 0
    assert faults(look(store, topics=("orders",))) == {}
    assert faults(look(store, queues=False)) == {}


def test_queue_offsets_given_twice_and_left_out(store: Path) -> None:
    """Record 100 of queue 0 says that it is number 40: the queue cannot hold it, and 50 is left out."""
    path, at = record_at(store, 100)
    edit(path, at + 20, struct.pack(">q", 40))
    queue = queue_file(store, 0)
    edit(queue, 50 * UNIT_SIZE, BLANK_UNIT)
    report = look(store, partitions=5)
    assert faults(report) == {"offset-twice": 1, "offset-gap": 1}
    assert report.findings.places["offset-twice"][0].queue_offset == 40
    (gap,) = report.findings.places["offset-gap"]
    assert (gap.queue_offset, gap.count, gap.told) == (50, 1, "without damage in the log there")


def test_fields_that_no_checksum_covers(store: Path) -> None:
    path, at = record_at(store, 10)
    edit(path, at + 20, struct.pack(">q", 1 << 40))
    path, at = record_at(store, 20)
    edit(path, at + 12, struct.pack(">i", -7))
    found = faults(look(store))
    assert found["offset-impossible"] == 1
    assert found["name-impossible"] == 1
    assert found["offset-gap"] == 2
    assert found["unit-extra"] == 2


def test_a_clock_that_was_set_back_is_a_note(store: Path) -> None:
    path, at = record_at(store, 50)
    (time,) = struct.unpack(">q", path.read_bytes()[at + 56 : at + 64])
    edit(path, at + 56, struct.pack(">q", time - 60_000))
    report = look(store)
    assert {kind.name: number for kind, number, _ in report.found(faults=False)} == {"time-back": 1}
    assert "ms" in report.findings.places["time-back"][0].told


def test_a_flipped_bit_and_what_depends_on_the_record(store: Path) -> None:
    path, at = record_at(store, 51)
    edit(path, at + 150, b"?")
    report = look(store, partitions=3)
    assert faults(report) == {"rot": 1, "offset-gap": 1}
    notes = {kind.name: number for kind, number, _ in report.found(faults=False)}
    assert notes == {"unit-damaged": 1, "entry-damaged": 3, "damage-unknown": 1}
    assert report.findings.places["offset-gap"][0].told == "with damage in the log there"
    assert [one.kind for one in report.damage] == ["rot"]


# -- index ----------------------------------------------------------------------------------------------------------


def test_the_sizes_of_the_index_are_told_from_its_files(sound: Path, tmp_path: Path) -> None:
    assert find_index_layout(index_paths(sound), None, None) == (100, 250)
    assert find_index_layout(index_paths(sound), 100, None) == (100, 250)
    assert find_index_layout(index_paths(sound), None, 250) == (100, 250)
    assert find_index_layout([], None, None) == (5_000_000, 20_000_000)
    with pytest.raises(BadJobOption, match="With 7 slots"):
        find_index_layout(index_paths(sound), 7, 250)


def in_index(field: int, data: bytes, number: int = 30) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        edit(index_paths(root)[1], entry_position(SIZES.slots, number) + field, data)

    return change


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (in_index(0, struct.pack(">i", 5)), {"entry-wrong": 1, "entry-unreachable": 1}),
        (in_index(4, struct.pack(">q", 3)), {"entry-missing": 1, "entry-extra": 1, "entry-order": 1}),
        (in_index(4, struct.pack(">q", 1 << 40)), {"entry-missing": 1, "entry-behind-end": 1, "entry-order": 1}),
        (in_index(12, struct.pack(">i", 99)), {"entry-time": 1}),
        (in_index(16, struct.pack(">i", 40)), {"entry-impossible": 1}),
    ],
)  # fmt: skip
def test_a_changed_index_entry(store: Path, change: Callable[[Path], None], kinds: dict[str, int]) -> None:
    change(store)
    report = look(store, partitions=4)
    found = faults(report)
    found.pop("entry-unreachable", None) if "entry-unreachable" not in kinds else None
    assert found == kinds


def test_an_emptied_slot_cuts_off_its_chain(store: Path) -> None:
    path = index_paths(store)[0]
    data = path.read_bytes()
    hashes = [struct.unpack_from(">i", data, entry_position(SIZES.slots, at))[0] for at in range(1, SIZES.entries)]
    slot = hashes[0] % SIZES.slots
    edit(path, 40 + 4 * slot, bytes(4))
    cut = sum(one % SIZES.slots == slot for one in hashes)
    assert faults(look(store)) == {"entry-unreachable": cut, "index-header": 1}


def test_a_key_that_is_there_twice(store: Path) -> None:
    """Trap T9: the last record of a file is indexed again in the next."""
    first, second = index_paths(store)[:2]
    data = first.read_bytes()
    entry = data[entry_position(SIZES.slots, SIZES.entries - 1) :][:12]
    edit(second, entry_position(SIZES.slots, 1), entry)
    found = faults(look(store))
    assert found["entry-twice"] == 1
    assert found["entry-missing"] == 1


def test_a_lost_index_file(store: Path) -> None:
    index_paths(store)[2].unlink()
    report = look(store, partitions=7)
    assert faults(report) == {"entry-missing": 249}
    (place,) = report.findings.places["entry-missing"]
    assert place.physical_offset < place.physical_end


def test_odd_files_in_the_index(store: Path) -> None:
    edit(index_paths(store)[0], 36, struct.pack(">i", 9_999))
    (store / "index" / "20990101000000000").write_bytes(b"short")
    found = faults(look(store))
    assert found["index-file"] == 1
    assert found["index-header"] == 1


def test_without_an_index(store: Path) -> None:
    shutil.rmtree(store / "index")
    assert faults(look(store)) == {"entry-missing": 3 * MESSAGES}
    report = look(store, index=False)
    assert (faults(report), report.index) == ({}, None)


# -- other ----------------------------------------------------------------------------------------------------------


def test_counts_are_exact_when_places_are_not_told(store: Path) -> None:
    for number in range(2):
        queue_file(store, number).unlink()
        edit(queue_file(store, number), 0, bytes(2_000))
    for path in index_paths(store):
        path.unlink()
    report = look(store, details=0)
    assert faults(report) == {"unit-missing": MESSAGES, "entry-missing": 3 * MESSAGES}
    assert not any(report.findings.places.values())


def test_a_body_that_holds_a_record_is_no_record(store: Path) -> None:
    """A range that begins inside of it takes it for one, and its file is read again, whole."""
    path, at = record_at(store, 0)
    data = path.read_bytes()
    size = struct.unpack_from(">i", data, at)[0]
    inner = bytearray(data[at : at + size])
    # A log of one large record whose body is a record that claims to stand where it does.
    from tandemmq.store.format.record import encode_record

    begin = 88
    struct.pack_into(">q", inner, 28, begin)
    message = Message("orders", 0, bytes(inner) + b"x" * 4_000, b"", born_host=HOST, store_host=HOST)
    record = encode_record(message, 0, 0, 1_700_000_000_000)
    assert record[begin : begin + 4] == inner[:4]
    for other in sorted((store / "commitlog").iterdir()):
        other.unlink()
    (store / "commitlog" / path.name).write_bytes(record.ljust(SIZES.log_file, b"\0"))
    report = look(store, queues=False, index=False, range_size=64)
    assert (report.records, faults(report)) == (1, {})


def test_what_is_no_store(tmp_path: Path, sound: Path) -> None:
    with pytest.raises(NotAStore):
        look(tmp_path)
    with pytest.raises(BadJobOption, match="log files themselves"):
        look(sound / "commitlog")


@pytest.mark.slow
async def test_a_store_in_use_is_compared_as_far_as_it_is_complete(tmp_path: Path) -> None:
    """The lock is asked for by another process: locks of one process do not keep it out itself."""
    store = await fill(tmp_path / "store")
    program = (
        "import json, sys; from pathlib import Path; from tandemmq.spark.auditing.audit_job import AuditRequest, audit;"
        "from tandemmq.spark.running.runner import InProcessRunner;"
        "print(json.dumps(audit(AuditRequest(Path(sys.argv[1])), InProcessRunner()).document()))"
    )
    import sys

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path / "store"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    await store.close()
    document = json.loads(out)
    assert (document["live"], document["faults"]) == (True, 0)
    assert faults(look(tmp_path / "store")) == {}
