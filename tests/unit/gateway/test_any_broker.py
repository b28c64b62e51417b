"""Receives at several brokers, answer by answer: what nobody takes goes back to its broker, with its credit."""

import asyncio
from functools import partial
from typing import Any, cast

import pytest

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.timers import LoopTimers
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.cluster import BrokerCluster
from tandemmq.gateway.errors import BrokerRefusal
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.store.broker.errors import StoreStopping
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import Batch, Wish

SIZE = 5
EMPTY = broker_pb2.Given()
ONE = broker_pb2.Given(messages=[broker_pb2.GivenMessage(topic="t", record=b"12345", number=1, handle="h")], bytes=SIZE)


class Brokers:
    """A cluster whose links write down what is asked, and are answered by the test."""

    def __init__(self, *names: str) -> None:
        self.asked: dict[str, list[broker_pb2.Question]] = {name: [] for name in names}
        made = {name: RemoteBroker(name, (name,), cast(Any, None), "gateway", 1 << 20) for name in names}
        self.cluster = BrokerCluster(made, LoopTimers(), fill=True)
        for name, broker in made.items():
            broker.topics._known["t"] = TopicConfig("t", 2, 2)
            broker.groups._known["g"] = GroupConfig("g")
            link = BrokerLink(cast(Any, None), name, "gateway", broker._orphaned, LoopTimers())
            link.tell = partial(self._told, name)  # type: ignore[method-assign]
            link._ask = self.asked[name].append  # type: ignore[method-assign, assignment]
            broker.link = link

    def _told(self, name: str, *questions: broker_pb2.Question) -> None:
        self.asked[name] += questions

    def receive(self, wait_ms: int = 0) -> asyncio.Task[Batch]:
        return asyncio.create_task(cast(Any, self.cluster.delivery("").receive(Wish("g", "t", wait_ms=wait_ms))))

    async def asked_for(self, name: str, at_once: bool) -> int:
        """The number of the receive that a broker is asked next."""
        while True:
            for question in self.asked[name]:
                if question.HasField("receive") and (question.receive.wait_ms == 0) is at_once:
                    self.asked[name].remove(question)
                    return question.id
            await asyncio.sleep(0)

    def answer(self, name: str, number: int, **answer: Any) -> None:
        link = self.cluster.brokers[name].link
        assert link is not None
        link._hear(broker_pb2.LinkResponse(answers=[broker_pb2.Answer(id=number, **answer)]).SerializeToString())

    async def wait_at_all(self) -> dict[str, int]:
        """All brokers say that nothing is ready; gives the receives that wait."""
        for name in self.asked:
            self.answer(name, await self.asked_for(name, at_once=True), given=EMPTY)
        return {name: await self.asked_for(name, at_once=False) for name in self.asked}

    def given_back(self, name: str) -> list[tuple[int, bool]]:
        return [(one.end_receive.id, one.end_receive.sent) for one in self.asked[name] if one.HasField("end_receive")]

    def credit(self, name: str) -> int:
        return sum(one.credit.bytes for one in self.asked[name] if one.HasField("credit"))


pytestmark = pytest.mark.timeout(30)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_of_two_answers_in_one_turn_the_second_goes_back() -> None:
    brokers = Brokers("a", "b")
    receive = brokers.receive(60_000)
    waiting = await brokers.wait_at_all()
    for name, number in waiting.items():
        brokers.answer(name, number, given=ONE)
    batch = await receive
    await settled()
    assert len(batch.messages) == 1
    assert brokers.given_back("a") == []
    assert brokers.given_back("b") == [(waiting["b"], False)]
    assert brokers.credit("b") == SIZE
    batch.release()
    assert brokers.given_back("a") == [(waiting["a"], False)]
    assert brokers.credit("a") == SIZE


async def test_an_answer_that_crosses_the_end_of_its_receive_gives_its_credit_back() -> None:
    brokers = Brokers("a", "b")
    receive = brokers.receive(60_000)
    waiting = await brokers.wait_at_all()
    brokers.answer("b", waiting["b"], given=ONE)
    assert len((await receive).messages) == 1
    await settled()
    assert brokers.given_back("a") == [(waiting["a"], False)]
    brokers.answer("a", waiting["a"], given=ONE)
    assert brokers.credit("a") == SIZE


@pytest.mark.parametrize("first", ["answer", "cancel"])
async def test_an_answer_in_the_turn_in_which_the_client_hangs_up_gives_its_credit_back(first: str) -> None:
    brokers = Brokers("a")
    receive = brokers.receive(60_000)
    number = await brokers.asked_for("a", at_once=False)
    if first == "cancel":
        receive.cancel()
    brokers.answer("a", number, given=ONE)
    receive.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receive
    assert brokers.given_back("a") == [(number, False)]
    assert brokers.credit("a") == SIZE


async def test_who_hangs_up_waits_nowhere() -> None:
    brokers = Brokers("a", "b", "c")
    receive = brokers.receive(60_000)
    waiting = await brokers.wait_at_all()
    receive.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receive
    await settled()
    assert {name: brokers.given_back(name) for name in waiting} == {
        name: [(number, False)] for name, number in waiting.items()
    }


async def test_a_refusal_of_one_broker_keeps_no_other_from_giving() -> None:
    brokers = Brokers("a", "b")
    receive = brokers.receive(60_000)
    full = broker_pb2.Refusal(kind="EXHAUSTED", message="too much in flight")
    brokers.answer("a", await brokers.asked_for("a", at_once=True), refusal=full)
    brokers.answer("b", await brokers.asked_for("b", at_once=True), given=EMPTY)
    brokers.answer("b", await brokers.asked_for("b", at_once=False), given=ONE)
    assert len((await receive).messages) == 1


@pytest.mark.parametrize(("kind", "told"), [("EXHAUSTED", True), ("NOT_READABLE", False)])
async def test_where_nothing_was_given_a_refusal_is_told_unless_the_topic_is_not_there(kind: str, told: bool) -> None:
    brokers = Brokers("a", "b")
    receive = brokers.receive()
    refusal = broker_pb2.Refusal(kind=kind, message="no")
    brokers.answer("a", await brokers.asked_for("a", at_once=True), refusal=refusal)
    brokers.answer("b", await brokers.asked_for("b", at_once=True), given=EMPTY)
    if told:
        with pytest.raises(BrokerRefusal):
            await receive
    else:
        assert not (await receive).messages


async def test_what_all_refuse_is_refused_before_the_time_is_over() -> None:
    brokers = Brokers("a", "b")
    receive = brokers.receive(60_000)
    for name in ("a", "b"):
        bad = broker_pb2.Refusal(kind="BAD_FILTER", message="no")
        brokers.answer(name, await brokers.asked_for(name, at_once=True), refusal=bad)
    with pytest.raises(BrokerRefusal):
        await receive


async def test_a_gateway_that_stops_ends_the_waits_at_all_brokers() -> None:
    brokers = Brokers("a", "b")
    receive = brokers.receive(60_000)
    waiting = await brokers.wait_at_all()
    brokers.cluster.drain()
    with pytest.raises(StoreStopping):
        await receive
    await settled()
    assert {name: brokers.given_back(name) for name in waiting} == {
        name: [(number, False)] for name, number in waiting.items()
    }


async def test_with_a_broker_away_a_gateway_that_stops_ends_the_waits_too() -> None:
    brokers = Brokers("a", "b")
    brokers.cluster.brokers["b"].link = None
    receive = brokers.receive(60_000)
    brokers.answer("a", await brokers.asked_for("a", at_once=True), given=EMPTY)
    await brokers.asked_for("a", at_once=False)
    brokers.cluster.drain()
    with pytest.raises(StoreStopping):
        await receive
