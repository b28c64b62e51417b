"""A socket with TLS that one thread may read while another writes to it. An SSLSocket is not made for that."""

import socket
import ssl
import threading
from typing import Self

_PIECE = 1 << 16


class EncryptedSocket:
    """What clients in tests use of a socket. Whoever waits for bytes holds no lock."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, server_hostname: str | None = None) -> None:
        """On a connection that was made; it is this one's from here on. Raises ssl.SSLError, and closes it then."""
        self._plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._lock = threading.Lock()
        try:
            while not self._shaken_hands():
                self._receive()
        except BaseException:
            plain.close()
            raise

    def _shaken_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._flush()
        return True

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._plain.sendall(self._outgoing.read())

    def _receive(self) -> None:
        data = self._plain.recv(_PIECE)
        with self._lock:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def recv(self, size: int) -> bytes:
        """See socket.recv."""
        while True:
            with self._lock:
                try:
                    return self._tls.read(size)
                except ssl.SSLWantReadError:
                    self._flush()
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return b""
            self._receive()

    def sendall(self, data: bytes) -> None:
        """See socket.sendall."""
        with self._lock:
            self._tls.write(data)
            self._flush()

    def shutdown(self, how: int) -> None:
        """See socket.shutdown; who reads is told."""
        self._plain.shutdown(how)

    def close(self) -> None:
        """See socket.close."""
        self._plain.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
