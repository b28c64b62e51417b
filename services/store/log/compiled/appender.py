"""CompiledAppender: plain records, laid out and written to the newest log file; its Python twin is `CommitLog`.

With SYNC_FLUSH each record, and always each batch that a producer has laid out, is written by one system call: the
kernel need not zero pages before, nor, as the file is synced, take each page from a mapping. With ASYNC_FLUSH a record
is laid out in the mapping itself, its first eight bytes last, which is cheaper then.

It does what `CommitLog.append` does for a record that is plain: version 1, no checksum of the whole record, a queue
whose next offset is known, and room for it in the newest file. For all else `append` gives 0 before anything has
changed, and `CommitLog` does it, which also knows what is wrong; likewise where the disk refuses. Position, time and
queue offsets stay in the `CommitLog`; so the two can take turns, record by record. They are read and written in its
slots (`grpc_transport/compiled/slots.pxd`).

Those who follow the log hear of a turn's first record at once, and of the others at the end of the turn of the event
loop, as do the metrics.
"""

from collections.abc import Callable

import cython
from cython.cimports.cpython.buffer import PyBUF_READ, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.dict import PyDict_GetItemWithError, PyDict_SetItem
from cython.cimports.cpython.memoryview import PyMemoryView_FromMemory
from cython.cimports.cpython.object import PyObject
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memchr, memcmp, memcpy
from cython.cimports.posix.time import CLOCK_REALTIME, clock_gettime, timespec
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.common.grpc_transport.compiled.slots import (
    PyLong_AsLongLong,
    tandem_fill_slot_long,
    tandem_slot,
    tandem_slot_at,
)
from isal.isal_zlib import crc32

from tandemmq.store.format.batch import LEAST_SIZE, LOOKED_INTO
from tandemmq.store.format.crc import crc_address
from tandemmq.store.format.record_encoder import BLANK_SIZE, MAGIC_V1, MAX_V1_TOPIC
from tandemmq.store.format.sysflag import BORN_HOST_V6, HOSTS_V6, STORE_HOST_V6, TRANSACTION_MASK
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.errors import NotWritable
from tandemmq.store.log.marks.running_flags import RunningFlags
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import LARGEST_APART, CommitLog
from tandemmq.store.log.segments.mapped_file import MappedFile

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
_LEAST_PIECE: cython.int = LEAST_SIZE
_LEAST_ROOM: cython.Py_ssize_t = LARGEST_APART
_MARKS: list[bytes] = list(LOOKED_INTO)
_TIMED_MASK: cython.int = 7
"""Each eighth append of a turn is timed and stands for the others: a look at the clock costs as much as a copy."""
_SHORTEST_NAME: cython.int = min(map(len, LOOKED_INTO))
_FIRST_LETTERS: uint64_t = sum({1 << (mark[0] & 63) for mark in LOOKED_INTO})
"""A bit for each letter with which one of them begins: few others need a comparison."""


def source() -> str:
    """Digest of the source that this was built from, as `setup.py` makes it."""
    return TANDEM_CORE_SOURCE.decode()


@cython.cfunc
@cython.exceptval(-1, check=False)
def measured(batch: cython.pointer(Batch), fixed: int64_t, most_body: int64_t) -> int64_t:
    """Bytes of the records of a batch, whose `count` is set; 0 where it is not right, or has to be looked into.

    `fixed`: bytes of a record beside body and properties. The twin is `BatchWriter.measure_plain`.
    """
    at: cython.p_const_uchar = batch.data
    end: cython.p_const_uchar = at + batch.size
    total: int64_t = 0
    size: int64_t
    body: int64_t
    properties: int64_t
    batch.count = 0
    while at < end:
        if end - at < _LEAST_PIECE:
            return 0
        size = tandem_get32(at)
        body = tandem_get32(at + 16)
        if size < _LEAST_PIECE or size > end - at or body > size - _LEAST_PIECE or body > most_body:
            return 0
        properties = at[20 + body] << 8 | at[21 + body]
        if properties > 0x7FFF or _LEAST_PIECE + body + properties != size:
            return 0
        if properties and not is_plain(at + 22 + body, at + size):
            return 0
        total += fixed + body + properties
        batch.count += 1
        at += size
    if batch.count > batch.most or (batch.wanted and batch.count != batch.wanted):
        return 0
    return total


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def is_plain(at: cython.p_const_uchar, end: cython.p_const_uchar) -> cython.int:
    """Whether properties have no name that a batch is looked into for, and do not end in a zero byte."""
    mark: bytes
    stop: cython.p_const_uchar
    if end[-1] == 0:
        return 0
    while at < end:
        stop = cython.cast(cython.p_const_uchar, memchr(at, 2, end - at))
        if stop == cython.NULL:
            stop = end
        if stop - at >= _SHORTEST_NAME and _FIRST_LETTERS >> (at[0] & 63) & 1:
            for mark in _MARKS:
                size: cython.Py_ssize_t = PyBytes_GET_SIZE(mark)
                if stop - at >= size and memcmp(at, PyBytes_AS_STRING(mark), size) == 0:
                    return 0
        at = stop + 1
    return 1


@cython.cclass
class PlainTopic:
    """A topic's name, as it stands in a record, and the keys of its queues in the table of next offsets."""


@cython.cclass
class CompiledAppender:
    """See the module."""

    def __dealloc__(self) -> None:
        """Give the room for records back, and the mapping."""
        free(self._apart)
        self._let_go()

    def __init__(
        self, store: MessageStore, store_host: bytes, soon: Callable[[Callable[[], None]], object], sent: object
    ) -> None:
        """`store_host`: the packed address of the broker. `soon` calls at the end of the turn of the event loop.

        `sent(topic, messages, bytes)` counts what was stored.
        """
        self._store = store
        self._log = store.commit_log
        self._largest = store.commit_log._largest
        self._flags = store.flags
        self._offsets = store.commit_log.offsets
        self._now_ms = store.clock.now_ms
        self._system_clock = type(store.clock) is SystemClock
        self._observer = store.observer
        self._store_host = store_host
        self._soon = soon
        self._sent = sent
        self._crc32 = crc32
        self._topics = {}
        self._end_turn = self.end_turn
        self._run_topic = ""
        self._direct = store.commit_log.files.writes_are_plain
        self._mapped = not store.config.sync_flush
        self._file_at = tandem_slot_at(CommitLog, b"_file")
        self._end_at = tandem_slot_at(CommitLog, b"_at")
        self._open_end_at = tandem_slot_at(CommitLog, b"_open_end")
        self._warm_from_at = tandem_slot_at(CommitLog, b"_warm_from")
        self._time_at = tandem_slot_at(CommitLog, b"last_store_timestamp")
        self._in_place_at = tandem_slot_at(CommitLog, b"_in_place")
        self._writable_at = tandem_slot_at(RunningFlags, b"writable")
        self._map_at = tandem_slot_at(MappedFile, b"map")
        self._start_at = tandem_slot_at(MappedFile, b"start")
        if not isinstance(self._log, CommitLog) or not isinstance(self._flags, RunningFlags):
            raise TypeError("the compiled core knows the slots of a CommitLog and of RunningFlags only")
        try:
            self._crc = cython.cast(Crc, cython.cast(cython.size_t, crc_address()))
        except ImportError:
            self._crc = cython.NULL
        self._has_avx = tandem_has_avx()

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
            topic.closed = -1
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
        file: object = cython.cast(object, tandem_slot(log, self._file_at))
        if file is None or not self._find_number(topic, plain, place):
            return 0
        at: int64_t = PyLong_AsLongLong(tandem_slot(log, self._end_at))
        total: int64_t = _FIXED + plain.born_host_size + PyBytes_GET_SIZE(self._store_host)
        total += plain.body_size + topic.field_size + 2 + plain.properties_size
        if total > self._largest or total + _BLANK > PyLong_AsLongLong(tandem_slot(log, self._open_end_at)) - at:
            return 0
        begun: cython.double = self._begin()
        place.physical_offset = PyLong_AsLongLong(tandem_slot(file, self._start_at)) + at
        place.size = total
        self._find_time(place)
        crc: cython.uint = self._body_crc(plain)
        record: cython.p_uchar
        if self._mapped:
            self._hold(file)
            record = cython.cast(cython.p_uchar, self._view.buf) + at
            self._write(record, topic, plain, place, crc)
            tandem_publish(record, cython.cast(cython.uint, total), _MAGIC)
        else:
            self._make_room(total)
            self._write(self._apart, topic, plain, place, crc)
            tandem_publish(self._apart, cython.cast(cython.uint, total), _MAGIC)
            if not self._put(file, at, total):
                return 0
        self._advance(topic, plain, place, at + total, 1)
        if at + total > PyLong_AsLongLong(tandem_slot(log, self._warm_from_at)):
            log._warm()
        self._count(topic, 1, total, begun)
        return 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def _advance(
        self,
        topic: PlainTopic,
        plain: cython.pointer(Plain),
        place: cython.pointer(Place),
        end: int64_t,
        count: cython.int,
    ) -> cython.int:
        """The log ends behind so many records that were written; `place`: of the first."""
        if place.store_timestamp != PyLong_AsLongLong(tandem_slot(self._log, self._time_at)):
            tandem_fill_slot_long(self._log, self._time_at, place.store_timestamp)
        tandem_fill_slot_long(self._log, self._end_at, end)
        PyDict_SetItem(self._offsets, topic.keys[plain.queue_id], place.queue_offset + count)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _find_number(self, topic: PlainTopic, plain: cython.pointer(Plain), place: cython.pointer(Place)) -> cython.int:
        """Find the next offset of a queue: 1; or 0 where it is not known, or no plain record may be appended now."""
        writable: cython.pointer(PyObject) = tandem_slot(self._flags, self._writable_at)
        if cython.cast(object, writable) is not True or plain.sys_flag & _TRANSACTION:
            return 0
        while len(topic.keys) <= plain.queue_id:
            topic.keys.append((topic.name, len(topic.keys)))
        known: cython.pointer(PyObject) = PyDict_GetItemWithError(self._offsets, topic.keys[plain.queue_id])
        if known == cython.NULL:
            return 0
        place.queue_offset = PyLong_AsLongLong(known)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _find_time(self, place: cython.pointer(Place)) -> cython.int:
        """Find the time of a record: never back, whatever the clock does (trap T21)."""
        before: int64_t = PyLong_AsLongLong(tandem_slot(self._log, self._time_at))
        place.store_timestamp = self.now_ms()
        if place.store_timestamp < before:
            place.store_timestamp = before
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def now_ms(self) -> int64_t:
        """Milliseconds since the Unix epoch, by the store's clock."""
        now: timespec
        if self._system_clock:
            clock_gettime(CLOCK_REALTIME, cython.address(now))
            return now.tv_sec * 1000 + now.tv_nsec // 1_000_000
        return self._now_ms()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def append_batch(
        self,
        topic: PlainTopic,
        plain: cython.pointer(Plain),
        batch: cython.pointer(Batch),
        most_body: int64_t,
        place: cython.pointer(Place),
    ) -> cython.int:
        """Append a batch: 1, and the place of all of it. 0: as `append`.

        `plain` has what is common to its messages. `batch` gets their number and their physical offsets, for which it
        has room for `most`.
        """
        file: object = cython.cast(object, tandem_slot(self._log, self._file_at))
        if file is None or self._crc == cython.NULL or not self._find_number(topic, plain, place):
            return 0
        fixed: int64_t = _FIXED + plain.born_host_size + PyBytes_GET_SIZE(self._store_host) + topic.field_size + 2
        total: int64_t = measured(batch, fixed, most_body)
        at: int64_t = PyLong_AsLongLong(tandem_slot(self._log, self._end_at))
        open_end: int64_t = PyLong_AsLongLong(tandem_slot(self._log, self._open_end_at))
        if total == 0 or total + _BLANK > open_end - at:
            return 0
        begun: cython.double = self._begin()
        place.physical_offset = PyLong_AsLongLong(tandem_slot(file, self._start_at)) + at
        place.size = total
        self._find_time(place)
        self._make_room(total)
        self._lay_out(topic, plain, batch, place[0])
        if not self._put(file, at, total):
            return 0
        self._advance(topic, plain, place, at + total, batch.count)
        self._count(topic, batch.count, total, begun)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _make_room(self, size: int64_t) -> cython.int:
        """Have room for records of so many bytes."""
        if size > self._apart_size:
            free(self._apart)
            self._apart_size = size if size > _LEAST_ROOM else _LEAST_ROOM
            self._apart = cython.cast(cython.p_uchar, malloc(self._apart_size))
            if self._apart == cython.NULL:
                self._apart_size = 0
                raise MemoryError
        return 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def _hold(self, file: object) -> cython.int:
        """Hold the mapping of a file until the turn ends: later a full file must be let go."""
        mapped: cython.pointer(PyObject) = tandem_slot(file, self._map_at)
        if mapped != self._viewed:  # another file; or this one was put back (`MappedFile.put_back_if_deleted`)
            self._let_go()
            PyObject_GetBuffer(cython.cast(object, mapped), cython.address(self._view), PyBUF_WRITABLE)
            self._viewed = mapped
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _let_go(self) -> cython.void:
        """Let go of the mapping."""
        if self._viewed != cython.NULL:
            self._viewed = cython.NULL
            PyBuffer_Release(cython.address(self._view))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _put(self, file: object, at: int64_t, size: int64_t) -> cython.int:
        """Write what was laid out to a position of a file: 1; or 0 where the disk refuses, and nothing is there."""
        if self._direct:
            if tandem_slot(self._log, self._in_place_at) != cython.cast(cython.pointer(PyObject), file):
                self._log._expect_reads_in_place(file)
            written: int64_t = tandem_pwrite(file.fd, self._apart, size, at)
            if written == size:
                return 1
            if written:
                self._log.take_back(file, at, written)
            return 0
        records: object = PyMemoryView_FromMemory(cython.cast(cython.p_char, self._apart), size, PyBUF_READ)
        try:
            self._log.write_apart(file, at, records)
        except NotWritable:
            return 0
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _lay_out(
        self,
        topic: PlainTopic,
        plain: cython.pointer(Plain),
        batch: cython.pointer(Batch),
        place: Place,
    ) -> cython.void:
        """Lay out the records of a measured batch. `place`: of all of it."""
        fixed: int64_t = _FIXED + plain.born_host_size + PyBytes_GET_SIZE(self._store_host) + topic.field_size + 2
        at: cython.p_const_uchar = batch.data
        to: cython.p_uchar = self._apart
        i: cython.int
        for i in range(batch.count):
            plain.flag = cython.cast(cython.int, tandem_get32(at + 12))
            plain.body = at + 20
            plain.body_size = tandem_get32(at + 16)
            at += 20 + plain.body_size
            plain.properties_size = at[0] << 8 | at[1]
            plain.properties = cython.cast(cython.p_uchar, at + 2)
            at += 2 + plain.properties_size
            place.size = fixed + plain.body_size + plain.properties_size
            crc: cython.uint = self._crc(0, plain.body, plain.body_size) & _CRC_MASK
            if self._has_avx:
                tandem_clear_upper_halves()
            self._write(to, topic, plain, cython.address(place), crc)
            tandem_publish(to, cython.cast(cython.uint, place.size), _MAGIC)
            batch.offsets[i] = place.physical_offset
            to += place.size
            place.physical_offset += place.size
            place.queue_offset += 1

    @cython.cfunc
    @cython.exceptval(0, check=True)
    def _body_crc(self, plain: cython.pointer(Plain)) -> cython.uint:
        """BODYCRC."""
        if not plain.body_size:
            return 0
        if self._crc != cython.NULL:
            crc: cython.uint = self._crc(0, plain.body, plain.body_size) & _CRC_MASK
            if self._has_avx:
                tandem_clear_upper_halves()
            return crc
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
    @cython.inline
    @cython.exceptval(check=False)
    def _begin(self) -> cython.double:
        """When an append begins; 0 of one that is not timed."""
        return 0.0 if self._appends & _TIMED_MASK else seconds_now()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _count(self, topic: PlainTopic, messages: int64_t, size: int64_t, begun: cython.double) -> cython.int:
        """Count records that were appended at once, and have those who follow the log told."""
        if begun:
            self._seconds += seconds_now() - begun
            self._timed += 1
        each: int64_t = size if messages == 1 else size // messages
        if self._run_count and (self._run_size != each or self._run_topic is not topic.name or each * messages != size):
            self._sent(self._run_topic, self._run_count, self._run_count * self._run_size)
            self._run_count = 0
        if each * messages == size:
            self._run_topic = topic.name
            self._run_size = each
            self._run_count += messages
        else:
            self._sent(topic.name, messages, size)
        self._appends += 1
        self._messages += messages
        self._bytes += size
        if not self._open:
            self._soon(self._end_turn)
            self._open = True
            self._store.grew()
        return 0

    def end_turn(self) -> None:
        """Tell of what was stored since the turn began."""
        appends, messages, size, seconds = self._appends, self._messages, self._bytes, self._seconds
        self._open = False
        self._let_go()
        timed: int64_t = self._timed
        self._appends = self._timed = self._messages = self._bytes = 0
        self._seconds = 0.0
        if appends > 1:
            self._store.grew()
        if self._run_count:
            self._sent(self._run_topic, self._run_count, self._run_count * self._run_size)
            self._run_count = 0
        if appends:
            self._observer.appended(seconds * appends / timed, messages, size, appends)
