"""SendStream: what was appended is answered, also when the store stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tandemmq.common.grpc_transport import CallFailure
from tandemmq.common.grpc_transport.rpc.status import Status
from tandemmq.store.broker.errors import StoreStopping
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.format.host import Host
from tandemmq.store.fronts.native.send_stream import SendStream, StoredBatch
from tandemmq.store.v1 import store_pb2

HOST = Host("10.0.0.1", 10911)
NOT_THE_CORES = store_pb2.SendBatchRequest(no_wait=True).SerializeToString()


class SlowDisk:
    """Appends at once, by the core or the other way, and tells that it is safe when it is let."""

    def __init__(self, *, core: bool, waits: bool = True) -> None:
        self.waits = waits
        self.safe = asyncio.Event()
        self.at_the_topic = asyncio.Event()
        self.topic_made = asyncio.Event()
        self.appended = 0
        self._core = core

    def store_at_once(self, request: bytes, peer: Host) -> StoredBatch | None:
        if not self._core:
            return None
        if request == NOT_THE_CORES:
            return None
        self.appended += 1
        return StoredBatch(store_pb2.SendBatchResponse().SerializeToString(), self.appended, True)

    async def status(self, stored: StoredBatch) -> PutStatus:
        await self.safe.wait()
        return PutStatus.PUT_OK

    async def append(self, request: store_pb2.SendBatchRequest, peer: Host) -> Any:
        self.appended += 1
        number = self.appended
        self.at_the_topic.set()
        await self.topic_made.wait()
        return number

    async def receipts(self, sent: Any) -> store_pb2.SendBatchResponse:
        await self.safe.wait()
        return store_pb2.SendBatchResponse()


async def _requests(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b""
    await asyncio.Event().wait()


async def _answers(stream: SendStream) -> int:
    """How many answers come before the stream says that the store stops."""
    found = 0
    try:
        async for _ in stream.run(_requests(5), HOST):
            found += 1
    except StoreStopping:
        return found
    raise AssertionError("the stream has ended by itself")


async def test_what_was_appended_is_answered_when_the_store_stops() -> None:
    """Also what the window had no room for."""
    disk = SlowDisk(core=True)
    stream = SendStream(disk, 1, lambda _number, _value: True)
    answers = asyncio.create_task(_answers(stream))
    for _ in range(20):
        await asyncio.sleep(0)
    assert 1 < disk.appended < 5, "the window is full"
    stream.stop()
    disk.safe.set()
    assert await answers == disk.appended


async def test_a_request_of_which_a_part_may_be_stored_is_answered_when_the_store_stops() -> None:
    disk = SlowDisk(core=False)
    stream = SendStream(disk, 4, lambda _number, _value: True)
    answers = asyncio.create_task(_answers(stream))
    await disk.at_the_topic.wait()
    stream.stop()
    await asyncio.sleep(0)
    disk.topic_made.set()
    disk.safe.set()
    assert await answers == disk.appended == 1


def _sequence(answer: bytes | None) -> int:
    assert answer is not None
    read = store_pb2.SendStreamResponse.FromString(answer)
    assert read.HasField("receipts")
    return read.sequence


async def test_a_request_for_which_nothing_waits_is_answered_at_once() -> None:
    disk = SlowDisk(core=True, waits=False)
    stream = SendStream(disk, 1, lambda _number, _value: True)
    assert [_sequence(stream.answer_at_once(b"", HOST)) for _ in range(3)] == [0, 1, 2]
    assert disk.appended == 3
    stream.stop()
    assert stream.answer_at_once(b"", HOST) is None
    assert disk.appended == 3


async def test_where_sends_wait_no_request_is_answered_at_once() -> None:
    disk = SlowDisk(core=True)
    assert SendStream(disk, 1, lambda _number, _value: True).answer_at_once(b"", HOST) is None
    assert not disk.appended


async def test_no_request_is_stored_before_an_earlier_one_or_answered_before_it() -> None:
    """The first is not the core's, and is read and appended while others come."""
    disk = SlowDisk(core=True, waits=False)
    disk.safe.set()
    stream = SendStream(disk, 4, lambda _number, _value: False)

    async def requests() -> AsyncIterator[bytes]:
        yield NOT_THE_CORES
        await asyncio.Event().wait()

    answers = stream.run(requests(), HOST)
    first = asyncio.create_task(anext(answers))
    await disk.at_the_topic.wait()
    assert stream.answer_at_once(b"", HOST) is None, "the first is being appended"
    disk.topic_made.set()
    assert (await first).sequence == 0
    assert stream.answer_at_once(b"", HOST) is None, "the first is not sent"
    second = asyncio.create_task(anext(answers))
    await asyncio.sleep(0)
    assert _sequence(stream.answer_at_once(b"", HOST)) == 1
    assert disk.appended == 2
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second
    await answers.aclose()


async def test_after_a_request_that_cannot_be_read_none_is_answered_at_once() -> None:
    """Its sequence would be that of the one before it, which nobody has stored."""
    disk = SlowDisk(core=True, waits=False)
    stream = SendStream(disk, 4, lambda _number, _value: True)
    came: list[bytes | None] = []

    def unreadable() -> bytes:
        raise CallFailure(Status.INTERNAL, "it cannot be decompressed")

    async def requests() -> AsyncIterator[bytes]:
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(lambda: came.append(stream.answer_at_once(b"", HOST)))
        yield unreadable()

    answers = stream.run(requests(), HOST)
    with suppress(CallFailure):
        await anext(answers)
    await asyncio.sleep(0)
    assert came == [None]
    assert not disk.appended
