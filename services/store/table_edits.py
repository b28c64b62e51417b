"""TableEdits: topics and groups are changed or deleted, as an operator's tool asks it of the broker.

Where a metadata service keeps the tables it is told, and the store's copy follows at once. A store on its own changes
its files in config/.
"""

from collections.abc import Callable
from typing import Any, Protocol

import grpc

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.serving.guard import MASTER_KEY
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.store.broker.local_table import LocalTable
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_table import WatchedTable
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.metasync_link import TELL_SECONDS
from tandemmq.store.table_messages import group_message, topic_message


class NotChanged(TandemError):
    """The metadata service cannot be reached, or refuses."""

    kind = Kind.AWAY


class TableEdits(Protocol):
    """What an operator changes. All of them raise NotChanged or TableNotSaved: then nothing was changed."""

    async def put_topic(self, topic: TopicConfig) -> None:
        """A topic is there, and like this, when this returns."""
        ...

    async def delete_topic(self, name: str) -> None:
        """... and not there any more; its messages stay until their files expire."""
        ...

    async def put_group(self, group: GroupConfig) -> None:
        """The same of a group."""
        ...

    async def delete_group(self, name: str, *, keep_offsets: bool) -> None:
        """The same of a group; its offsets go with it, or stay."""
        ...


class LocalEdits:
    """Of a store's own tables."""

    def __init__(self, topics: LocalTable[TopicConfig], groups: LocalTable[GroupConfig]) -> None:
        self._topics = topics
        self._groups = groups

    async def put_topic(self, topic: TopicConfig) -> None:
        """See TableEdits."""
        await self._topics.change([topic], [])

    async def delete_topic(self, name: str) -> None:
        """See TableEdits."""
        await self._topics.change([], [name])

    async def put_group(self, group: GroupConfig) -> None:
        """See TableEdits."""
        await self._groups.change([group], [])

    async def delete_group(self, name: str, *, keep_offsets: bool) -> None:
        """See TableEdits. Offsets are the ledger's: they stay."""
        await self._groups.change([], [name])


class MetasyncEdits:
    """Of the tables that a metadata service keeps."""

    def __init__(
        self, address: str, dialer: Dialer, topics: WatchedTable[TopicConfig], groups: WatchedTable[GroupConfig]
    ) -> None:
        self._address = address
        self._dialer = dialer
        self._topics = topics
        self._groups = groups

    async def put_topic(self, topic: TopicConfig) -> None:
        """See TableEdits."""
        request = pb.PutTopicsRequest(topics=[topic_message(topic)])
        await self._told(lambda stub: stub.PutTopics(request, timeout=TELL_SECONDS))
        self._topics.accepted([topic])

    async def delete_topic(self, name: str) -> None:
        """See TableEdits."""
        request = pb.DeleteTopicsRequest(names=[name])
        await self._told(lambda stub: stub.DeleteTopics(request, timeout=TELL_SECONDS))
        self._topics.change([], [name], self._topics.version)

    async def put_group(self, group: GroupConfig) -> None:
        """See TableEdits."""
        request = pb.PutGroupsRequest(groups=[group_message(group)])
        await self._told(lambda stub: stub.PutGroups(request, timeout=TELL_SECONDS))
        self._groups.accepted([group])

    async def delete_group(self, name: str, *, keep_offsets: bool) -> None:
        """See TableEdits."""
        request = pb.DeleteGroupsRequest(names=[name], keep_offsets=keep_offsets)
        await self._told(lambda stub: stub.DeleteGroups(request, timeout=TELL_SECONDS))
        self._groups.change([], [name], self._groups.version)

    async def _told(self, call: Callable[[Any], Any]) -> None:
        """Tell metasync, or the master's, where this one is a slave's and names it. Raises NotChanged."""
        address, master = self._address, await self._ask(self._address, call)
        if master and master != address:
            address, master = master, await self._ask(master, call)
        if master is not None:
            raise NotChanged(f"metasync at {address} is not the master's.", remedy="Make the change on the master.")

    async def _ask(self, address: str, call: Callable[[Any], Any]) -> str | None:
        """None: it is done. Else whom it names, who may make changes; empty: it knows nobody. Raises NotChanged."""
        try:
            async with self._dialer.channel(address) as opened:
                stub: Any = metadata_pb2_grpc.MetadataStub(opened)
                await call(stub)
        except grpc.aio.AioRpcError as error:
            for key, value in error.trailing_metadata() or ():
                if key == MASTER_KEY:
                    return str(value)
            raise NotChanged(f"metasync at {address}: {error.details()}") from error
        return None
