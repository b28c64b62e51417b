"""Attending: a client keeps a stream open to each store of its broker, on which it is asked."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

import grpc

from tandemmq.client.cluster import PAUSES, Cluster
from tandemmq.client.errors import ClientError, from_rpc
from tandemmq.common.calling.backoff import Backoff
from tandemmq.delivery.v1 import delivery_pb2

log = logging.getLogger("tandemmq.client")

HEARTBEAT_SECONDS = 20.0

Asked = Callable[[delivery_pb2.AttendResponse], Awaitable[None]]
"""Answers what a broker asks; a ClientError is logged, and the broker asks again."""


def new_client_id() -> str:
    """A name that no other client has."""
    return f"{socket.gethostname()[:100]}@{os.getpid()}#{secrets.token_hex(4)}"


def heartbeat_of(client_id: str, memberships: Sequence[delivery_pb2.Membership]) -> delivery_pb2.HeartbeatRequest:
    """What a client says of itself."""
    try:
        installed = version("tandemmq")
    except PackageNotFoundError:
        installed = ""
    return delivery_pb2.HeartbeatRequest(
        client_id=client_id, memberships=memberships, language="PYTHON", version=installed
    )


class Attending:
    """One client's streams; a slave asks nothing, until it is master. Close it before the cluster."""

    def __init__(self, cluster: Cluster, memberships: Sequence[delivery_pb2.Membership], asked: Asked) -> None:
        self.client_id = new_client_id()
        self._cluster = cluster
        self._heartbeat = heartbeat_of(self.client_id, memberships)
        self._asked = asked
        self._answers: set[asyncio.Task[None]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._attend_all()
        cluster.on_led = self._attend_all

    async def close(self) -> None:
        """End the streams; the broker asks others from now on."""
        self._cluster.on_led = None
        tasks = (*self._tasks.values(), *self._answers)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _attend_all(self) -> None:
        """Also a master of which only a slave has told."""
        for address in self._cluster.addresses:
            task = self._tasks.get(address)
            if task is None or task.done():
                self._tasks[address] = asyncio.create_task(self._attend(address), name=f"attend {address}")

    async def _attend(self, address: str) -> None:
        backoff = Backoff(*PAUSES)
        while address in self._cluster.addresses:
            try:
                call = self._cluster.stubs(address).delivery.Attend(self._heartbeats())
                async for command in call:
                    backoff.reset()
                    self._take(command)
            except grpc.aio.AioRpcError as error:
                log.debug("%s: attending: %s", address, from_rpc(error))
            except Exception:
                log.exception("%s: attending failed, and begins anew", address)
            await self._cluster.timers.sleep(backoff.pause())

    async def _heartbeats(self) -> AsyncIterator[delivery_pb2.HeartbeatRequest]:
        while True:
            yield self._heartbeat
            await self._cluster.timers.sleep(HEARTBEAT_SECONDS)

    def _take(self, command: delivery_pb2.AttendResponse) -> None:
        task = asyncio.create_task(self._answer(command))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, command: delivery_pb2.AttendResponse) -> None:
        try:
            await self._asked(command)
        except ClientError as error:
            log.warning("what the broker asked could not be answered: %s", error)
        except Exception:
            log.exception("what the broker asked could not be answered")
