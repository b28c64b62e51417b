"""Writes frames into a slave's socket, which never blocks: from the page cache by sendfile, or through TLS."""

import os
import socket
import ssl
from collections import deque
from typing import NamedTuple, Protocol

from tandemmq.replicator.frames import encode_header
from tandemmq.replicator.master.log_files import OpenLogFile, Unreadable
from tandemmq.replicator.master.transfer import Frame

_SMALL = 16 << 10
"""Up to here a body is read and sent together with its header; copying it costs less than a second system call."""


class _Piece(NamedTuple):
    frame: Frame
    file: OpenLogFile | None


class FrameSender(Protocol):
    """Frames on their way into one socket. One thread at a time may be inside."""

    written: int
    """Bytes that the socket took so far."""

    @property
    def pending(self) -> bool:
        """Whether something is still to be written."""

    def add(self, frame: Frame, file: OpenLogFile | None) -> None:
        """Append a frame; heartbeats have no file."""

    def push(self) -> bool:
        """Write until all is written (True) or the socket takes no more. Raises OSError, Unreadable."""

    def prepare(self) -> None:
        """The part that may have to wait for a disk; runs on a thread, `push` follows. Raises OSError, Unreadable."""


class PlainSender:
    """Header by send, body by sendfile; small frames in one piece."""

    def __init__(self, connection: socket.socket) -> None:
        self.written = 0
        self._socket = connection
        self._pieces: deque[_Piece] = deque()
        self._head = b""
        """Bytes to be sent before anything of `_file`."""
        self._file: OpenLogFile | None = None
        self._position = self._left = 0

    @property
    def pending(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._pieces or self._head or self._left)

    def add(self, frame: Frame, file: OpenLogFile | None) -> None:
        """Append a frame; heartbeats have no file."""
        self._pieces.append(_Piece(frame, file))

    def push(self) -> bool:
        """Write until all is written (True) or the socket takes no more. Raises OSError, Unreadable."""
        try:
            while True:
                if not self._head and not self._left:
                    if not self._pieces:
                        return True
                    self._begin(self._pieces.popleft())
                if self._head:
                    more = socket.MSG_MORE if self._left else 0
                    sent = self._socket.send(self._head, more)
                    self.written += sent
                    self._head = self._head[sent:]
                    if self._head:
                        continue
                if self._left:
                    self._send_file()
        except BlockingIOError:
            return False

    def prepare(self) -> None:
        """Sends what the socket takes: sendfile waits for the disk, and this is the thread on which it may."""
        self.push()

    def _begin(self, piece: _Piece) -> None:
        frame, file = piece
        self._head = encode_header(frame.offset, frame.size)
        if file is None:
            return
        if frame.size <= _SMALL:
            self._head += file.read(frame.offset, frame.size)
            return
        self._file, self._position, self._left = file, frame.offset - file.base, frame.size

    def _send_file(self) -> None:
        assert self._file is not None
        sent = os.sendfile(self._socket.fileno(), self._file.descriptor, self._position, self._left)
        if not sent:
            raise Unreadable(f"{self._file.path} ends at byte {self._position}")
        self.written += sent
        self._position += sent
        self._left -= sent
        if not self._left:
            self._file = None


class TlsSender:
    """Reads the frames and sends them through TLS, in its own process's memory."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self.written = 0
        self._socket = connection
        self._pieces: deque[_Piece] = deque()
        self._loaded: deque[memoryview] = deque()

    @property
    def pending(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._pieces or self._loaded)

    def add(self, frame: Frame, file: OpenLogFile | None) -> None:
        """Append a frame; heartbeats have no file."""
        self._pieces.append(_Piece(frame, file))

    def prepare(self) -> None:
        """Reads everything that was added."""
        while self._pieces:
            frame, file = self._pieces.popleft()
            body = b"" if file is None else file.read(frame.offset, frame.size)
            self._loaded.append(memoryview(encode_header(frame.offset, frame.size) + body))

    def push(self) -> bool:
        """Write until all is written (True) or the socket takes no more. Raises OSError, Unreadable."""
        self.prepare()
        while self._loaded:
            try:
                sent = self._socket.send(self._loaded[0])
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return False
            self.written += sent
            if sent == len(self._loaded[0]):
                self._loaded.popleft()
            else:
                self._loaded[0] = self._loaded[0][sent:]
        return True
