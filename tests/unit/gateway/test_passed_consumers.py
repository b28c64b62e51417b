"""What a gateway passes on of plain receives and acknowledgements, and what it does with the answers."""

import asyncio
from typing import Any, cast

import pytest

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.grpc_transport import HELD
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.timers import LoopTimers
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.cluster import BrokerCluster
from tandemmq.gateway.metrics import GatewayMetrics
from tandemmq.gateway.passed_acknowledgements import PassedAcknowledgements
from tandemmq.gateway.passed_receives import PassedReceives
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import consumer_core, core_problem
from tandemmq.store.fronts.rocketmq5.front import RocketMQ5Front
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.settings import CoreChoice
from tests.unit.fronts.direct_caller import DirectCaller
from tests.unit.fronts.test_compiled_consuming import record

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

GROUP, TOPIC = pb.Resource(name="workers"), pb.Resource(name="orders")
EVERY = pb.FilterExpression(type=pb.TAG, expression="*")


class Gateway:
    """A cluster of brokers whose links write down what is asked, and the short ways of consumers."""

    def __init__(self, *names: str) -> None:
        names = names or ("broker-a",)
        self.asked: list[broker_pb2.Question] = []
        brokers = {name: RemoteBroker(name, (name,), cast(Any, None), "gateway", 1 << 20) for name in names}
        self.cluster = BrokerCluster(brokers, LoopTimers(), fill=True)
        metrics = GatewayMetrics("cluster", "gateway", brokers, lambda: 0)
        front = RocketMQ5Front(FrontRules(), CallGuard(), metrics, {})
        core = consumer_core(CoreChoice.ALWAYS)
        assert core is not None
        front.attach(self.cluster, lambda: "here:1", core=core)
        self.receives = PassedReceives(self.cluster, front.receiving, metrics)
        self.acknowledgements = PassedAcknowledgements(self.cluster, front.receipts, metrics, core.acks)
        for name, broker in brokers.items():
            broker.topics._known["orders"] = TopicConfig("orders", 2, 2)
            link = BrokerLink(cast(Any, None), name, "gateway", lambda _: None, LoopTimers())
            link.put = self._put  # type: ignore[method-assign]
            broker.link = link

    def _put(self, request: bytes) -> None:
        self.asked += broker_pb2.LinkRequest.FromString(request).questions

    def link(self, name: str = "broker-a") -> BrokerLink:
        found = self.cluster.brokers[name].link
        assert found is not None
        return found

    def answer(self, number: int, name: str = "broker-a", **answer: Any) -> None:
        said = broker_pb2.LinkResponse(answers=[broker_pb2.Answer(id=number, **answer)])
        self.link(name)._hear(said.SerializeToString())

    def receive(self, caller: DirectCaller, broker: str = "", **more: Any) -> bool:
        """Whether a call is held."""
        queue = pb.MessageQueue(topic=TOPIC, id=-1, broker=pb.Broker(name=broker))
        asked = {"group": GROUP, "message_queue": queue, "filter_expression": EVERY, "batch_size": 4, **more}
        return self.receives(calls_pb2.ReceiveMessageRequest(**asked).SerializeToString(), caller) is HELD

    def acknowledge(self, caller: DirectCaller, *handles: str) -> bool:
        """The same."""
        entries = [calls_pb2.AckMessageEntry(message_id="01AB", receipt_handle=one) for one in handles]
        request = calls_pb2.AckMessageRequest(group=GROUP, topic=TOPIC, entries=entries)
        return self.acknowledgements(request.SerializeToString(), caller) is HELD

    def token(self, own: str, name: str = "broker-a") -> str:
        return self.cluster.tokens.made(name, own)


def given(count: int) -> broker_pb2.Given:
    messages = [
        broker_pb2.GivenMessage(topic="orders", record=record(offset=at), number=1, handle=f"h{at}", invisible_ms=9)
        for at in range(count)
    ]
    return broker_pb2.Given(messages=messages, bytes=100 * count)


def done(*handles: str) -> broker_pb2.Outcomes:
    return broker_pb2.Outcomes(outcomes=[broker_pb2.Outcome(handle=one) for one in handles])


def acknowledged(caller: DirectCaller) -> list[int]:
    (answer,) = caller.answers
    return [one.status.code for one in calls_pb2.AckMessageResponse.FromString(answer).entries]


async def test_the_acknowledgements_of_a_turn_are_one_question() -> None:
    gateway, callers = Gateway(), [DirectCaller() for _ in range(3)]
    for at, caller in enumerate(callers):
        assert gateway.acknowledge(caller, gateway.token(f"h{at}"), gateway.token(f"i{at}"))
    await asyncio.sleep(0)
    (question,) = gateway.asked
    assert list(question.acknowledge.handles) == ["h0", "i0", "h1", "i1", "h2", "i2"]
    assert (question.acknowledge.group, question.acknowledge.topic) == ("workers", "orders")
    outcomes = done(*question.acknowledge.handles)
    outcomes.outcomes[3].refusal.kind = "HANDLE_EXPIRED"
    gateway.answer(question.id, outcomes=outcomes)
    assert list(map(acknowledged, callers)) == [
        [pb.OK, pb.OK], [pb.OK, pb.INVALID_RECEIPT_HANDLE], [pb.OK, pb.OK],
    ]  # fmt: skip


async def test_each_broker_hears_of_its_own_handles() -> None:
    gateway = Gateway("broker-a", "broker-b")
    one, other, both = DirectCaller(), DirectCaller(), DirectCaller()
    assert gateway.acknowledge(one, gateway.token("h"))
    assert gateway.acknowledge(other, gateway.token("h", "broker-b"))
    assert not gateway.acknowledge(both, gateway.token("h"), gateway.token("h", "broker-b"))
    assert not gateway.acknowledge(DirectCaller(), "no token")
    await asyncio.sleep(0)
    assert [list(one.acknowledge.handles) for one in gateway.asked] == [["h"], ["h"]]


@pytest.mark.parametrize("happens", ["refused", "lost"])
async def test_handlers_acknowledge_what_is_refused_or_whose_link_is_lost(happens: str) -> None:
    gateway, caller = Gateway(), DirectCaller()
    assert gateway.acknowledge(caller, gateway.token("h"))
    await asyncio.sleep(0)
    if happens == "refused":
        gateway.answer(gateway.asked[0].id, refusal=broker_pb2.Refusal(kind="STOPPING"))
    else:
        gateway.link()._over("lost")
    assert len(caller.handed_over) == 1
    assert not caller.answers
    assert not gateway.acknowledge(caller, gateway.token("h")) or happens == "refused"


async def test_a_receive_is_answered_with_what_is_there() -> None:
    gateway, caller = Gateway(), DirectCaller()
    assert gateway.receive(caller)
    asked = gateway.asked.pop()
    assert (asked.receive.wait_ms, asked.receive.most, asked.receive.topic) == (0, 4, "orders")
    gateway.answer(asked.id, given=given(2))
    (answer,) = caller.answers
    assert gateway.token("h0").encode() in answer
    assert gateway.token("h1").encode() in answer
    ended, credit = gateway.asked
    assert (ended.end_receive.id, ended.end_receive.sent, credit.credit.bytes) == (asked.id, True, 200)


async def test_a_receive_for_which_there_is_nothing_waits_with_the_handler() -> None:
    gateway, caller = Gateway(), DirectCaller()
    assert gateway.receive(caller)
    gateway.answer(gateway.asked[0].id, given=given(0))
    assert len(caller.handed_over) == 1
    assert len(gateway.asked) == 1


async def test_what_nobody_waits_for_any_more_is_there_again() -> None:
    gateway, caller = Gateway(), DirectCaller()
    assert gateway.receive(caller)
    caller.gone = True
    gateway.answer(gateway.asked[0].id, given=given(1))
    assert [one.end_receive.sent for one in gateway.asked[1:2]] == [False]
    assert gateway.asked[2].credit.bytes == 100
    assert not caller.answers
    assert not caller.handed_over


async def test_messages_for_which_there_is_no_room_any_more_are_there_again() -> None:
    """The answer would be dropped, and its messages come again only when their invisible time is over."""
    gateway, caller = Gateway(), DirectCaller()
    assert gateway.receive(caller)
    caller.has_room = False
    gateway.answer(gateway.asked[0].id, given=given(1))
    assert [one.end_receive.sent for one in gateway.asked[1:2]] == [False]
    assert gateway.asked[2].credit.bytes == 100
    assert not caller.answers
    assert len(caller.handed_over) == 1, "the handler waits for room"


async def test_handlers_have_receives_that_are_not_plain() -> None:
    gateway = Gateway("broker-a", "broker-b")
    assert not gateway.receive(DirectCaller(), auto_renew=True)
    assert not gateway.receive(DirectCaller(has_room=False), broker="broker-a")
    assert not gateway.receive(DirectCaller(headers=()), broker="broker-a")
    assert not gateway.receive(DirectCaller()), "nobody says which broker is meant"
    assert not gateway.receive(DirectCaller(), broker="broker-a"), "the group may have to be made there"
    gateway.cluster.brokers["broker-a"].groups._known["workers"] = cast(Any, object())
    assert gateway.receive(DirectCaller(), broker="broker-a")
    gateway.cluster.drain()
    assert not gateway.receive(DirectCaller(), broker="broker-a")


async def test_a_receive_whose_link_is_lost_is_the_handlers() -> None:
    gateway, caller = Gateway(), DirectCaller()
    assert gateway.receive(caller)
    gateway.link()._over("lost")
    assert len(caller.handed_over) == 1
    assert not gateway.receive(DirectCaller())
