"""How many functions of how many files a call goes through: docs/ARCHITECTURE.md is held to what it tells of that."""

import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import compiled_core, core_problem, reading_core, short_way
from tandemmq.store.fronts.native.delivery_servicer import DeliveryServicer
from tandemmq.store.fronts.native.direct_send import DirectSend
from tandemmq.store.fronts.native.store_servicer import StoreServicer
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import CoreChoice, StoreSettings
from tandemmq.store.v1 import message_pb2, store_pb2
from tests.unit.delivery.delivery_kit import DeliveringStore, delivering
from tests.unit.fronts.direct_caller import DirectCaller
from tests.unit.fronts.test_one_step import CONTEXT

SERVICES = Path(__file__).resolve().parents[3] / "services"
CALLS = 3
"""The first one loads, opens and remembers; the last one is counted."""


def send() -> store_pb2.SendRequest:
    return store_pb2.SendRequest(
        message=message_pb2.Message(topic="orders", body=b"x" * 100, tag="t", keys=["k"], queue_id=1)
    )


@dataclass
class Walk:
    """Functions of ours that were called, but for the transport's, generated ones and what is nested in others."""

    until: str = ""
    """The function that ends it."""
    functions: set[tuple[str, str]] = field(default_factory=set)

    def __enter__(self) -> "Walk":
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename).resolve()
        if event == "call" and path.is_relative_to(SERVICES) and not code.co_name.startswith("<"):
            name = str(path.relative_to(SERVICES))
            if "_pb2" not in name and "grpc_transport" not in name:
                self.functions.add((name, code.co_qualname))
                if code.co_name == self.until:
                    sys.setprofile(None)

    @property
    def told(self) -> tuple[int, int]:
        return len(self.functions), len({name for name, _ in self.functions})


def told_in_document(row: str) -> tuple[int, int]:
    text = (SERVICES.parent / "docs" / "ARCHITECTURE.md").read_text()
    found = re.search(rf"^\| {re.escape(row)} \|.*\| (\d+) of (\d+)[^|]* \|$", text, re.MULTILINE)
    assert found is not None, row
    return int(found[1]), int(found[2])


async def walked(store: DeliveringStore, call: Callable[[int], Awaitable[Any]], until: str = "") -> tuple[int, int]:
    for number in range(CALLS - 1):
        await call(number)
    await store.store._dispatcher.drain()  # else the call finds a turn of dispatch on its way
    with Walk(until) as walk:
        await call(CALLS - 1)
    return walk.told


async def by_python(store: DeliveringStore) -> tuple[int, int]:
    servicer = store_servicer(store)
    return await walked(store, lambda _: cast(Awaitable[Any], servicer.Send(send(), CONTEXT)))


async def by_core(store: DeliveringStore) -> tuple[int, int]:
    core = compiled_core(store.broker, store.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").send
    way = short_way(DirectSend(store.broker, StoreMetrics("cluster", "node"), core))

    async def call(_: int) -> None:
        assert way(send().SerializeToString(), DirectCaller()) is not None

    return await walked(store, call)


async def pull(store: DeliveringStore) -> tuple[int, int]:
    servicer = store_servicer(store)
    store.store.use_core(reading_core(CoreChoice.ALWAYS))
    await store.send("orders", 1, 1, 100)
    request = store_pb2.PullRequest(topic="orders", queue_id=1, max_messages=1)

    async def call(_: int) -> None:
        assert (await servicer.Pull(request, CONTEXT)).count == 1

    return await walked(store, call)


async def commit(store: DeliveringStore) -> tuple[int, int]:
    await store.send("orders", CALLS, 1)
    servicer = DeliveryServicer(StoreSettings().service_limits(), StoreMetrics("cluster", "node"))
    servicer.attach(cast(Any, store.delivery), store.delivery.sessions, store.delivery.groups)

    async def call(number: int) -> None:
        one = delivery_pb2.OffsetCommit(topic="orders", queue_id=1, offset=number + 1)
        request = delivery_pb2.CommitOffsetsRequest(group="workers", commits=[one])
        assert (await servicer.CommitOffsets(request, CONTEXT)).outcomes == [delivery_pb2.Outcome()]

    return await walked(store, call, until="encode_record")


def store_servicer(store: DeliveringStore) -> StoreServicer:
    servicer = StoreServicer(StoreSettings().service_limits(), StoreMetrics("cluster", "node"))
    servicer.attach(store.broker)
    return servicer


@pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")
@pytest.mark.parametrize(
    ("row", "way"),
    [
        ("Send, the Python way", by_python),
        ("Send, by the compiled core", by_core),
        ("Pull", pull),
        ("commit at the store, to the record in the log", commit),
    ],
)
async def test_the_document_tells_how_long_they_are(
    tmp_path: Path, row: str, way: Callable[[DeliveringStore], Awaitable[tuple[int, int]]]
) -> None:
    """Within a tenth, so that a change elsewhere is not held up by a function more."""
    async with delivering(tmp_path) as store:
        await store.broker.topics.add([TopicConfig("orders", 4, 4)])
        found = await way(store)
    for have, told in zip(found, told_in_document(row), strict=True):
        assert abs(have - told) <= max(2, told // 10), f"{row}: {found}, see docs/ARCHITECTURE.md"
