"""Random commit logs with everything in them that a rebuild might trip over, and random damage to them."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

from tandemmq.store.format.record import BLANK_SIZE, Message, encode_blank, encode_record
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tests.spark.kit import Sizes
from tests.unit.format.logs import V4, V6, props

NOW = 1_700_000_000_000
TOPICS = ["T", "TopicTest", "Aa", "BB", "订单", "%RETRY%" + "g" * 125, SCHEDULE_TOPIC]
KEYS = ["Aa", "BB", "k", "订单3", "🚀", "order-17", "polygenelubricants", "Aa BB", " k  k ", ""]

keys = st.sampled_from(KEYS)
sizes_of_stores = st.builds(
    Sizes,
    log_file=st.sampled_from([1_024, 4_096, 10_000, 65_536]),
    queue_file=st.sampled_from([40, 100, 200, 10_000]),
    slots=st.sampled_from([1, 3, 50]),
    entries=st.sampled_from([2, 3, 9, 40, 1_000]),
    levels=st.sampled_from([(), (1_000,), (1_000, 5_000, 10_000)]),
)


@dataclass
class RandomLog:
    """A log: ``files`` by their first offset. ``notes``: what was done to it, for the failing example."""

    sizes: Sizes
    files: dict[int, bytearray] = field(default_factory=dict, repr=False)
    records: list[tuple[int, int]] = field(default_factory=list)
    """Offset and size of each."""
    notes: list[str] = field(default_factory=list)

    def write(self, root: Path, *, sparse: bool) -> Path:
        """As a store directory. ``sparse``: leave holes where pages are zero."""
        directory = root / "commitlog"
        directory.mkdir(parents=True)
        for start, data in self.files.items():
            with (directory / f"{start:020d}").open("wb") as file:
                for at in range(0, len(data), 4096):
                    page = data[at : at + 4096]
                    if not sparse or any(page):
                        file.seek(at)
                        file.write(page)
                os.ftruncate(file.fileno(), len(data))
        return root


class _Writer:
    """Lays records into files as a store does."""

    def __init__(self, sizes: Sizes, base: int) -> None:
        self.log = RandomLog(sizes)
        self.size = sizes.log_file
        self.end = base
        self.time = NOW
        self.offsets: dict[tuple[str, int], int] = {}

    def _room(self, size: int) -> None:
        """Roll where a record of ``size`` does not fit."""
        start = self.end - self.end % self.size
        if self.end % self.size and size + BLANK_SIZE > start + self.size - self.end:
            self._put(encode_blank(start + self.size - self.end))
            self.end = start + self.size
        start = self.end - self.end % self.size
        self.log.files.setdefault(start, bytearray(self.size))

    def _put(self, data: bytes) -> None:
        start = self.end - self.end % self.size
        self.log.files[start][self.end - start : self.end - start + len(data)] = data

    def append(self, messages: list[Message], jump: int, seconds: int, forge: int) -> None:
        """A batch: all in one file, one store time. ``jump``: of the queue offsets; ``forge``: see `_forged`."""
        self.time = max(0, self.time + seconds)
        size = 0
        for message in messages:
            size += len(encode_record(_forged(message, 0, forge), 0, 0, 0))
        if size + BLANK_SIZE > self.size:
            return
        self._room(size)
        for message in messages:
            key, offset = (message.topic, message.queue_id), 0
            message = _forged(message, self.end, forge)
            if not message.sys_flag & 4:
                offset = max(0, self.offsets.get(key, 0) + jump)
                self.offsets[key] = offset + 1
            record = encode_record(message, offset, self.end, self.time)
            self._put(record)
            self.log.records.append((self.end, len(record)))
            self.end += len(record)
            jump = 0

    def leave_stale_behind_a_blank(self, message: Message) -> None:
        """End the file with a blank in front of bytes of an earlier life, which are a whole record."""
        start = self.end - self.end % self.size
        record = encode_record(message, 3, self.end + 40, self.time)
        if self.end == start or start not in self.log.files or len(record) + 50 > start + self.size - self.end:
            return
        self._put(encode_blank(start + self.size - self.end))
        self.end += 40
        self._put(record)
        self.end = start + self.size
        self.log.notes.append("stale record behind a blank")


def _forged(message: Message, at: int, kind: int) -> Message:
    """A message whose body holds a record that claims to stand just there.

    ``kind``: 0 none; 1 valid; 2 its length runs to the very end of the body; 3 two of them; 4 damaged.
    """
    if not kind:
        return message
    begin = 88 + 12 * (message.born_host == V6) + 12 * (message.store_host == V6)
    inner = Message("T", 0, b"forged", props(KEYS="k forged", TAGS="x"), born_host=V4, store_host=V4)
    body = b"in" + encode_record(inner, 1, at + begin + 2, NOW)
    if kind == 3:
        body += encode_record(inner, 2, at + begin + len(body), NOW)
    if kind == 4:
        body = body[:-1] + b"?"
    return Message(
        message.topic, message.queue_id, body + (b"" if kind == 2 else b"out"), message.properties, message.flag,
        message.sys_flag, message.born_timestamp, message.born_host, message.store_host,
    )  # fmt: skip


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message that a store might hold."""
    properties: dict[str, str] = {}
    if draw(st.booleans()):
        properties["UNIQ_KEY"] = draw(st.sampled_from(["u1", "Aa", "BB", "0" * 32]))
    if draw(st.booleans()):
        properties["KEYS"] = " ".join(draw(st.lists(keys, max_size=3)))
    if draw(st.booleans()):
        properties["TAGS"] = draw(st.sampled_from(["TagA", "Aa", "BB", "polygenelubricants", "🚀"]))
    if draw(st.booleans()):
        properties["DELAY"] = draw(st.sampled_from(["1", "2", "9", "0", "x"]))
    return Message(
        topic=draw(st.sampled_from(TOPICS)),
        queue_id=draw(st.integers(0, 1)),
        body=draw(st.sampled_from([b"", b"b", bytes(30), b"\xda\xa3\x20\xa7" * 3, b"x" * 300])),
        properties=props(**properties),
        sys_flag=draw(st.sampled_from([0, 0, 0, 0, 1, 4, 8, 12])),
        born_timestamp=1,
        born_host=draw(st.sampled_from([V4, V4, V6])),
        store_host=draw(st.sampled_from([V4, V4, V6])),
    )


jumps = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 3, -1, -2, 40, 1 << 40])
times = st.sampled_from([0, 1, 999, 1_000, 60_000, -5_000, -NOW])


@st.composite
def logs(draw: st.DrawFn, sizes: Sizes) -> RandomLog:
    """A log of up to some dozens of records, sound but for what RocketMQ itself may leave in one."""
    writer = _Writer(sizes, draw(st.sampled_from([0, 0, 3, 1 << 20])) * sizes.log_file)
    writer._room(0)
    for _ in range(draw(st.integers(0, 14))):
        if draw(st.integers(0, 9)) == 0:
            writer.leave_stale_behind_a_blank(draw(messages()))
            continue
        forge = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4]))
        first = draw(messages())
        batch = [first] * draw(st.sampled_from([1, 1, 1, 2, 5]))
        writer.append(batch, draw(jumps), draw(times), forge)
    if draw(st.booleans()):  # made ahead, never used
        last = max(writer.log.files)
        writer.log.files[last + sizes.log_file] = bytearray(sizes.log_file)
    return writer.log


@st.composite
def damaged_logs(draw: st.DrawFn, sizes: Sizes) -> RandomLog:
    """A log with damage: flipped bytes, zeroed stretches, old bytes in other places, missing files, torn ends."""
    log = draw(logs(sizes))
    starts = sorted(log.files)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["flip", "zero", "copy", "missing", "torn", "field"]))
        start = draw(st.sampled_from(starts))
        if start not in log.files:
            continue
        data, at = log.files[start], draw(st.integers(0, sizes.log_file - 1))
        if kind == "missing" and len(log.files) > 1:
            del log.files[start]
        elif kind == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "zero":
            stop = min(at + draw(st.sampled_from([1, 8, 100, 4_096])), len(data))
            data[at:stop] = bytes(stop - at)
        elif kind == "copy":
            stop = min(at + 150, len(data))
            data[at:stop] = data[: stop - at]
        elif kind == "torn":
            data[at:] = bytes(len(data) - at)
            for later in [other for other in log.files if other > start]:
                log.files[later] = bytearray(sizes.log_file)
        elif kind == "field" and log.records:
            offset, _ = draw(st.sampled_from(log.records))
            file = log.files.get(offset - offset % sizes.log_file)
            if file is not None:
                place = offset % sizes.log_file + draw(st.sampled_from([0, 3, 7, 15, 22, 27, 35, 39]))
                file[place] ^= 1 << draw(st.integers(0, 7))
        log.notes.append(f"{kind} at {start}+{at}")
    return log


def any_log(damaged: bool = True) -> st.SearchStrategy[RandomLog]:
    """A log for random sizes."""
    return sizes_of_stores.flatmap(lambda sizes: damaged_logs(sizes) if damaged else logs(sizes))


partitions = st.sampled_from([1, 2, 3, 7, 20, 64])
