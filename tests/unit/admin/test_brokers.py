"""Who is a broker's master: known at once, unless the one that may be it is only slow."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from tandemmq.admin.cluster import brokers
from tandemmq.admin.cluster.brokers import Brokers
from tandemmq.admin.cluster.nodes import Nodes
from tandemmq.admin.errors import NotPossible, ServiceAway
from tandemmq.common.timers import LoopTimers
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2

PATIENCE = 30.0


class Master:
    """A node whose two services say that it is alpha's master, when the test lets them."""

    name = "one"

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.away = False
        self.replicator = self.metasync = self
        self.describe = {"store": self}

    def Describe(self, _request: object) -> Awaitable[object]:
        return self._status(False)

    def Status(self, request: object) -> Awaitable[object]:
        return self._status(isinstance(request, replication_pb2.StatusRequest))

    async def _status(self, replicator: bool) -> object:
        await self.answers.wait()
        if self.away:
            raise ServiceAway("store", self.name, "127.0.0.1:1", "no answer in time")
        if not replicator:
            return metadata_pb2.StatusResponse(broker_name="alpha", role=metadata_pb2.MASTER)
        identity = replica_log_pb2.LogIdentity(broker_name="alpha", role=replica_log_pb2.ASYNC_MASTER)
        return replication_pb2.StatusResponse(identity=identity)

    async def ask(self, _service: str, call: Awaitable[Any]) -> Any:
        return await call


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question is asked anew, and known nodes are waited for no time at all."""
    monkeypatch.setattr(brokers, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(brokers, "PATIENCE_SECONDS", 0.0)


def of(*nodes: Master) -> Brokers:
    class All:
        all = nodes
        timers = LoopTimers()

    return Brokers(cast(Nodes, All()))


@pytest.mark.usefixtures("impatient")
async def test_a_master_that_is_only_slow_is_waited_for_by_who_changes_something() -> None:
    node = Master()
    found = of(node)
    assert [broker for broker, _ in await found.masters()] == ["alpha"]
    node.answers.clear()
    (silent,) = await found.standings()
    assert (silent.broker, silent.role) == ("alpha", 0), "who looks is not kept waiting"
    changing = asyncio.create_task(found.masters())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not changing.done()
    node.answers.set()
    assert [broker for broker, _ in await asyncio.wait_for(changing, PATIENCE)] == ["alpha"]


@pytest.mark.usefixtures("impatient")
async def test_a_master_that_does_not_answer_in_its_time_is_none() -> None:
    node = Master()
    found = of(node)
    await found.standings()
    node.answers.clear()
    changing = asyncio.create_task(found.masters())
    await asyncio.sleep(0.01)
    node.away = True
    node.answers.set()
    with pytest.raises(NotPossible, match="broker alpha has no master that answers"):
        await asyncio.wait_for(changing, PATIENCE)
