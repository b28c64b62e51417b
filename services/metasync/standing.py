"""What this node is: the master, a slave, or a master that was replaced. The store knows; metasync asks it.

As long as the store does not answer, what it said last counts, across restarts too; and if it never said anything,
brokerRole of the settings. A promotion or demotion of the store is therefore one of its tables too, within
rolePollInterval.
"""

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.log_output import get_log
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.common.timers import LoopTimers, Timers
from tandemmq.metasync.documents import Document
from tandemmq.metasync.errors import DocumentNotSaved, NotTheMaster
from tandemmq.store.v1 import replica_log_pb2, replica_log_pb2_grpc

log = get_log(__name__)

ASK_SECONDS = 1.0
"""How long the store may take to say its role."""
LONGEST_PAUSE = 4.0
"""Seconds between questions while it does not answer."""


class NodeRole(StrEnum):
    """What a node is; the two kinds of master are the same here."""

    MASTER = "MASTER"
    SLAVE = "SLAVE"
    FENCED = "FENCED"


class Standing(NamedTuple):
    """A role, in which mastership, and who says so."""

    role: NodeRole
    epoch: int = 0
    source: str = "settings"

    def check_master(self, master_address: str | None, leads_to: str = "") -> None:
        """Whether changes may be made here. Raises NotTheMaster, with `leads_to`: the other node's metasync."""
        if self.role is NodeRole.SLAVE:
            where = f"of {master_address}" if master_address else "(its metasyncMasterAddress is not set)"
            raise NotTheMaster(f"This node is a slave {where}.", leads_to)
        if self.role is NodeRole.FENCED:
            raise NotTheMaster("A newer master has replaced this node.", leads_to)


def configured(role: BrokerRole) -> Standing:
    """What the settings say."""
    return Standing(NodeRole.SLAVE if role is BrokerRole.SLAVE else NodeRole.MASTER)


_CHECKSUM = "crc32"


class StandingKeeper:
    """The node's standing: as the store says, as it said last, or as the settings say."""

    def __init__(
        self,
        root: Path,
        role: BrokerRole,
        store_address: str | None,
        dialer: Dialer,
        timers: Timers | None = None,
    ) -> None:
        """Raises UnreadableDocument: the note of the last standing cannot be read."""
        self._dialer = dialer
        self._timers: Timers = timers or LoopTimers()
        self._note = Document(root / "config" / "tandem.role.json")
        self._configured = role
        self._address = store_address
        self._channel: grpc.aio.Channel | None = None
        self.store = FollowedPeer("store", store_address or "")
        self.now = configured(role)
        found = self._note.load(_check) or {}
        if found.get("configured") == role.value and store_address is not None:
            self.now = Standing(NodeRole(found["role"]), found["epoch"], "store, before")

    async def ask(self) -> Standing:
        """Ask the store once; gives what counts now."""
        if self._address is None:
            return self.now
        if self._channel is None:
            self._channel = self._dialer.channel(self._address)
        stub: Any = replica_log_pb2_grpc.ReplicaLogStub(self._channel)
        try:
            state = await stub.GetRole(replica_log_pb2.GetRoleRequest(), timeout=ASK_SECONDS)
        except grpc.aio.AioRpcError as error:
            if self.now.source == "store":
                self.now = self.now._replace(source="store, before")
            self.store.gone(error.code().name)
            return self.now
        self.store.came()
        fresh = _standing(state.identity)
        if fresh is None:
            return self.now
        if fresh != self.now:
            log.info("role", role=fresh.role.value, epoch=fresh.epoch, before=self.now.role.value)
            await self._remember(fresh)
            self.now = fresh
        return self.now

    async def follow(self, seconds: float, changed: Callable[[Standing], Awaitable[None]]) -> None:
        """Ask again and again, less often while the store is away.

        `changed` hears every new standing, and hears it again while it raises DocumentNotSaved.
        """
        told, pause = self.now, seconds
        backoff = Backoff(seconds, max(seconds, LONGEST_PAUSE))
        while True:
            await self._timers.sleep(pause)
            try:
                fresh = await self.ask()
                if self.store.problem:
                    pause = backoff.pause()
                else:
                    backoff.reset()
                    pause = seconds
                if fresh != told:
                    await changed(fresh)
                    told = fresh
            except DocumentNotSaved as error:
                log.error("tables not ready for the new role", reason=error.message)
            except Exception as error:  # noqa: BLE001 - it is tried again
                log.failure("the role could not be followed", error)

    async def close(self) -> None:
        """Ask no more."""
        if self._channel is not None:
            await self._channel.close()

    async def _remember(self, standing: Standing) -> None:
        note = {"configured": self._configured.value, "role": standing.role.value, "epoch": standing.epoch}
        try:
            await asyncio.to_thread(self._note.save, {**note, _CHECKSUM: _checksum(note)})
        except DocumentNotSaved as error:
            log.error("role not saved", reason=error.message)


def _standing(identity: replica_log_pb2.LogIdentity) -> Standing | None:
    """What the store's identity means; None if it says no role."""
    if identity.role == replica_log_pb2.SLAVE:  # whatever it has promised
        return Standing(NodeRole.SLAVE, identity.epoch, "store")
    if identity.fenced_by_epoch:
        return Standing(NodeRole.FENCED, identity.epoch, "store")
    if identity.role in (replica_log_pb2.ASYNC_MASTER, replica_log_pb2.SYNC_MASTER):
        return Standing(NodeRole.MASTER, identity.epoch, "store")
    return None


def _check(note: dict[str, Any]) -> None:
    NodeRole(note.get("role", ""))
    if type(note.get("epoch")) is not int or not 0 <= note["epoch"] < 1 << 62:
        raise ValueError("the epoch is no integer of 0 or more")
    is_old = note.keys() == {"configured", "role", "epoch"}
    if not is_old and note.get(_CHECKSUM) != _checksum(note):
        raise ValueError("the checksum does not fit")


def _checksum(note: dict[str, Any]) -> int:
    """Of all the rest. Notes had none before; those have the three entries and nothing else."""
    return zlib.crc32(json.dumps({key: note[key] for key in sorted(note) if key != _CHECKSUM}).encode())
