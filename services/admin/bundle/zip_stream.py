"""A zip file that is sent while it is made."""

import io
import zipfile


class ZipStream:
    """Takes whole files, gives the bytes of the zip so far."""

    def __init__(self, folder: str) -> None:
        """`folder`: all files are in it."""
        self._folder = folder
        self._out = _Outgoing()
        self._zip = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, data: bytes) -> bytes:
        """Add a file; gives what can be sent."""
        self._zip.writestr(f"{self._folder}/{name}", data)
        return self._out.take()

    def close(self) -> bytes:
        """The end of the zip."""
        self._zip.close()
        return self._out.take()


class _Outgoing(io.RawIOBase):
    """What is written and not sent yet. It cannot seek, so that sizes come after each file's bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data, self._parts = b"".join(self._parts), []
        return data
