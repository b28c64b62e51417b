"""The commit log: every message of every topic, one record after the other (RocketMQ: ``CommitLog``).

All methods run on one thread, which therefore is the append lock. Records go to the file by a system call where
each group is synced (`write_by_calls`): then the kernel need not zero pages before, nor write
whole folios that a mapping has made dirty. A process killed in between may leave half a record, which recovery cuts.
Else a record is copied into the mapping with its first eight bytes last, so that a process killed while copying leaves
zeros where the record would begin.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tandemmq.store.format import sysflag
from tandemmq.store.format.batch import BatchWriter, MalformedBatch
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import BLANK_SIZE, Message, encode_blank, encode_record
from tandemmq.store.format.record_fields import PREFIX_SIZE
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import is_zero
from tandemmq.store.log.errors import RecordTooLarge, disk_error
from tandemmq.store.log.queues.queue_offsets import NextOffsets, QueueKey
from tandemmq.store.log.replica.replica_mark import ReplicaMark
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue

# Room beside the body for everything else in a record (RocketMQ: MessageExtEncoder).
ENCODER_HEAD_ROOM = 65_536
_SMALL = 512
"""Replica bytes up to this size are copied into the mapping; a system call costs more."""
_ZEROS = 1 << 20
LEAST_APART, LARGEST_APART = 24 << 10, 512 << 10
"""See `is_laid_out_apart`."""
_RESERVE, _RESERVE_PART = 64 << 20, 16
"""Bytes at the end of the newest file that only reserved appends may take while there is no next file. Of files below
1 GiB it is a part."""
_UNNUMBERED = (sysflag.TRANSACTION_PREPARED, sysflag.TRANSACTION_ROLLBACK)


class Appended(NamedTuple):
    """Where a record went. ``end_offset`` is the log offset after it (or after its whole batch)."""

    physical_offset: int
    size: int
    queue_offset: int
    store_timestamp: int
    end_offset: int


_appended = tuple.__new__
"""Makes an `Appended` of its fields in half the time of a call with names."""


class EncodedBatch(NamedTuple):
    """Messages of one queue as a producer laid them out (`tandemmq.store.format.batch`), with what they share."""

    topic: str
    queue_id: int
    blob: bytes
    born_host: Host
    store_host: Host
    born_timestamp: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    measured: tuple[int, int] | None = None
    """Number and total size of its records, where they were measured before: by ``BatchWriter.measure``, for the bytes
    of the topic, the hosts' widths and the log's own ``append_crc``. It is believed: a wrong one would tear the log."""


@dataclass(slots=True)
class AppendedBatch:
    """Where a batch went: ``count`` records with consecutive queue offsets, the first at ``physical_offsets[0]``."""

    physical_offsets: Sequence[int]
    count: int
    first_queue_offset: int
    store_timestamp: int
    end_offset: int


class CommitLog:
    """Appends records to the newest file and reads them back by physical offset."""

    # What the compiled appender reads and writes with each record has slots (`log.compiled`).
    __slots__ = (
        "__dict__", "__weakref__", "_at", "_file", "_in_place", "_open_end", "_warm_from", "last_store_timestamp",
    )  # fmt: skip

    def __init__(
        self, config: StoreConfig, files: MappedFileQueue, offsets: NextOffsets, clock: Clock, writer: BatchWriter
    ) -> None:
        """Stand at the end of nothing; recovery calls `resume_at` before the first append."""
        self.files = files
        self.offsets = offsets
        self.writer = writer
        self._clock = clock
        self.append_crc = config.enabled_append_prop_crc
        """Whether each record ends with the whole-record checksum."""
        self._file_size = config.mapped_file_size_commit_log
        self._largest = min(config.max_message_size + ENCODER_HEAD_ROOM, self._file_size - BLANK_SIZE)
        self._prefault = config.prefault_bytes
        self._file: MappedFile | None = None
        self._at = 0
        self._reserve = min(_RESERVE, self._file_size // _RESERVE_PART)
        self._open_end = 0  # position in the newest file up to which all may append
        self._unchecked = 0  # bytes of a master's log after the append position
        self._warm_until = 0
        self._warm_from = 0  # append position at which the next stretch is made resident
        self._apart = bytearray()
        """Where batches are laid out that one system call writes; made for the first of them."""
        self._by_calls = False
        self._in_place: MappedFile | None = None  # the file whose page faults do not read ahead
        self.last_store_timestamp = 0
        self.spoilt: Callable[[OSError], None] = lambda _error: None
        """Called where something is left after the last record that cannot be removed."""
        if config.sync_flush:
            self.write_by_calls()

    # -- where the log begins and ends ------------------------------------------------------------------------------

    @property
    def min_offset(self) -> int:
        """Offset of the oldest byte that is kept."""
        return self.files.files[0].start if self.files.files else 0

    @property
    def max_offset(self) -> int:
        """Offset after the last record."""
        return 0 if self._file is None else self._file.start + self._at

    @property
    def written_offset(self) -> int:
        """Offset after the last byte; on a slave the last ones, after `max_offset`, are no whole records yet."""
        return self.max_offset + self._unchecked

    def resume_at(self, end: int, last_store_timestamp: int) -> None:
        """Take up appending at ``end``, which recovery has found to be the end of the log."""
        self.last_store_timestamp = last_store_timestamp
        self._file = self.files.last
        if self._file is None:
            self._file = self.files.roll(end - end % self._file_size)
        self._at = end - self._file.start
        self._open_end = self._file.size - self._reserve
        self._warm_until = self._at
        if self._by_calls:
            self._expect_reads_in_place(self._file)
        self._warm()
        self.files.make_ahead(self._prefault)

    def write_by_calls(self) -> None:
        """From here on all that is appended is written by system calls, and no page is made resident ahead."""
        self._by_calls = True
        self._prefault = 0
        self._warm_from = self._file_size
        if self._file is not None:
            self._expect_reads_in_place(self._file)

    # -- append -----------------------------------------------------------------------------------------------------

    def append(self, message: Message, *, reserved: bool = False) -> Appended:
        """Append one message and give it the next offset of its queue.

        `reserved`: into the reserve too, which is at the end of the newest file while there is no room for a next one.

        Raises:
            RecordTooLarge: it could never fit; nothing was written.
            DiskFull: the next file cannot be made; nothing was written.
            DiskFailed: it cannot be written.
            QueueNotReady: see `NextOffsets`.
        """
        numbered = message.sys_flag & sysflag.TRANSACTION_MASK not in _UNNUMBERED
        key = (message.topic, message.queue_id)
        queue_offset = self.offsets.get(key) if numbered else 0
        if queue_offset is None:
            queue_offset = self.offsets.first(key)
        now = self._clock.now_ms()
        timestamp = now if now > self.last_store_timestamp else self.last_store_timestamp  # never back (trap T21)
        file, at = self._file, self._at
        if file is None:
            file, at = self._room_for(0, reserved=reserved)
        data = encode_record(message, queue_offset, file.start + at, timestamp, self.append_crc)
        size = len(data)
        if size + BLANK_SIZE > (file.size if reserved else self._open_end) - at:
            if size > self._largest:
                raise self._too_large("A record", size)
            file, at = self._room_for(size, reserved=reserved)
            data = encode_record(message, queue_offset, file.start + at, timestamp, self.append_crc)
        elif size > self._largest:
            raise self._too_large("A record", size)
        end = at + size
        if self._by_calls:
            self.write_apart(file, at, data)
        else:
            mapping = file.map
            mapping[at + PREFIX_SIZE : end] = data[PREFIX_SIZE:]
            mapping[at : at + PREFIX_SIZE] = data[:PREFIX_SIZE]
        self.last_store_timestamp = timestamp
        self._at = end
        if numbered:
            self.offsets[key] = queue_offset + 1
        if end > self._warm_from:
            self._warm()
        return _appended(Appended, (file.start + at, size, queue_offset, timestamp, file.start + end))

    def append_messages(self, messages: Sequence[Message]) -> list[Appended]:
        """Append messages of one or several topics, in order.

        They lie one after the other in one file where a file can hold them all. Nothing is written if any of them is
        too large.

        Raises: RecordTooLarge, DiskFull, DiskFailed, QueueNotReady: as `append`; for all of them or none, but for a
        disk that fills between files.
        """
        file, at = self._room_for(0)
        timestamp = self._timestamp()
        records, numbers, following = self._encode_all(messages, file.start + at, timestamp)
        total = sum(map(len, records))
        if total + BLANK_SIZE > self._open_end - at:
            if total + BLANK_SIZE > self._file_size:
                placed = [self.append(message) for message in messages]
                return [appended._replace(end_offset=self.max_offset) for appended in placed]
            file, at = self._room_for(total)
            records, numbers, following = self._encode_all(messages, file.start + at, timestamp)
        end = file.start + at + total
        appended = []
        mapping, start, by_calls = file.map, file.start, self._by_calls
        if by_calls:
            self.write_apart(file, at, b"".join(records))
        for record, number in zip(records, numbers, strict=True):
            behind = at + len(record)
            if not by_calls:
                mapping[at + PREFIX_SIZE : behind] = record[PREFIX_SIZE:]
                mapping[at : at + PREFIX_SIZE] = record[:PREFIX_SIZE]
            appended.append(_appended(Appended, (start + at, behind - at, number, timestamp, end)))
            at = behind
        self._at = at
        self.offsets.update(following)
        if at > self._warm_from:
            self._warm()
        return appended

    def _encode_all(
        self, messages: Sequence[Message], physical_offset: int, timestamp: int
    ) -> tuple[list[bytes], list[int], dict[QueueKey, int]]:
        """The records of messages that will lie in a row from an offset on, their queue offsets, and the next.

        Nothing is written. Raises RecordTooLarge, QueueNotReady.
        """
        records: list[bytes] = []
        numbers: list[int] = []
        following: dict[QueueKey, int] = {}
        for message in messages:
            key = (message.topic, message.queue_id)
            number = following.get(key)
            if number is None:
                number = following[key] = self._next_queue_offset(key)
            if message.sys_flag & sysflag.TRANSACTION_MASK in _UNNUMBERED:
                number = 0
            else:
                following[key] = number + 1
            record = encode_record(message, number, physical_offset, timestamp, self.append_crc)
            if len(record) > self._largest:
                raise self._too_large("A record", len(record))
            physical_offset += len(record)
            records.append(record)
            numbers.append(number)
        return records, numbers, following

    def append_batch(self, batch: EncodedBatch) -> AppendedBatch:
        """Append a batch that the producer has laid out; all of it lies in one file.

        Raises:
            MalformedBatch: the blob is not what it should be; nothing was written.
            RecordTooLarge, DiskFull, DiskFailed, QueueNotReady: as `append`.
        """
        topic = batch.topic.encode()
        flags = sysflag.with_hosts(batch.sys_flag, born_v6=batch.born_host.is_v6, store_v6=batch.store_host.is_v6)
        measured = batch.measured or self.writer.measure(batch.blob, len(topic), flags, self.append_crc)
        count, total = measured
        if not count:
            raise MalformedBatch("The batch holds no message.", 0)
        if total + BLANK_SIZE > self._file_size:
            raise self._too_large("A batch", total)
        key = (batch.topic, batch.queue_id)
        queue_offset = self._next_queue_offset(key)
        file, at = self._room_for(total)
        timestamp = self._timestamp()
        apart = self.is_laid_out_apart(total)
        if apart and len(self._apart) < total:
            self._apart = bytearray(max(total, LARGEST_APART))
        physical_offsets = self.writer.write(
            batch.blob,
            self._apart if apart else file.map,
            0 if apart else at,
            topic=topic,
            queue_id=batch.queue_id,
            queue_offset=queue_offset,
            physical_offset=file.start + at,
            sys_flag=flags,
            born_timestamp=batch.born_timestamp,
            born_host=batch.born_host.packed,
            store_timestamp=timestamp,
            store_host=batch.store_host.packed,
            reconsume_times=batch.reconsume_times,
            append_crc=self.append_crc,
            measured=measured,
        )
        if apart:
            self.write_apart(file, at, memoryview(self._apart)[:total])
        self._at = at + total
        self.offsets[key] = queue_offset + count
        if self._at > self._warm_from and not apart:
            self._warm()
        return AppendedBatch(physical_offsets, count, queue_offset, timestamp, file.start + at + total)

    def is_laid_out_apart(self, size: int) -> bool:
        """Whether records of so many bytes are laid out apart and written by one system call.

        Their pages need not be made resident, and zeroed, before. Where others are made resident ahead, that costs more
        than it saves if there is little to write.
        """
        return self._by_calls or LEAST_APART <= size <= LARGEST_APART

    def write_apart(self, file: MappedFile, at: int, records: bytes | memoryview) -> None:
        """Write what was laid out apart after the last record. Raises DiskFailed, DiskFull: it is not there."""
        self._expect_reads_in_place(file)
        try:
            file.write(at, records)
        except OSError as error:
            self.take_back(file, at, len(records))
            raise disk_error(error, f"Cannot write {len(records):,} bytes of messages to {file.path}") from error

    def take_back(self, file: MappedFile, at: int, size: int) -> None:
        """Leave nothing of records that could not be written: a later start would find the first of them.

        Not through the mapping, where a page that the disk does not give ends the process (SIGBUS). If it cannot be
        done, nothing more is to be appended: what is left would count after a record that ends where it begins.
        """
        try:
            file.write(at, bytes(size))
        except OSError as error:
            if not _is_blank(file, at, size):
                self.spoilt(error)

    def append_bytes(self, data: memoryview, mark: ReplicaMark) -> int:
        """Append bytes of a master's log, up to the end of the file; they lie after `max_offset` until `accept`.

        Gives how many; 0 where a full file still has some that are not accepted. Pages that are filled by
        `pwrite` need not be made resident, and zeroed, before: a slave that catches up takes little more than half the
        CPU.

        Raises:
            DiskFull: the next file cannot be made. OSError: the disk refused; what `mark` says is half written.
        """
        file = self._file
        if file is None or self._at == file.size:
            file = self._next_file(prefault=0)
        at = self._at + self._unchecked
        piece = data[: file.size - at]
        if not piece:
            return 0
        end = at + len(piece)
        mark.begin(file.start + self._at, file.start + end)
        if len(piece) < _SMALL:
            file.map[at:end] = piece
        else:
            self._expect_reads_in_place(file)
            file.write(at, piece)
        self._unchecked = end - self._at
        return len(piece)

    def _expect_reads_in_place(self, file: MappedFile) -> None:
        """Have a file that is written by calls read where it is read only; else dispatch makes the pages ahead."""
        if self._in_place is not file:
            file.expect_reads_in_place(True)
            self._in_place = file

    def _let_go_of_full_file(self) -> None:
        """Have it read ahead again; and kept here, its blocks would not be freed when it expires."""
        if self._in_place is not None:
            self._in_place.expect_reads_in_place(False)
            self._in_place = None

    @property
    def unchecked(self) -> tuple[MappedFile, int, int]:
        """The newest file, and the positions in it between which lies what was appended and is not accepted."""
        assert self._file is not None
        return self._file, self._at, self._at + self._unchecked

    def accept(self, end: int, mark: ReplicaMark) -> None:
        """The bytes up to ``end``, a position in the newest file, are whole, right records: they belong to the log."""
        assert self._file is not None
        self._unchecked -= end - self._at
        self._at = end
        self._warm_until = self._warm_from = max(self._warm_until, end)
        mark.done()
        if self._unchecked:
            mark.begin(self._file.start + end, self._file.start + end + self._unchecked)

    def drop_unchecked(self, mark: ReplicaMark) -> int:
        """Zero what is not accepted. Gives the bytes."""
        file, size = self._file, self._unchecked
        if size and file is not None:
            for done in range(0, size, _ZEROS):
                at, length = self._at + done, min(_ZEROS, size - done)
                file.map[at : at + length] = bytes(length)
            self._unchecked = 0
            mark.done()
        return size

    def start_at(self, offset: int) -> None:
        """Begin an empty log at ``offset``, the start of a file: the master has nothing before it. Raises DiskFull."""
        assert self.max_offset == self.min_offset
        assert offset % self._file_size == 0
        self._let_go_of_full_file()
        self.files.start_anew(offset)
        self._file = None
        self.resume_at(offset, self.last_store_timestamp)

    def _next_queue_offset(self, key: QueueKey) -> int:
        offset = self.offsets.get(key)
        return self.offsets.first(key) if offset is None else offset

    def _timestamp(self) -> int:
        """Wall-clock time that never goes back, whatever the clock does (trap T21)."""
        now = self._clock.now_ms()
        if now < self.last_store_timestamp:
            return self.last_store_timestamp
        self.last_store_timestamp = now
        return now

    def _warm(self) -> None:
        """Have the next stretch of the file made resident before the append position gets there."""
        self._warm_until = max(self._warm_until, self._at)  # what was written by calls is resident
        if self._file is not None and self._prefault and self._warm_until < self._file.size:
            self.files.populate(self._file, self._warm_until, self._prefault)
            self._warm_until += self._prefault
            # A whole stretch early: a busy store writes one in 10 ms, and the thread may wait 5 ms for the interpreter.
            # An append that comes first can spend 20 ms in one page fault (Linux 6.18, ext4: a folio of megabytes).
            self._warm_from = self._warm_until - self._prefault
        else:
            self._warm_from = self._file_size

    # -- files ------------------------------------------------------------------------------------------------------

    def _room_for(self, size: int, *, reserved: bool = False) -> tuple[MappedFile, int]:
        """The file and position for ``size`` more bytes and the blank that must still fit after them.

        Rolls if need be. Raises DiskFull.
        """
        file, at = self._file, self._at
        if file is not None and size + BLANK_SIZE <= file.size - at:
            if not reserved and size + BLANK_SIZE > self._open_end - at:
                self.files.ensure_ahead()
                self._open_end = file.size
            return file, at
        fresh = self._next_file()  # first of all, since a full disk must leave the log as it was
        if file is not None and file.size - at >= BLANK_SIZE:
            file.map[at : at + BLANK_SIZE] = encode_blank(file.size - at)
        return fresh, 0

    def _next_file(self, prefault: int | None = None) -> MappedFile:
        """Go on in the file after the newest one. Raises DiskFull."""
        fresh = self.files.roll(0 if self._file is None else self._file.end)
        self._let_go_of_full_file()
        self._file, self._at = fresh, 0
        self._open_end = fresh.size - self._reserve
        self._warm_until = min(self._prefault, fresh.size)
        self._warm_from = self._file_size if self._by_calls else 0
        if self._by_calls:
            self._expect_reads_in_place(fresh)
        self.files.make_ahead(self._prefault if prefault is None else prefault)
        return fresh

    def _too_large(self, what: str, size: int) -> RecordTooLarge:
        return RecordTooLarge(
            f"{what} of {size:,} bytes does not fit: the limit is {self._largest:,} bytes.",
            remedy="Send a smaller message, or raise maxMessageSize and mappedFileSizeCommitLog.",
        )


def _is_blank(file: MappedFile, at: int, size: int) -> bool:
    """Whether nothing but zeros lies there; False where it cannot be read."""
    try:
        return is_zero(os.pread(file.fd, size, at))
    except OSError:
        return False
