"""A slave without sockets: a log in memory that takes what `FollowingConnection` says, from a stream cut at will."""

from collections.abc import Iterable, Iterator

from tandemmq.replicator.frames import encode_header
from tandemmq.replicator.slave.following import NOT_SENT, FollowingConnection, FollowRules, MasterLog
from tandemmq.replicator.slave.overlap import LocalLog

FILE_SIZE = 1 << 20


def local_log(max_offset: int = 0, *, min_offset: int = 0, file_size: int = FILE_SIZE, epoch: int = 0) -> LocalLog:
    return LocalLog(min_offset, max_offset, max_offset, file_size, epoch)


def master_log(max_offset: int, *, min_offset: int = 0, file_size: int = FILE_SIZE, epoch: int = 0) -> MasterLog:
    return MasterLog(min_offset, max_offset, file_size, epoch)


def frame(offset: int, body: bytes = b"") -> bytes:
    return encode_header(offset, len(body)) + body


def frames(log: bytes, begin: int, size: int, file_size: int = FILE_SIZE) -> Iterator[bytes]:
    """The log from `begin` on in frames of at most `size` bytes that cross no file, as a master sends it."""
    while begin < len(log):
        end = min(begin + size, len(log), begin - begin % file_size + file_size)
        yield frame(begin, log[begin:end])
        begin = end


class MemorySlave:
    """A log that begins at offset 0 and grows by what arrives; every turn is acknowledged at once."""

    def __init__(
        self,
        log: bytes = b"",
        *,
        compare: int = 64 << 10,
        master: MasterLog | None = None,
        rules: FollowRules | None = None,
        file_size: int = FILE_SIZE,
    ) -> None:
        self.log = bytearray(log)
        begin = len(log) and max(1, len(log) - compare)
        self.following = FollowingConnection(
            local_log(len(log), file_size=file_size), bytes(log[begin:]), master, rules
        )
        self.now = 100.0
        self.reports = [self.following.first_report(self.now)]
        self._position = 0

    def take(self, piece: bytes) -> None:
        """One read, and the store's ack."""
        bodies = self.following.received(memoryview(piece), self._position, self.now)
        for offset, position, size in bodies:
            assert offset == len(self.log), "bytes must continue the log"
            at = position - self._position
            self.log += bytes(size) if position == NOT_SENT else piece[at : at + size]
        self._position += len(piece)
        self.following.stored(len(self.log), len(self.log))
        report = self.following.report(self.now)
        if report is not None:
            self.reports.append(report)

    def take_all(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.take(piece)


def cut(stream: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """The stream in pieces that end at the given places; an empty piece is never given."""
    begin = 0
    for end in [*sorted(cuts), len(stream)]:
        if begin < end <= len(stream):
            yield stream[begin:end]
            begin = end
