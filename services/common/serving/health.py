"""grpc.health.v1: one status per service, and one (the empty name) for the whole server.

A service is NOT_SERVING from the moment it is known until it says that it serves, and again from the moment the
server begins to stop: load balancers and `grpc_health_probe` see a store that still recovers as alive, not as ready.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME, aio

from tandemmq.common.timers import LoopTimers, Timers

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVING = health_pb2.HealthCheckResponse.SERVING

__all__ = ["NOT_SERVING", "SERVICE_NAME", "SERVING", "HealthBoard"]


_LAST_WORD_SECONDS = 0.02
"""How long watchers have to receive the last change before their streams end."""


class _Servicer(aio.HealthServicer):
    """The library's servicer, but its watches end when the server stops: else each would wait out the whole grace.

    And it lists what it knows, and says what it does not know, which the library's does not.
    """

    def __init__(self, timers: Timers) -> None:
        super().__init__()
        self._timers = timers
        self._watches: set[asyncio.Future[None]] = set()
        self._names: set[str] = set()

    async def set(self, service: str, status: int) -> None:
        """Takes the status of a service."""
        self._names.add(service)
        await super().set(service, status)

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> Any:  # noqa: N802
        """The status of one service; the empty name is the whole server's."""
        if request.service not in self._names:
            known = ", ".join(sorted(filter(None, self._names)))
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no such service is here; there are {known}")
        return await super().Check(request, context)

    async def List(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """The status of every service."""
        listed = cast(Any, health_pb2).HealthListResponse()  # newer than the types that there are of it
        for name in self._names:
            listed.statuses[name].CopyFrom(await super().Check(health_pb2.HealthCheckRequest(service=name), context))
        return listed

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:  # noqa: N802
        """Sends the status and every change of it until the client or the server has enough."""
        watch = asyncio.ensure_future(super().Watch(request, context))
        self._watches.add(watch)
        try:
            await asyncio.wait([watch])
        finally:
            self._watches.discard(watch)
            watch.cancel()

    async def end_watches(self) -> None:
        """Lets every watcher see the last change, then ends its stream."""
        if self._watches:
            await self._timers.sleep(_LAST_WORD_SECONDS)
        for watch in list(self._watches):
            watch.cancel()


class HealthBoard:
    """Says which services of a server serve."""

    def __init__(self, timers: Timers | None = None) -> None:
        self._servicer = _Servicer(timers or LoopTimers())
        self._services: list[str] = [""]

    def add_to(self, server: grpc.aio.Server) -> None:
        """Registers the health service itself."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def announce(self, services: Iterable[str]) -> None:
        """Makes services known, NOT_SERVING yet."""
        self._services.extend(services)
        await self._set_all(NOT_SERVING)

    async def serving(self) -> None:
        """Every announced service serves from now on."""
        await self._set_all(SERVING)

    async def not_serving(self, service: str) -> None:
        """One service stopped serving, say because its disk failed; the others go on."""
        await self._servicer.set(service, NOT_SERVING)

    async def stopping(self) -> None:
        """No service will ever serve again."""
        await self._servicer.enter_graceful_shutdown()
        await self._servicer.end_watches()

    async def _set_all(self, status: int) -> None:
        for service in self._services:
            await self._servicer.set(service, status)
