"""Taking over rebuilt consume queues and index: `tandemmq.store.v1.DerivedFiles`, on the internal port."""

from typing import Any

import grpc

from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.v1 import derived_files_pb2, derived_files_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class DerivedFilesServicer(derived_files_pb2_grpc.DerivedFilesServicer):
    """What the call means is written in the contract, derived_files.proto."""

    def __init__(self) -> None:
        """Every call is refused with StoreStarting until `attach`."""
        self._store: MessageStore | None = None

    def attach(self, store: MessageStore) -> None:
        """Answer from a recovered store from now on."""
        self._store = store

    async def Adopt(self, request: derived_files_pb2.AdoptRequest, context: Context) -> derived_files_pb2.AdoptResponse:
        """Take over what lies in a staging directory."""
        if self._store is None:
            raise StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
        adopted = await self._store.adoption.adopt(request.staging)
        return derived_files_pb2.AdoptResponse(
            messages=adopted.messages,
            tail_messages=adopted.tail_messages,
            queues=adopted.queues,
            index_entries=adopted.index_entries,
            position=adopted.position,
            seconds=adopted.seconds,
        )
