"""CompiledAppender: plain records, straight into the mapping of the newest log file; its Python twin is `CommitLog`.

It does what `CommitLog.append` does for a record that is plain: version 1, no checksum of the whole record, a queue
whose next offset is known, and room for it in the newest file. For all else `append` gives 0 before anything has
changed, and `CommitLog` does it, which also knows what is wrong. Position, time and queue offsets stay in the
`CommitLog`; so the two can take turns, record by record.

Those who follow the log hear of a turn's first record at once, and of the others at the end of the turn of the event
loop, as do the metrics.
"""

from collections.abc import Callable

import cython
from cython.cimports.cpython.buffer import PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.dict import PyDict_GetItem
from cython.cimports.cpython.memoryview import PyMemoryView_FromMemory
from cython.cimports.cpython.object import PyObject
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.posix.time import CLOCK_MONOTONIC, clock_gettime, timespec
from isal.isal_zlib import crc32

from tandemmq.store.format.record_encoder import BLANK_SIZE, MAGIC_V1, MAX_V1_TOPIC
from tandemmq.store.format.sysflag import BORN_HOST_V6, HOSTS_V6, STORE_HOST_V6, TRANSACTION_MASK
from tandemmq.store.log.message_store import MessageStore

_MOST_TOPICS: cython.int = 10_000
_FIXED: cython.int = 72
"""Bytes from TOTALSIZE to BODYLENGTH without the two hosts."""
_PLAIN_BUFFER: cython.int = 0x100
_CRC_MASK: cython.uint = 0x7FFFFFFF
_BLANK: cython.int = BLANK_SIZE
_MAGIC: cython.uint = MAGIC_V1
_LONGEST_TOPIC: cython.int = MAX_V1_TOPIC
_BORN_V6: cython.int = BORN_HOST_V6
_STORE_V6: cython.int = STORE_HOST_V6
_BOTH_V6: cython.int = HOSTS_V6
_TRANSACTION: cython.int = TRANSACTION_MASK
_V4: cython.int = 8


def source() -> str:
    """Digest of the source that this was built from, as `tools/core_source.py` makes it."""
    return TANDEM_CORE_SOURCE.decode()


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def seconds_now() -> cython.double:
    """Of a clock that only goes forward."""
    now: timespec
    clock_gettime(CLOCK_MONOTONIC, cython.address(now))
    return now.tv_sec + now.tv_nsec / 1e9


@cython.cclass
class PlainTopic:
    """A topic's name, as it stands in a record, and the keys of its queues in the table of next offsets."""


@cython.cclass
class CompiledAppender:
    """See the module."""

    def __init__(
        self, store: MessageStore, store_host: bytes, soon: Callable[[Callable[[], None]], object], sent: object
    ) -> None:
        """`store_host`: the packed address of the broker. `soon` calls at the end of the turn of the event loop.

        `sent(topic, messages, bytes)` counts what was stored.
        """
        self._store = store
        self._log = store.commit_log
        self._flags = store.flags
        self._offsets = store.commit_log.offsets
        self._now_ms = store.clock.now_ms
        self._observer = store.observer
        self._store_host = store_host
        self._soon = soon
        self._sent = sent
        self._crc32 = crc32
        self._topics = {}
        self._end_turn = self.end_turn
        self._run_topic = ""

    @cython.cfunc
    def topic(self, name: cython.p_const_uchar, size: cython.Py_ssize_t) -> PlainTopic:
        """A topic by its name in UTF-8; None: its records are not plain."""
        last: PlainTopic = self._last
        if last is not None and last.field_size == size + 1 and memcmp(cython.address(last.field[1]), name, size) == 0:
            return last
        if size == 0 or size > _LONGEST_TOPIC:
            return None
        key: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, name), size)
        topic: PlainTopic = self._topics.get(key)
        if topic is None:
            if not key.isascii():
                return None
            if len(self._topics) >= _MOST_TOPICS:
                self._topics.clear()
            topic = PlainTopic()
            topic.name = key.decode()
            topic.field[0] = cython.cast(cython.uchar, size)
            memcpy(cython.address(topic.field[1]), name, size)
            topic.field_size = size + 1
            topic.keys = []
            self._topics[key] = topic
        self._last = topic
        return topic

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def append(self, topic: PlainTopic, plain: cython.pointer(Plain), place: cython.pointer(Place)) -> cython.int:
        """Append a record: 1, and its place. 0: it is not plain here and now, and nothing has changed."""
        log: object = self._log
        file: object = log._file
        if file is None or not self._flags.writable or log.append_crc or plain.sys_flag & _TRANSACTION:
            return 0
        while len(topic.keys) <= plain.queue_id:
            topic.keys.append((topic.name, len(topic.keys)))
        key: object = topic.keys[plain.queue_id]
        known: cython.pointer(PyObject) = PyDict_GetItem(self._offsets, key)
        if known == cython.NULL:
            return 0
        at: int64_t = log._at
        total: int64_t = _FIXED + plain.born_host_size + PyBytes_GET_SIZE(self._store_host)
        total += plain.body_size + topic.field_size + 2 + plain.properties_size
        largest: int64_t = log._largest
        open_end: int64_t = log._open_end
        if total > largest or total + _BLANK > open_end - at:
            return 0
        begun: cython.double = seconds_now()
        before: int64_t = log.last_store_timestamp
        start: int64_t = file.start
        place.physical_offset = start + at
        place.size = total
        place.queue_offset = cython.cast(object, known)
        place.store_timestamp = self._now_ms()
        if place.store_timestamp < before:
            place.store_timestamp = before  # never back, whatever the clock does (trap T21)
        crc: cython.uint = self._body_crc(plain)
        view: Py_buffer
        PyObject_GetBuffer(file.map, cython.address(view), PyBUF_WRITABLE)
        record: cython.p_uchar = cython.cast(cython.p_uchar, view.buf) + at
        self._write(record, topic, plain, place, crc)
        tandem_publish(record, cython.cast(cython.uint, total), _MAGIC)
        PyBuffer_Release(cython.address(view))
        warm_from: int64_t = log._warm_from
        log.last_store_timestamp = place.store_timestamp
        log._at = at + total
        self._offsets[key] = place.queue_offset + 1
        if at + total > warm_from:
            log._warm()
        self._count(topic, total, seconds_now() - begun)
        return 1

    @cython.cfunc
    @cython.exceptval(0, check=True)
    def _body_crc(self, plain: cython.pointer(Plain)) -> cython.uint:
        """BODYCRC."""
        if not plain.body_size:
            return 0
        body: object = PyMemoryView_FromMemory(cython.cast(cython.p_char, plain.body), plain.body_size, _PLAIN_BUFFER)
        return cython.cast(cython.uint, cython.cast(cython.ulonglong, self._crc32(body)) & _CRC_MASK)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _write(
        self,
        record: cython.p_uchar,
        topic: PlainTopic,
        plain: cython.pointer(Plain),
        place: cython.pointer(Place),
        crc: cython.uint,
    ) -> cython.void:
        """Lay a record out, but for its first eight bytes. `tandemmq.store.format.record` has the layout."""
        store_host_size: cython.Py_ssize_t = PyBytes_GET_SIZE(self._store_host)
        hosts: cython.int = (_BORN_V6 if plain.born_host_size > _V4 else 0) | (
            _STORE_V6 if store_host_size > _V4 else 0
        )
        to: cython.p_uchar = record + 8
        tandem_put32(to, crc)
        tandem_put32(to + 4, cython.cast(cython.uint, plain.queue_id))
        tandem_put32(to + 8, cython.cast(cython.uint, plain.flag))
        tandem_put64(to + 12, place.queue_offset)
        tandem_put64(to + 20, place.physical_offset)
        tandem_put32(to + 28, cython.cast(cython.uint, plain.sys_flag & ~_BOTH_V6 | hosts))
        tandem_put64(to + 32, plain.born_timestamp)
        to += 40
        memcpy(to, plain.born_host, plain.born_host_size)
        to += plain.born_host_size
        tandem_put64(to, place.store_timestamp)
        memcpy(to + 8, PyBytes_AS_STRING(self._store_host), store_host_size)
        to += 8 + store_host_size
        tandem_put32(to, cython.cast(cython.uint, plain.reconsume_times))
        tandem_put64(to + 4, 0)
        tandem_put32(to + 12, cython.cast(cython.uint, plain.body_size))
        to += 16
        memcpy(to, plain.body, plain.body_size)
        to += plain.body_size
        memcpy(to, topic.field, topic.field_size)
        to += topic.field_size
        to[0] = cython.cast(cython.uchar, plain.properties_size >> 8)
        to[1] = cython.cast(cython.uchar, plain.properties_size & 0xFF)
        memcpy(to + 2, plain.properties, plain.properties_size)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _count(self, topic: PlainTopic, size: int64_t, seconds: cython.double) -> cython.int:
        """Count a record, and have those who follow the log told."""
        if self._run_count and (self._run_size != size or self._run_topic is not topic.name):
            self._sent(self._run_topic, self._run_count, self._run_count * self._run_size)
            self._run_count = 0
        self._run_topic = topic.name
        self._run_size = size
        self._run_count += 1
        self._appends += 1
        self._bytes += size
        self._seconds += seconds
        if not self._open:
            self._soon(self._end_turn)
            self._open = True
            self._store.grew()
        return 0

    def end_turn(self) -> None:
        """Tell of what was stored since the turn began."""
        appends, size, seconds = self._appends, self._bytes, self._seconds
        self._open = False
        self._appends = self._bytes = 0
        self._seconds = 0.0
        if appends > 1:
            self._store.grew()
        if self._run_count:
            self._sent(self._run_topic, self._run_count, self._run_count * self._run_size)
            self._run_count = 0
        if appends:
            self._observer.appended(seconds, appends, size, appends)
