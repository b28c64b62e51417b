"""MasterTables: the tables of the master, as a slave asks for them; here those of another metadata service."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import grpc

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.timers import LoopTimers, Timers, time_limit
from tandemmq.metadata.transfers import BrokenTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import MasterAway
from tandemmq.metasync.offset_tables import PendingCommit, topic_and_group
from tandemmq.metasync.tables import Content, TableKind
from tandemmq.metasync.translate import content_of, table_pages, version_of

Check = Callable[[Mapping[TableKind, DataVersion]], None]
"""Looks at a master's versions; raises StaleMaster where it is not to be followed."""


class MasterTables(Protocol):
    """What one cycle asks. All of it raises AioRpcError or a TandemError: there is no answer, or no good one."""

    async def versions(self) -> Mapping[TableKind, DataVersion]:
        """Of the tables; one that is not named has no version that tells whether it has changed."""
        ...

    async def whole(self, kind: TableKind) -> Content:
        """A whole table."""
        ...

    async def commit(self, commits: Sequence[PendingCommit]) -> int:
        """Hand over commits; how many of them, from the first on, the master has answered."""
        ...

    async def request_modes(self, check: "Check") -> str | None:
        """The document that says which groups pop which topics; None: such a master keeps none.

        It raises what `check` does with the master's versions, where these are cheap to have.
        """
        ...


class MasterLink(Protocol):
    """The way to a master."""

    @property
    def address(self) -> str | None:
        """`host:port`; None where nobody has said it."""
        ...

    def opened(self) -> AbstractAsyncContextManager[MasterTables]:
        """The tables, for one cycle. Raises MasterAway."""
        ...


class ServiceLink:
    """The way to the metadata service of the master."""

    def __init__(self, address: str | None, timeout: float, dialer: Dialer, timers: Timers | None = None) -> None:
        """`timeout`: seconds the master has for an answer, or for the next page of a table."""
        self.address = address
        self._timeout = timeout
        self._dialer = dialer
        self._timers: Timers = timers or LoopTimers()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["ServiceTables"]:
        """See MasterLink."""
        if self.address is None:
            raise MasterAway("metasyncMasterAddress is not set: nothing can be copied.")
        async with self._dialer.channel(self.address) as channel:
            yield ServiceTables(self.address, metadata_pb2_grpc.MetadataStub(channel), self._timeout, self._timers)


class ServiceTables:
    """See MasterTables."""

    def __init__(self, address: str, stub: Any, timeout: float, timers: Timers) -> None:
        self._address = address
        self._timers = timers
        self._stub = stub
        self._timeout = timeout

    async def versions(self) -> Mapping[TableKind, DataVersion]:
        """See MasterTables; names all. Raises MasterAway: it is no master."""
        status = await self._stub.Status(pb.StatusRequest(), timeout=self._timeout)
        if status.role == pb.SLAVE:
            raise MasterAway(f"{self._address} is a slave itself.", remedy="Set metasyncMasterAddress.")
        versions = {TableKind(one.table): version_of(one.version) for one in status.tables if one.table in _KINDS}
        if len(versions) != len(TableKind):
            raise MasterAway(f"{self._address} does not name all of its tables.")
        return versions

    async def whole(self, kind: TableKind) -> Content:
        """See MasterTables. Raises BrokenTransfer, MasterAway, AioRpcError."""
        call = self._stub.GetTable(pb.GetTableRequest(table=int(kind)))  # type: ignore[arg-type]
        pages = table_pages(kind)
        try:
            while True:
                async with time_limit(self._timers, self._timeout):
                    page = await call.read()
                if page is grpc.aio.EOF:
                    raise BrokenTransfer(f"The master's {kind.file_name} ended before it was complete.")
                transfer = pages.take(page)
                if transfer is not None:
                    return content_of(transfer)
        except TimeoutError:
            raise MasterAway(f"The master sent no page of {kind.file_name} for {self._timeout:g} s.") from None
        finally:
            call.cancel()

    async def commit(self, commits: Sequence[PendingCommit]) -> int:
        """See MasterTables."""
        request = pb.CommitOffsetsRequest(commits=[_commit(one) for one in commits])
        return len((await self._stub.CommitOffsets(request, timeout=self._timeout)).results)

    async def request_modes(self, check: Check) -> str | None:
        """See MasterTables. Raises MasterAway: it is no master, too, and would ask another in its turn, or us."""
        try:
            check(await self.versions())
            answer = await self._stub.GetRequestModes(pb.GetRequestModesRequest(), timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:  # an older release
                return None
            raise MasterAway(f"{self._address} answers {error.code().name}: {error.details()}") from None
        return answer.document_json if answer.HasField("document_json") else None


_KINDS = frozenset(int(kind) for kind in TableKind)


def _commit(one: PendingCommit) -> pb.OffsetCommit:
    topic, group = topic_and_group(one.key)
    return pb.OffsetCommit(topic=topic, group=group, queue_id=one.queue, offset=one.offset, resets=one.resets)
