"""What the compiled core passes on in a gateway, against its Python twin: the same questions, the same answers."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import grpc
import pytest
from google.protobuf.message import DecodeError
from hypothesis import strategies as st

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.documents import java_json
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import HELD
from tandemmq.common.timers import LoopTimers
from tandemmq.gateway import questions
from tandemmq.gateway.broker_link import MOST_UNSENT, BrokerLink
from tandemmq.gateway.choosing import chosen
from tandemmq.gateway.cluster import SOON_SECONDS, BrokerCluster
from tandemmq.gateway.metrics import GatewayMetrics
from tandemmq.gateway.passed_sends import PassedSends
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.topics import PERM_READ, TopicConfig
from tandemmq.store.compiled_core import core_problem
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.rocketmq5 import body_digest
from tandemmq.store.fronts.rocketmq5.message_types import check_type
from tandemmq.store.fronts.rocketmq5.names import topic_name
from tandemmq.store.fronts.rocketmq5.sent_message import new_message, type_of
from tests.campaigns import examples
from tests.unit.fronts.direct_caller import DirectCaller
from tests.unit.fronts.test_compiled_messages import FULL, MOST, PEERS, request, requests

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

TOPICS = {
    name: TopicConfig(name, 2, 2, other={"attributes": {"message.type": kind}} if kind else {})
    for name, kind in (("orders", ""), ("normal", "NORMAL"), ("fifo", "FIFO"), ("%RETRY%workers", ""))
}


class Gateway:
    """A cluster of brokers whose links write down what is asked."""

    def __init__(self, *names: str) -> None:
        self.asked: dict[str, list[bytes]] = {name: [] for name in names}
        brokers = {name: RemoteBroker(name, (name,), cast(Any, None), "gateway", 1 << 20) for name in names}
        self.cluster = BrokerCluster(brokers, LoopTimers(), fill=True)
        self.metrics = GatewayMetrics("cluster", "gateway", brokers, lambda: 0)
        self.sends = PassedSends(self.cluster, MOST, self.metrics)
        for name, broker in brokers.items():
            link = BrokerLink(cast(Any, None), name, "gateway", lambda _: None, LoopTimers())
            broker._begin(link)
            for topic in TOPICS.values():
                self.know(topic, name)

    def send(self, given: bytes, caller: DirectCaller | None = None) -> bool:
        """Whether a call is held."""
        is_held = self.sends.core.answer(given, caller or DirectCaller()) is HELD
        for name, broker in self.cluster.brokers.items():
            if broker.link is not None and broker.link.held is not None:
                self.asked[name] += broker.link.held.take()
        return is_held

    def know(self, topic: TopicConfig, name: str = "broker-a") -> None:
        """A broker says what a topic is like."""
        entry = broker_pb2.Entry(name=topic.name, json=java_json.dumps(topic.to_json()))
        self.cluster.brokers[name].topics.changed(entry)

    def link(self, name: str = "broker-a") -> BrokerLink:
        found = self.cluster.brokers[name].link
        assert found is not None
        return found

    def answer(self, *answers: broker_pb2.Answer, name: str = "broker-a") -> None:
        self.link(name)._hear(broker_pb2.LinkResponse(answers=answers).SerializeToString())


@contextmanager
def gateway(*names: str) -> Iterator[Gateway]:
    """With an event loop, as links have one."""

    async def made() -> Gateway:
        return Gateway(*(names or ("broker-a",)))

    with asyncio.Runner() as runner:
        yield runner.run(made())


def stored(number: int, key: str = "01AB", **fields: Any) -> broker_pb2.Answer:
    said = {"message_id": key, "transaction_id": key, "status": "PUT_OK", **fields}
    return broker_pb2.Answer(id=number, stored=broker_pb2.Stored(**said))


def told(caller: DirectCaller) -> calls_pb2.SendMessageResponse:
    (answer,) = caller.answers
    return calls_pb2.SendMessageResponse.FromString(answer)


def python_question(given: bytes, peer: str) -> broker_pb2.Question | None:
    """What the Python way asks; None: it refuses the request, or has to make the topic."""
    try:
        (message,) = calls_pb2.SendMessageRequest.FromString(given).messages
        topic = topic_name(message.topic, "")
        kind = type_of(message)
        check_type(TOPICS[topic], kind)
        new = new_message(message, topic, kind, peer_host(peer), MOST)
        body_digest.check_at_once(message.system_properties.body_digest, new.body)
    except (TandemError, DecodeError, ValueError, KeyError):
        return None
    return questions.send(new)


@examples(50, 1_500, st.lists(st.tuples(requests(), st.sampled_from(PEERS)), max_size=12))
def test_both_ways_ask_the_same(calls: list[tuple[bytes, str]]) -> None:
    with gateway() as one:
        for given, peer in calls:
            if not one.send(given, DirectCaller(peer)):
                assert not one.asked["broker-a"]
                continue
            (question,) = broker_pb2.LinkRequest.FromString(one.asked["broker-a"].pop()).questions
            number = question.id
            question.ClearField("id")
            expected = python_question(given, peer)
            assert expected is not None
            assert _comparable(question) == _comparable(expected)
            one.answer(stored(number))


def _comparable(question: broker_pb2.Question) -> tuple[Any, frozenset[bytes]]:
    """But for the order of properties, which is that of the wire, and the other time that of protobuf's table."""
    parts = frozenset(question.send.properties.split(b"\2"))
    question.send.properties = b""
    return question, parts


def test_what_clients_send_is_taken_and_answered() -> None:
    with gateway() as one:
        for number, given in enumerate(
            (request(**FULL), request(), request(b"x" * MOST), request(born_timestamp=None)), 1
        ):
            caller = DirectCaller()
            assert one.send(given, caller)
            assert one.asked["broker-a"].pop() == _whole(given, number)
            one.answer(stored(number, offset=number - 1))
            response = told(caller)
            assert response.status.code == response.entries[0].status.code == pb.OK
            entry = response.entries[0]
            assert (entry.message_id, entry.transaction_id, entry.offset) == ("01AB", "01AB", number - 1)
        assert one.sends.core.taken == 4
        assert sum(one.metrics.times("SendMessage", "SUCCESS").counts) == 4
        assert one.sends.core.answer(request(b"x" * (MOST + 1)), DirectCaller()) is None


def _whole(given: bytes, number: int) -> bytes:
    question = python_question(given, DirectCaller().address)
    assert question is not None
    question.id = number
    return broker_pb2.LinkRequest(questions=(question,)).SerializeToString()


answers = st.builds(
    broker_pb2.Answer,
    id=st.sampled_from([1, 2, 9]),
    stored=st.builds(
        broker_pb2.Stored,
        message_id=st.sampled_from(["01AB", "01AB", "", "x" * 200]),
        transaction_id=st.sampled_from(["01AB", "01AB", "another"]),
        offset=st.sampled_from([0, 5, 1 << 40]),
        recall_handle=st.sampled_from(["", "", "handle"]),
        status=st.sampled_from(["PUT_OK", "PUT_OK", "FLUSH_DISK_TIMEOUT"]),
    ),
)


@examples(100, 1_500, st.lists(answers, max_size=4, unique_by=lambda one: one.id))
def test_both_ways_answer_the_same(said: list[broker_pb2.Answer]) -> None:
    with gateway() as one, gateway() as twin:
        callers: list[list[DirectCaller]] = []
        for way in (one, twin):
            callers.append([DirectCaller(), DirectCaller()])
            for caller in callers[-1]:
                assert way.send(request(), caller)
        one.answer(*said)
        link = twin.link()
        assert link.held is not None
        for answer in said:
            link.held.told(answer)  # without the core
        for mine, other in zip(*callers, strict=True):
            assert [*map(_read, mine.answers)] == [*map(_read, other.answers)]
        assert set(one.metrics._calls) == set(twin.metrics._calls)


def _read(answer: bytes) -> calls_pb2.SendMessageResponse:
    return calls_pb2.SendMessageResponse.FromString(answer)


def test_a_refusal_is_told_and_one_of_a_store_that_ends_is_asked_again() -> None:
    with gateway() as one:
        callers = [DirectCaller(), DirectCaller()]
        for caller in callers:
            assert one.send(request(), caller)
        for number, kind in enumerate((Kind.TOO_LARGE, Kind.WRONG_ROLE), 1):
            one.answer(broker_pb2.Answer(id=number, refusal=broker_pb2.Refusal(kind=kind.name, message="no")))
        response = told(callers[0])
        assert response.status.code not in (pb.OK, 0)
        assert response.entries[0].message_id == "01AB"
        assert callers[1].handed_over == [request()]
        assert not callers[1].answers


def test_an_outcome_that_nobody_here_knows_ends_its_own_call_only() -> None:
    with gateway() as one:
        callers = [DirectCaller(), DirectCaller()]
        for caller in callers:
            assert one.send(request(), caller)
        one.answer(stored(1, status="SAFER_THAN_EVER"), stored(2, status="FLUSH_DISK_TIMEOUT"))
        ((code, details, _),) = callers[0].ended
        assert code is grpc.StatusCode.UNKNOWN
        assert "makes no sense" in details
        assert told(callers[1]).status.code == pb.MASTER_PERSISTENCE_TIMEOUT


def test_handlers_go_on_where_the_link_ends() -> None:
    with gateway() as one:
        caller = DirectCaller()
        assert one.send(request(), caller)
        link = one.link()
        link._over("it was lost")
        assert caller.handed_over == [request()]
        one.answer(stored(1))
        assert not caller.answers, "a late answer is nobody's"
        assert not one.send(request()), "nothing more goes there"


def test_a_message_whose_link_is_lost_is_asked_again_of_its_own_broker() -> None:
    """It may be stored there, and another broker would store it once more."""

    async def tried(*, comes_back: bool) -> None:
        one, caller = Gateway("broker-a", "broker-b"), DirectCaller()
        broker = one.cluster.brokers[chosen("01AB", ("broker-a", "broker-b"))]
        assert one.send(request(), caller)
        one.link(broker.name)._over("it was lost")
        await asyncio.sleep(SOON_SECONDS / 4)
        assert not caller.handed_over, "it would go to the other broker at once"
        if comes_back:
            broker.made(broker, BrokerLink(cast(Any, None), broker.name, "gateway", lambda _: None, LoopTimers()))
            assert caller.handed_over == [request()]
        await asyncio.sleep(SOON_SECONDS)
        assert caller.handed_over == [request()], "once, at the latest after SOON_SECONDS"

    for comes_back in (True, False):
        asyncio.run(tried(comes_back=comes_back))


def test_messages_go_to_the_broker_that_the_python_way_chooses() -> None:
    names = ("broker-a", "broker-b", "broker-c")
    with gateway(*names) as one:
        for number in range(30):
            assert one.send(request(message_id=f"id-{number}"))
            at = chosen(f"id-{number}", names)
            assert f"id-{number}".encode() in one.asked[at].pop()
        assert not any(one.asked.values())


def test_where_something_is_not_as_usual_handlers_decide() -> None:
    with gateway("broker-a", "broker-b") as one:
        brokers = one.cluster.brokers
        assert one.send(request())
        one.know(TopicConfig("orders", 2, 2, PERM_READ), "broker-b")
        assert not one.send(request()), "a broker takes no messages of the topic"
        one.know(TOPICS["orders"], "broker-b")
        assert one.send(request())
        brokers["broker-b"].topics.changed(broker_pb2.Entry(name="orders"))
        assert not one.send(request()), "a broker has no such topic"
        one.know(TOPICS["orders"], "broker-b")
        assert one.send(request())
        for asked in one.asked.values():
            asked.clear()
        for name in brokers:
            one.link(name)._unsent_bytes = MOST_UNSENT + 1
        assert not one.send(request()), "the stores do not read"
        for name in brokers:
            one.link(name)._unsent_bytes = 0
        for metadata in ((), (("x-mq-client-id", " "),), (("x-mq-client-id", "me"), ("x-mq-namespace", "shop"))):
            assert not one.send(request(), DirectCaller(headers=metadata))
        assert not any(one.asked.values())
        assert one.send(request())


async def test_handlers_decide_while_a_broker_is_away() -> None:
    one = Gateway("broker-a", "broker-b")
    broker, link = one.cluster.brokers["broker-b"], one.link("broker-b")
    assert one.send(request())
    broker._end(link)
    assert not one.send(request())
    broker._begin(link)
    assert not one.send(request()), "what has changed meanwhile was not told"
    one.know(TOPICS["orders"], "broker-b")
    assert one.send(request())


def test_no_more_is_held_than_there_is_memory_for() -> None:
    with gateway() as one:
        large = request(b"x" * MOST)
        taken = next(count for count in itertools.count() if not one.send(large))
        assert 64 << 20 < taken * len(large) < 65 << 20
        one.answer(stored(1))
        assert one.send(large)


def test_messages_of_a_turn_are_one_request_and_no_larger_than_it_may_be() -> None:
    with gateway() as one:
        given = [request(), *[request(b"x" * MOST)] * ((2 << 20) // MOST), request()]
        held = one.link().held
        assert held is not None
        for each in given:
            assert one.sends.core.answer(each, DirectCaller()) is HELD
        requests = held.take()
        found = [broker_pb2.LinkRequest.FromString(each).questions for each in requests]
        assert [question.id for each in found for question in each] == [*range(1, len(given) + 1)]
        assert all(len(each) <= 1 << 20 for each in requests)
        assert len(requests) == 3
        assert not held.take()


def test_what_was_gathered_when_the_link_ends_goes_nowhere_and_its_calls_go_on() -> None:
    with gateway() as one:
        caller, held = DirectCaller(), one.link().held
        assert held is not None
        assert one.sends.core.answer(request(), caller) is HELD
        one.link()._over("it was lost")
        assert caller.handed_over == [request()]
        assert not held.take()
