"""Damage of the log, told to the replicator and mended with what it brings: `tandemmq.store.v1.LogRepair`."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.log.errors import RepairRefused
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.v1 import log_repair_pb2, log_repair_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]

_MOST_RECORDS = 10_000


class LogRepairServicer(log_repair_pb2_grpc.LogRepairServicer):
    """What the calls mean is written in the contract, log_repair.proto."""

    def __init__(self) -> None:
        """Every call is refused with StoreStarting until `attach`."""
        self._store: MessageStore | None = None

    def attach(self, store: MessageStore) -> None:
        """Answer from a recovered store from now on."""
        self._store = store

    @property
    def store(self) -> MessageStore:
        """The store. Raises StoreStarting."""
        if self._store is None:
            raise StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
        return self._store

    async def GetDamage(
        self, request: log_repair_pb2.GetDamageRequest, context: Context
    ) -> log_repair_pb2.GetDamageResponse:
        """What is damaged."""
        return log_repair_pb2.GetDamageResponse(stretches=map(_stretch, self.store.damage))

    async def Examine(self, request: log_repair_pb2.ExamineRequest, context: Context) -> log_repair_pb2.ExamineResponse:
        """Look at a stretch again."""
        if not 0 <= request.begin <= request.end:
            raise RepairRefused(f"{request.begin:,}-{request.end:,} is no stretch of a log.")
        most = min(max(request.max_records, 0), _MOST_RECORDS)
        healing = self.store.healing
        found = await healing.examine(request.begin, request.end, seek=request.seek, most=most, note=request.note)
        damage = found.damage
        response = log_repair_pb2.ExamineResponse(begin=found.begin, good_until=found.good_until)
        if damage is not None:
            response.problem = f"{damage.kind}: {damage.reason}"
            response.bad_until = damage.end if damage.kind == "rot" else 0
        for row, checksum in found.records:
            response.records.add(
                offset=row.position,
                size=row.size,
                topic=row.topic,
                queue_id=row.queue_id,
                queue_offset=row.queue_offset,
                checksum=checksum,
            )
        return response

    async def Repair(
        self, request_iterator: AsyncIterator[log_repair_pb2.RepairBytes], context: Context
    ) -> log_repair_pb2.RepairResponse:
        """Mend a stretch."""
        first = await anext(aiter(request_iterator), None)
        if first is None:
            raise RepairRefused("No bytes came.")
        healed = await self.store.healing.heal(
            first.begin, first.end, first.source or "a peer", _bytes(first, request_iterator)
        )
        return log_repair_pb2.RepairResponse(records=healed.records, replaced_bytes=healed.replaced_bytes)


async def _bytes(
    first: log_repair_pb2.RepairBytes, rest: AsyncIterator[log_repair_pb2.RepairBytes]
) -> AsyncIterator[bytes]:
    if first.data:
        yield first.data
    async for message in rest:
        yield message.data


def _stretch(damage: DamagedRange) -> log_repair_pb2.DamagedStretch:
    return log_repair_pb2.DamagedStretch(begin=damage.begin, end=damage.end, kind=damage.kind, reason=damage.reason)
