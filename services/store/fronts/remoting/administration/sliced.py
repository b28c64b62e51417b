"""Bodies of long tables: they are made in slices, so that others have the event loop in between."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tandemmq.common.slices import Slices, joined
from tandemmq.common.timers import Timers
from tandemmq.common.wire.remoting.java_objects import dumps, pieces
from tandemmq.store.log.event import Event

Document = Mapping[str, Any]


async def sliced(document: Document, slices: Slices) -> bytes:
    """As `java_objects.dumps`; the document may be long, its entries are not."""
    return await joined(pieces(document), slices)


class _Written:
    """A document as bytes, with the checksum of them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.checksum = 0

    @classmethod
    async def of(cls, document: Document, slices: Slices) -> "_Written":
        written = cls()
        for piece in pieces(document):
            written._parts.append(piece)
            written.checksum = zlib.crc32(piece, written.checksum)
            await slices.pause()
        return written

    def whole(self, first: Document) -> bytes:
        """The body, with the members of `first` before the others."""
        return b"".join((dumps(first)[:-1], b",", self._parts[0][1:], *self._parts[1:]))


class VersionedTable:
    """A table whose version is its content's: a checksum is the counter. What is made is kept until that changes."""

    def __init__(
        self, timers: Timers, document: Callable[[Slices], Awaitable[Document]], changed: Event | None = None
    ) -> None:
        """`document` reads the table. `changed`: there is another one than before; None: it is never kept."""
        self._timers = timers
        self._document = document
        self._keeps = changed is not None
        self._kept: _Written | None = None
        self._making = asyncio.Lock()
        if changed is not None:
            changed.listen(self._drop)
        self._changes = 0

    def _drop(self) -> None:
        self._kept = None
        self._changes += 1

    async def body(self, epoch: int, started_ms: int) -> bytes:
        """The body; those who ask at the same time wait for one making of it."""
        written = self._kept
        if written is None:
            async with self._making:
                written = self._kept or await self._make()
        version = {"counter": written.checksum, "stateVersion": epoch, "timestamp": started_ms}
        return written.whole({"dataVersion": version})

    async def _make(self) -> _Written:
        changes, slices = self._changes, Slices(self._timers)
        written = await _Written.of(await self._document(slices), slices)
        if self._keeps and changes == self._changes:
            self._kept = written
        return written
