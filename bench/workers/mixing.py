"""Everything at once, beside the sends that are measured: paced, so that it is the same whatever the store can."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import grpc

from bench import payloads
from tandemmq.common.net.remoting.client import RemotingClient
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.delivery.v1 import delivery_pb2, operations_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.store.v1 import message_pb2, store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub

TOPIC = "mixed"
BATCH = 1_024
"""Messages that come at a time, for dispatch to catch up with."""
_TABLES = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
)
_SECONDS = 60.0
_NOBODY_WANTS = "colour = 'green' AND weight > 5"

Work = Callable[[], Awaitable[object]]


class Mix:
    """The works, each with its pace."""

    def __init__(self, channel: grpc.aio.Channel, classic: RemotingClient) -> None:
        self._store = StoreStub(channel)  # type: ignore[no-untyped-call]
        self._delivery = DeliveryStub(channel)  # type: ignore[no-untyped-call]
        self._operations = OperationsStub(channel)  # type: ignore[no-untyped-call]
        self._classic = classic
        self._numbers = count()
        self._offset = 0
        batch = message_pb2.EncodedBatch(topic=TOPIC, queue_id=0, messages=payloads.encoded_batch(BATCH), count=BATCH)
        self._batch = store_pb2.SendBatchRequest(batches=[batch])
        self.works: list[tuple[float, Work]] = [
            (0.05, self.batch),
            (0.01, self.receive),
            (0.05, self.receive_filtered),
            (0.05, self.pull_filtered),
            (0.5, self.groups),
            (0.5, self.table),
            (2.0, self.topic),
        ]
        """Seconds from one to the next, and what is done."""

    async def batch(self) -> None:
        """Many messages at a time."""
        await self._store.SendBatch(self._batch, timeout=_SECONDS)

    async def receive(self) -> None:
        """Receive and acknowledge."""
        wanted = delivery_pb2.ReceiveRequest(group="mixed-all", topic=TOPIC, max_messages=32, invisible_ms=60_000)
        found = await self._delivery.Receive(wanted, timeout=_SECONDS)
        if found.messages:
            handles = [one.handle for one in found.messages]
            dealt = delivery_pb2.AcknowledgeRequest(group="mixed-all", topic=TOPIC, handles=handles)
            await self._delivery.Acknowledge(dealt, timeout=_SECONDS)

    async def receive_filtered(self) -> None:
        """Receive with a condition that no message meets: each is looked into."""
        condition = delivery_pb2.Filter(kind=delivery_pb2.SQL92, expression=_NOBODY_WANTS)
        wanted = delivery_pb2.ReceiveRequest(
            group="mixed-some", topic=TOPIC, max_messages=32, invisible_ms=60_000, filter=condition
        )
        await self._delivery.Receive(wanted, timeout=_SECONDS)

    async def pull_filtered(self) -> None:
        """The same as a pull of a classic client."""
        fields = {
            "consumerGroup": "mixed-pull", "topic": TOPIC, "queueId": "0", "queueOffset": str(self._offset),
            "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "1",
            "subscription": _NOBODY_WANTS, "expressionType": "SQL92",
        }  # fmt: skip
        answer = await self._classic.ask(Command(RequestCode.PULL_MESSAGE, fields=fields), _SECONDS)
        self._offset = int((answer.fields or {}).get("nextBeginOffset", self._offset))

    async def groups(self) -> None:
        """How all groups stand."""
        await self._operations.ViewGroups(operations_pb2.ViewGroupsRequest(), timeout=_SECONDS)

    async def table(self) -> None:
        """A whole table."""
        code = _TABLES[next(self._numbers) % len(_TABLES)]
        await self._classic.ask(Command(code), _SECONDS)

    async def topic(self) -> None:
        """A topic more, so that tables are made anew."""
        fields = {"topic": f"mixed-{next(self._numbers)}", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
        await self._classic.ask(Command(RequestCode.UPDATE_AND_CREATE_TOPIC, fields=fields), _SECONDS)


async def _again_and_again(seconds: float, work: Work) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await work()
        due = max(due + seconds, loop.time())
        await asyncio.sleep(due - loop.time())


async def _mix(target: str, classic: str) -> None:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    client = RemotingClient(classic)
    async with grpc.aio.insecure_channel(target, options=options) as channel, asyncio.TaskGroup() as works:
        mix = Mix(channel, client)
        for _, work in mix.works:  # each once before it counts: the store loads what it has not yet
            await work()
        print("ready", flush=True)
        for seconds, work in mix.works:
            works.create_task(_again_and_again(seconds, work))


def mix(target: str, classic: str) -> None:
    """Go on until killed."""
    asyncio.run(_mix(target, classic))
