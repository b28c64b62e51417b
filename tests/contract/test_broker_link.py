"""The link between gateways and a store, question by question: `tandemmq.broker.v1`."""

import queue
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import grpc
import pytest

from tandemmq.broker.v1 import broker_pb2 as pb
from tandemmq.broker.v1.broker_pb2_grpc import BrokerStub
from tandemmq.store.format import properties
from tests.contract.store_process import StoreProcess

SECONDS = 60.0
PLENTY = 1 << 24


class Link:
    """One link, after Hello."""

    def __init__(self, store: StoreProcess, gateway: str = "test", credit: int = PLENTY) -> None:
        self._channel = grpc.insecure_channel(store.internal, options=[("grpc.use_local_subchannel_pool", 1)])
        self._questions: queue.Queue[pb.LinkRequest | None] = queue.Queue()
        self.call: Any = BrokerStub(self._channel).Link(iter(self._questions.get, None), timeout=SECONDS)
        self._number = 0
        self._early: list[pb.Answer] = []
        self.welcome = self.ask(hello=pb.Hello(gateway=gateway)).welcome
        if credit:
            self.post(credit=pb.Credit(bytes=credit))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._questions.put(None)
        self.call.cancel()
        self._channel.close()

    def post(self, **question: Any) -> int:
        """Asks, without waiting."""
        self._number += 1
        self._questions.put(pb.LinkRequest(questions=[pb.Question(id=self._number, **question)]))
        return self._number

    def answer(self, number: int) -> pb.Answer:
        """The answer to a question, whatever comes before it."""
        while True:
            for one in self._early:
                if one.id == number:
                    self._early.remove(one)
                    return one
            self._early += next(self.call).answers

    def ask(self, **question: Any) -> pb.Answer:
        """Asks, and waits."""
        return self.answer(self.post(**question))

    def send(self, topic: str, body: bytes, **more: str) -> pb.Answer:
        """Stores a message."""
        message = pb.Message(topic=topic, body=body, born_host="10.0.0.1:5", properties=properties.encode(more))
        return self.ask(send=message)

    def begin(self, topic: str, group: str = "g", wait_ms: int = 0, **more: Any) -> int:
        """Begins to receive."""
        more = {"most": 32, "most_bytes": 1 << 20, "expression": "*", "queue": -1, "invisible_ms": 600_000, **more}
        return self.post(receive=pb.Receive(group=group, topic=topic, wait_ms=wait_ms, **more))

    def end(self, number: int, *, sent: bool) -> None:
        """A receive is over."""
        self.post(end_receive=pb.EndReceive(id=number, sent=sent))

    def bodies(self, topic: str, wait_ms: int = 0, **more: Any) -> list[int]:
        """How often each message has come that one receive gives, which is kept."""
        number = self.begin(topic, wait_ms=wait_ms, **more)
        given = self.answer(number).given
        self.end(number, sent=True)
        return [one.number for one in given.messages]


@pytest.fixture(scope="module", params=["fast"], autouse=True)
def transport(request: pytest.FixtureRequest) -> str:
    """The internal port is always served by our own transport."""
    return str(request.param)


@pytest.fixture
def link(shared_store: StoreProcess) -> Iterator[Link]:
    with Link(shared_store) as link:
        yield link


def prepared(link: Link, topic: str, count: int) -> str:
    """A topic that the group `g` has begun to consume, with so many messages."""
    link.ask(create_topic=pb.Entry(name=topic, json=b'{"readQueueNums":1,"writeQueueNums":1,"perm":6}'))
    assert not link.answer(link.begin(topic)).given.messages
    for number in range(count):
        assert link.send(topic, b"%d" % number).stored.status == "PUT_OK"
    return topic


def test_a_link_begins_with_hello_and_with_nothing_else(shared_store: StoreProcess) -> None:
    assert Link(shared_store).welcome.broker == "broker-a"
    with grpc.insecure_channel(shared_store.internal) as channel:
        questions = iter([pb.LinkRequest(questions=[pb.Question(id=1, gone=pb.Gone())])])
        call: Any = BrokerStub(channel).Link(questions, timeout=SECONDS)
        with pytest.raises(grpc.RpcError) as refused:
            next(call)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_one_bad_message_of_a_turn_fails_no_other(link: Link) -> None:
    messages = [pb.Message(topic=topic, body=b"x", born_host="10.0.0.1:5") for topic in ("good", "b/a/d", "good")]
    link._questions.put(
        pb.LinkRequest(questions=[pb.Question(id=900 + at, send=one) for at, one in enumerate(messages)])
    )
    answers = [link.answer(900 + at) for at in range(3)]
    assert [one.WhichOneof("answer") for one in answers] == ["stored", "refusal", "stored"]
    assert answers[1].refusal.kind == "INVALID"


def test_answers_come_in_any_order(link: Link) -> None:
    topic = prepared(link, "order-of-answers", 0)
    waiting = link.begin(topic, wait_ms=30_000)
    assert link.ask(find_topic=pb.FindEntry(name=topic)).topic.json
    link.send(topic, b"now")
    assert [one.number for one in link.answer(waiting).given.messages] == [1]


def test_what_was_released_comes_again_uncounted_and_what_was_sent_does_not(link: Link) -> None:
    topic = prepared(link, "two-phases", 1)
    for _ in range(3):
        number = link.begin(topic, wait_ms=10_000)
        assert [one.number for one in link.answer(number).given.messages] == [1]
        link.end(number, sent=False)
        link.end(number, sent=False)  # once more is fine
    assert link.bodies(topic, wait_ms=10_000) == [1]
    assert link.bodies(topic) == []


def test_a_receive_that_is_given_up_takes_no_message(link: Link) -> None:
    topic = prepared(link, "given-up", 0)
    for _ in range(5):
        link.end(link.begin(topic, wait_ms=30_000), sent=False)
    link.end(4_711, sent=True)  # nobody knows it
    link.send(topic, b"one")
    assert link.bodies(topic, wait_ms=10_000) == [1]


def receiving(topic: str) -> pb.Receive:
    return pb.Receive(
        group="g", topic=topic, queue=-1, expression="*", most=1, most_bytes=1 << 20, invisible_ms=600_000
    )


def test_what_is_asked_together_is_answered_each_for_itself(link: Link) -> None:
    """Receives of a turn are given different messages, and acknowledgements of a turn have their own outcomes."""
    topic = prepared(link, "together", 3)
    asked = [pb.Question(id=800 + at, receive=receiving(topic)) for at in range(4)]
    link._questions.put(pb.LinkRequest(questions=asked))
    given = [link.answer(one.id).given.messages for one in asked]
    assert sorted(len(messages) for messages in given) == [0, 1, 1, 1]
    handles = [one.handle for messages in given for one in messages]
    assert len(set(handles)) == 3
    back = [[handles[0]], [handles[1], "none"], [handles[2]]]
    acks = [pb.Acknowledge(group="g", topic=topic, handles=some) for some in back]
    link._questions.put(
        pb.LinkRequest(questions=[pb.Question(id=810 + at, acknowledge=a) for at, a in enumerate(acks)])
    )
    outcomes = [[one.HasField("refusal") for one in link.answer(810 + at).outcomes.outcomes] for at in range(3)]
    assert outcomes == [[False], [False, True], [False]]


def test_a_receive_that_is_given_up_in_its_own_turn_takes_no_message(link: Link) -> None:
    topic = prepared(link, "given-up-at-once", 2)
    ended = pb.EndReceive(id=850, sent=False)
    questions = [pb.Question(id=850, receive=receiving(topic)), pb.Question(id=851, end_receive=ended)]
    for split in (2, 1):  # together, and one after the other
        link._questions.put(pb.LinkRequest(questions=questions[:split]))
        link._questions.put(pb.LinkRequest(questions=questions[split:]))
    assert sorted(link.bodies(topic, wait_ms=10_000)) == [1, 1]


def test_what_was_given_when_the_link_is_lost_counts_as_given(shared_store: StoreProcess, link: Link) -> None:
    """A client may have it: a gateway that is killed causes no redelivery."""
    topic = prepared(link, "lost-link", 2)
    with Link(shared_store, "another") as other:
        number = other.begin(topic, wait_ms=10_000, most=1)
        handle = other.answer(number).given.messages[0].handle
        other.begin(topic, group="g", wait_ms=30_000, most=1)
    assert link.bodies(topic, wait_ms=10_000) in ([1], []), "the other one, unless it was on its way"
    assert link.bodies(topic) == []
    outcomes = link.ask(acknowledge=pb.Acknowledge(group="g", topic=topic, handles=[handle])).outcomes.outcomes
    assert [one.HasField("refusal") for one in outcomes] == [False]


def test_nothing_is_given_without_credit(shared_store: StoreProcess, link: Link) -> None:
    topic = prepared(link, "credit", 3)
    with Link(shared_store, "poor", credit=0) as poor:
        number = poor.begin(topic, wait_ms=30_000, most=1)
        assert poor.ask(find_topic=pb.FindEntry(name=topic)).topic.json  # it is served, but for messages
        assert poor._early == []
        poor.post(credit=pb.Credit(bytes=100))  # less than the receive may take, and all there is
        given = poor.answer(number).given
        assert len(given.messages) == 1
        poor.end(number, sent=True)
        another = poor.begin(topic, wait_ms=30_000, most=1)
        assert poor.ask(find_topic=pb.FindEntry(name=topic)).topic.json
        assert poor._early == []
        poor.post(credit=pb.Credit(bytes=given.bytes))
        assert len(poor.answer(another).given.messages) == 1


def test_who_found_a_topic_or_group_hears_when_it_changes(link: Link) -> None:
    assert not link.ask(find_topic=pb.FindEntry(name="nowhere")).topic.json
    assert not link.ask(find_group=pb.FindEntry(name="nobody")).group.json
    assert link.ask(create_group=pb.Entry(name="nobody", json=b'{"consumeMessageOrderly":true}')).HasField("done")
    assert b'"consumeMessageOrderly":true' in link.ask(find_group=pb.FindEntry(name="nobody")).group.json


@pytest.mark.parametrize("json", [b"", b"nonsense", b"[]", b'{"perm":"all"}'])
def test_an_entry_that_is_none_is_refused(link: Link, json: bytes) -> None:
    refused = link.ask(create_topic=pb.Entry(name="no-entry", json=json)).refusal
    assert refused.kind == "INVALID"
    assert not link.ask(find_topic=pb.FindEntry(name="no-entry")).topic.json


def test_a_stop_of_the_store_ends_the_link(own_store: StoreProcess) -> None:
    with Link(own_store) as link:
        own_store.stop()
        with pytest.raises(grpc.RpcError) as ended:
            list(link.call)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
