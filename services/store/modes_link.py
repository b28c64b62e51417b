"""ModesLink: while the store is a slave, its request modes are its master's, of which it asks its metadata service."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import Timers
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.store.fronts.remoting.request_modes import RequestModes
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.metasync_link import PAUSES

log = get_log(__name__)

_PERIOD_SECONDS = 5.0
_CALL_SECONDS = 10.0
"""Our metadata service asks the master's in its turn."""
_PATIENCE = 3
"""Attempts that fail before the log hears of it."""


class StrangeModes(TandemError):
    """What the master says makes no sense; the modes stay as they were."""

    kind = Kind.AWAY


class ModesLink:
    """Asks again and again. Make it, and use it, inside the event loop."""

    def __init__(
        self, address: str, dialer: Dialer, modes: RequestModes, mastership: Mastership, timers: Timers
    ) -> None:
        """`address`: of this node's metadata service."""
        self._address = address
        self._dialer = dialer
        self._modes = modes
        self._mastership = mastership
        self._timers = timers
        self._peer = FollowedPeer("metadata service with request modes", address, patience=_PATIENCE)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the background."""
        own = self._mastership
        self._modes.follows = lambda: own.is_slave or own.fenced_by > 0
        self._task = asyncio.create_task(self._follow(), name="request modes")

    async def stop(self) -> None:
        """End."""
        await end_tasks(self._timers, self._task)

    async def _follow(self) -> None:
        attempts = self._dialer.attempts(self._address, lambda one: self._ask(metadata_pb2_grpc.MetadataStub(one)))
        await self._peer.follow(attempts, Backoff(*PAUSES), self._timers.sleep)

    async def _ask(self, stub: Any) -> AsyncGenerator[None, None]:
        """Yields after each answer. Raises AioRpcError, StrangeModes, TableNotSaved."""
        while True:
            if self._mastership.is_slave:
                document = await self._document(stub)
                try:
                    if document is not None and await self._modes.take(document):
                        log.info("request modes are the master's")
                except (ValueError, RecursionError) as error:
                    raise StrangeModes(f"the master's request modes make no sense: {error}") from None
                self._peer.came()
                yield
            await self._timers.sleep(_PERIOD_SECONDS)

    async def _document(self, stub: Any) -> str | None:
        """The master's; None: it keeps none, or our metadata service is of an older release."""
        try:
            answer = await stub.GetRequestModes(pb.GetRequestModesRequest(), timeout=_CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise
        return answer.document_json if answer.HasField("document_json") else None
