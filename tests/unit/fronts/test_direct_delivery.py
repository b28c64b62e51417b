"""Receives and acknowledgements the short way, over a real store: what they give, when, and what they leave alone."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import HELD, HeldCall
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import consuming_ways, core_problem
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.port import Batch, Wish
from tandemmq.store.delivery.receiving.receiver import Look, Receiver
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.acknowledgements_of_turn import AcknowledgementsOfTurn
from tandemmq.store.fronts.direct_port import DirectPort
from tandemmq.store.fronts.native.direct_delivery import DirectAcknowledge, DirectReceive
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.fronts.receives_of_turn import ReceivesOfTurn
from tandemmq.store.fronts.rocketmq5.clients import Clients
from tandemmq.store.fronts.rocketmq5.direct_ack import DirectAckMessage, refuse
from tandemmq.store.fronts.rocketmq5.direct_receive import DirectReceiveMessage
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.fronts.rocketmq5.given_messages import GivenMessages
from tandemmq.store.fronts.rocketmq5.receipts import Receipts
from tandemmq.store.fronts.rocketmq5.receiving import ReceiveCalls
from tandemmq.store.log.errors import DiskFull
from tandemmq.store.metrics import StoreMetrics
from tests.unit.delivery.delivery_kit import DeliveringStore, delivering
from tests.unit.fronts.direct_caller import DirectCaller

GROUP, TOPIC = "workers", "orders"
PLACE = Place(GROUP, TOPIC, 0)


@pytest.fixture(autouse=True)
def long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes longer than a slice is the handler's; on a busy machine that is anything."""
    monkeypatch.setattr("tandemmq.common.slices._SLICE_SECONDS", 3_600.0)


class Ways:
    """The short ways over one store."""

    def __init__(self, at: DeliveringStore) -> None:
        metrics = StoreMetrics("cluster", "node")
        self.at = at
        self.receives = DirectReceive(at.delivery, PullLimits(32, 1 << 20), metrics)
        self.acknowledges = DirectAcknowledge(at.delivery, metrics)
        port = DirectPort("broker", at.delivery)
        acks = AcknowledgementsOfTurn(
            "AckMessage", at.delivery, at.delivery.journal, at.delivery.acknowledgement, metrics, refuse
        )
        self.acks = DirectAckMessage(Receipts(Clients(port.sessions), port.delivery), acks)

    def receive(self, caller: DirectCaller | None = None, **wanted: Any) -> bytes | HeldCall | None:
        asked = {"group": GROUP, "topic": TOPIC, "invisible_ms": 60_000, "max_messages": 1, **wanted}
        return self.receives(delivery_pb2.ReceiveRequest(**asked).SerializeToString(), caller or DirectCaller())

    def acknowledge(self, caller: DirectCaller, *handles: str) -> bytes | HeldCall | None:
        request = delivery_pb2.AcknowledgeRequest(group=GROUP, topic=TOPIC, handles=handles)
        return self.acknowledges(request.SerializeToString(), caller)

    async def received(self, messages: int = 1) -> list[str]:
        """Handles of messages that were given out."""
        callers = [DirectCaller() for _ in range(messages)]
        assert [self.receive(one) for one in callers] == [HELD] * messages
        await until(lambda: all(one.answers for one in callers))
        return [handle for one in callers for _, handle in self.given(one)]

    async def is_handlers(self, **wanted: Any) -> bool:
        """Whether a receive is the handler's, now or at the end of the turn."""
        caller = DirectCaller()
        if self.receive(caller, **wanted) is not None:
            await until(lambda: bool(caller.handed_over or caller.answers))
        return not caller.answers

    def given(self, caller: DirectCaller) -> list[tuple[int, str]]:
        """Offset and handle of each message that a receive was answered with."""
        messages = delivery_pb2.ReceiveResponse.FromString(caller.answers[0]).messages
        return [(decode_record(one.record).queue_offset, one.handle) for one in messages]

    def refused(self, caller: DirectCaller) -> list[bool]:
        """Of each handle that was given back: whether it was refused."""
        outcomes = delivery_pb2.AcknowledgeResponse.FromString(caller.answers[0]).outcomes
        return [one.HasField("refusal") for one in outcomes]

    def cursor(self) -> int:
        progress = self.at.delivery.ledger.progress(PLACE)
        assert progress is not None
        return progress.cursor


class WaysOfCore(Ways):
    """Those of the compiled core."""

    def __init__(self, at: DeliveringStore) -> None:
        super().__init__(at)
        from tandemmq.store.delivery.compiled import handle_codec

        receiving: Any = at.delivery.receiving
        receiving.handles.core = handle_codec
        metrics = StoreMetrics("cluster", "node")
        ways: Any = consuming_ways(self.receives, self.acknowledges, metrics)
        self.receives, self.acknowledges = ways


class WaysOfFive(Ways):
    """Those of RocketMQ 5's clients."""

    def __init__(self, at: DeliveringStore) -> None:
        from tandemmq.store.fronts.rocketmq5.compiled.given_message import CompiledGivenMessage

        super().__init__(at)
        of_turn = ReceivesOfTurn("ReceiveMessage", at.delivery, at.delivery.journal, StoreMetrics("cluster", "node"))
        nothing: Any = None
        rules = FrontRules(least_invisible_ms=0)
        calls = ReceiveCalls(nothing, nothing, nothing, rules, GivenMessages(1 << 22, CompiledGivenMessage()))
        self.receives_of_five = DirectReceiveMessage(calls, of_turn)

    def receive(self, caller: DirectCaller | None = None, **wanted: Any) -> bytes | HeldCall | None:
        request = calls_pb2.ReceiveMessageRequest(
            group=pb.Resource(name=GROUP),
            message_queue=pb.MessageQueue(topic=pb.Resource(name=TOPIC)),
            batch_size=wanted.get("max_messages", 1),
        )
        request.invisible_duration.FromSeconds(60)
        return self.receives_of_five(request.SerializeToString(), caller or DirectCaller())

    def acknowledge(self, caller: DirectCaller, *handles: str) -> bytes | HeldCall | None:
        request = calls_pb2.AckMessageRequest(group=pb.Resource(name=GROUP), topic=pb.Resource(name=TOPIC))
        for handle in handles:
            request.entries.add(message_id="id", receipt_handle=handle)
        return self.acks(request.SerializeToString(), caller)

    def given(self, caller: DirectCaller) -> list[tuple[int, str]]:
        parts, at, data = [], 0, caller.answers[0]
        while at < len(data):
            end = at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
            parts.append(calls_pb2.ReceiveMessageResponse.FromString(data[at + 5 : end]))
            at = end
        assert (parts[0].status.code, parts[-1].WhichOneof("content")) == (pb.OK, "delivery_timestamp")
        said = [one.message.system_properties for one in parts[1:-1]]
        return [(one.queue_offset, one.receipt_handle) for one in said]

    def refused(self, caller: DirectCaller) -> list[bool]:
        entries = calls_pb2.AckMessageResponse.FromString(caller.answers[0]).entries
        return [one.status.code != pb.OK for one in entries]


@pytest.fixture(
    params=[
        pytest.param(Ways, id="ours"),
        pytest.param(
            WaysOfCore, id="ours, by the core", marks=pytest.mark.skipif(core_problem() != "", reason="no core")
        ),
        pytest.param(WaysOfFive, id="RocketMQ 5", marks=pytest.mark.skipif(core_problem() != "", reason="no core")),
    ]
)
def kind(request: pytest.FixtureRequest) -> type[Ways]:
    """Whose ways."""
    given: type[Ways] = request.param
    return given


def message_in(answer: bytes) -> delivery_pb2.ReceivedMessage:
    [message] = delivery_pb2.ReceiveResponse.FromString(answer).messages
    return message


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0)


async def begun(at: DeliveringStore, messages: int = 10, queues: int = 1, kind: type[Ways] = Ways) -> Ways:
    """A group that has a place in a topic with messages."""
    await at.broker.topics.add([TopicConfig(TOPIC, queues, queues)])
    await at.send(TOPIC, messages)
    at.store.catch_up()
    empty = await at.delivery.receive(Wish(GROUP, TOPIC, most=1))
    empty.release()
    at.delivery.journal.write()
    return kind(at)


async def test_what_is_received_and_acknowledged_stays_so(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        handles = await ways.received(4)
        caller = DirectCaller()
        assert ways.acknowledge(caller, *handles[:3]) is HELD
        assert not caller.answers, "it is not written yet"
        await until(lambda: bool(caller.answers))
        answer = delivery_pb2.AcknowledgeResponse.FromString(caller.answers[0])
        assert [one.HasField("refusal") for one in answer.outcomes] == [False] * 3
        left = at.killed(tmp_path / "killed")
    async with delivering(left) as at:
        progress = at.delivery.ledger.progress(PLACE)
        assert progress is not None
        assert (progress.cursor, progress.given, list(progress.entries)) == (3, 4, [3])


async def test_all_calls_of_a_turn_are_one_record_of_the_journal(tmp_path: Path, kind: type[Ways]) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        handles = await ways.received(3)
        before = at.delivery.journal.next
        callers = [DirectCaller() for _ in range(6)]
        for caller, handle in zip(callers[:3], handles, strict=True):
            assert ways.acknowledge(caller, handle) is HELD
        for caller in callers[3:]:
            assert ways.receive(caller) is HELD
        await until(lambda: all(one.answers for one in callers))
        assert at.delivery.journal.next == before + 1
        bodies = [offset for one in callers[3:] for offset, _ in ways.given(one)]
        assert bodies == [3, 4, 5]


async def test_calls_of_a_turn_that_ask_for_the_same_are_one_look(
    tmp_path: Path, kind: type[Ways], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, messages=40, queues=3, kind=kind)
        looks, look = 0, Receiver.look

        def counted(*arguments: Any) -> Look:
            nonlocal looks
            looks += 1
            return look(*arguments)

        monkeypatch.setattr(Receiver, "look", counted)
        handles = await ways.received(20)
        assert looks == 1
        progress = at.delivery.ledger.progress(PLACE)
        assert progress is not None
        assert (len(set(handles)), list(progress.entries)) == (20, list(range(20)))
        callers = [DirectCaller() for _ in handles]
        for caller, handle in zip(callers, reversed(handles), strict=True):
            assert ways.acknowledge(caller, handle) is HELD
        await until(lambda: all(one.answers for one in callers))
        assert (ways.cursor(), len(progress.entries)) == (20, 0)
        left = at.killed(tmp_path / "killed")
    async with delivering(left) as at:
        assert ways.cursor() == 20


async def test_each_of_them_gets_as_many_as_it_asked_for_while_there_are_some(tmp_path: Path, kind: type[Ways]) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, messages=13, kind=kind)
        callers = [DirectCaller() for _ in range(6)]
        assert [ways.receive(one, max_messages=3) for one in callers] == [HELD] * 6
        await until(lambda: all(one.answers or one.handed_over for one in callers))
        given = [ways.given(one) for one in callers if one.answers]
        assert [len(some) for some in given] == [3, 3, 3, 3, 1]
        assert [offset for some in given for offset, _ in some] == list(range(13))
        assert len(callers[5].handed_over) == 1, "there is none: the handler waits for the next"


async def test_what_a_look_has_not_come_to_is_given_in_the_next_turn(
    tmp_path: Path, kind: type[Ways], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        receive, most = at.delivery.receive_at_once, [1, 2, 3, 3]
        monkeypatch.setattr(
            at.delivery, "receive_at_once", lambda wish, calls=1: receive(wish, min(calls, most.pop(0)))
        )
        callers = [DirectCaller() for _ in range(9)]
        assert [ways.receive(one) for one in callers] == [HELD] * 9
        await until(lambda: all(one.answers for one in callers))
        offsets = [offset for one in callers for offset, _ in ways.given(one)]
        assert (offsets, most) == (list(range(9)), [])


async def test_a_caller_that_does_not_read_what_came_before_is_the_handlers_in_the_next_turn(
    tmp_path: Path, kind: type[Ways], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        receive, most = at.delivery.receive_at_once, [1, 2, 9]
        monkeypatch.setattr(
            at.delivery, "receive_at_once", lambda wish, calls=1: receive(wish, min(calls, most.pop(0)))
        )
        callers = [DirectCaller() for _ in range(6)]
        assert [ways.receive(one) for one in callers] == [HELD] * 6
        await until(lambda: bool(callers[2].answers))
        for one in callers[3:5]:
            one.has_room = False
        await until(lambda: bool(callers[5].answers))
        assert [len(one.answers) for one in callers] == [1, 1, 1, 0, 0, 1]
        assert [len(one.handed_over) for one in callers] == [0, 0, 0, 1, 1, 0]
        assert at.delivery.ledger.in_flight(PLACE) == 4


async def test_each_of_them_is_told_what_became_of_its_own_handles(tmp_path: Path, kind: type[Ways]) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        handles = await ways.received(5)
        asked = [[handles[0]], [handles[1], "none"], ["none"], [handles[2], handles[3]], [handles[0]]]
        callers = [DirectCaller() for _ in asked]
        for caller, some in zip(callers, asked, strict=True):
            assert ways.acknowledge(caller, *some) is HELD
        await until(lambda: all(one.answers for one in callers))
        assert [ways.refused(one) for one in callers] == [[False], [False, True], [True], [False, False], [False]]
        assert ways.cursor() == 4


async def test_a_caller_that_has_gone_before_the_end_of_the_turn_is_given_nothing(
    tmp_path: Path, kind: type[Ways]
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        callers = [DirectCaller() for _ in range(4)]
        assert [ways.receive(one) for one in callers] == [HELD] * 4
        callers[2].gone = True
        await until(lambda: bool(callers[3].answers))
        assert at.delivery.ledger.in_flight(PLACE) == 3
        assert not callers[2].answers


@pytest.mark.parametrize("ends", ["close", "drop"])
async def test_calls_that_wait_for_the_end_of_a_turn_are_answered_where_delivery_ends_before(
    tmp_path: Path, kind: type[Ways], ends: str
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        handles = await ways.received(3)
        callers = [DirectCaller() for _ in range(6)]
        for caller, handle in zip(callers[:3], handles, strict=True):
            assert ways.acknowledge(caller, handle) is HELD
        for caller in callers[3:]:
            assert ways.receive(caller) is HELD
        getattr(at.delivery.journal, ends)()
        assert [len(one.answers) for one in callers] == [int(ends == "close")] * 6
        assert [len(one.handed_over) for one in callers] == [int(ends == "drop")] * 6
        assert (ways.cursor() == 3) == (ends == "close")


async def test_calls_that_cannot_be_answered_together_are_the_handlers(
    tmp_path: Path, kind: type[Ways], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, kind=kind)
        handles = await ways.received(3)

        def broken(*_: Any) -> Any:
            raise RuntimeError("a fault of ours")

        receivers, acknowledgers = ([DirectCaller() for _ in range(3)] for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(at.delivery, "receive_at_once", broken)
            patch.setattr(at.delivery, "acknowledge_at_once", broken)
            assert [ways.receive(one) for one in receivers] == [HELD] * 3
            some = zip(acknowledgers, handles, strict=True)
            assert [ways.acknowledge(one, handle) for one, handle in some] == [HELD] * 3
            receivers[1].has_room = False  # its peer does not read what it got before
            await until(lambda: all(one.handed_over for one in (*receivers, *acknowledgers)))
        assert [len(one.handed_over) for one in (*receivers, *acknowledgers)] == [1] * 6, "each has one answer only"
        assert not any(one.answers for one in (*receivers, *acknowledgers))


async def test_what_is_not_plain_is_the_handlers(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        asked: list[dict[str, Any]] = [
            {"renew": True, "client_id": "one"},
            {"attempt_id": "first"},
            {"max_messages": -1},
            {"invisible_ms": 1},
            {"topic": "others"},
            {"group": "new"},
            {"queue_id": 7},
        ]
        before = at.delivery.journal.next
        assert [ways.receive(**one) for one in asked[:3]] == [None] * 3, "what can be seen at once"
        assert [await ways.is_handlers(**one) for one in asked] == [True] * len(asked)
        assert ways.receive(DirectCaller(has_room=False)) is None
        assert ways.receives(b"\xff", DirectCaller()) is None
        assert ways.acknowledges(b"\xff", DirectCaller()) is None
        assert ways.acknowledge(DirectCaller()) is None
        await asyncio.sleep(0)
        assert at.delivery.journal.next == before
        assert at.delivery.groups.get("new") is None


async def test_a_large_answer_leaves_the_next_to_the_handler_and_not_all_that_come(tmp_path: Path) -> None:
    async with delivering(tmp_path, max_message_size=128 << 10, mapped_file_size_commit_log=1 << 20) as at:
        ways = await begun(at, messages=1)
        await at.send(TOPIC, 1, size=100_000)
        await at.send(TOPIC, 1)
        await ways.received(2)
        assert ways.receive() is None
        await asyncio.sleep(1.0)
        await ways.received()


async def test_calls_of_a_turn_are_not_all_given_large_answers(tmp_path: Path) -> None:
    """Together they may be more than there is memory; handlers wait until there is room for each."""
    async with delivering(tmp_path, max_message_size=128 << 10, mapped_file_size_commit_log=1 << 20) as at:
        ways = await begun(at, messages=1)
        await at.send(TOPIC, 30, size=100_000)
        callers = [DirectCaller() for _ in range(31)]
        assert [ways.receive(one, max_bytes=300_000) for one in callers] == [HELD] * 31
        await until(lambda: all(one.answers or one.handed_over for one in callers))
        assert sum(len(answer) for one in callers for answer in one.answers) < 2 << 20
        given = sum(len(one.answers) for one in callers)
        assert at.delivery.ledger.in_flight(PLACE) == given
        assert given + sum(len(one.handed_over) for one in callers) == 31


async def test_nothing_to_give_is_waited_for_by_the_handler(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at, messages=1)
        await ways.received()
        assert await ways.is_handlers(wait_ms=1_000)


async def test_a_handle_that_is_refused_is_told_so(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        caller = DirectCaller()
        assert ways.acknowledge(caller, "no handle") is HELD
        await until(lambda: bool(caller.answers))
        [outcome] = delivery_pb2.AcknowledgeResponse.FromString(caller.answers[0]).outcomes
        assert outcome.HasField("refusal")
        [handle] = await ways.received()
        caller = DirectCaller()
        assert ways.acknowledge(caller, "no handle", handle) is HELD
        await until(lambda: bool(caller.answers))
        told = delivery_pb2.AcknowledgeResponse.FromString(caller.answers[0])
        assert [one.HasField("refusal") for one in told.outcomes] == [True, False]


async def test_the_message_of_a_caller_that_is_gone_comes_again_uncounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        gone, receive, given = DirectCaller(), at.delivery.receive_at_once, 0

        def gone_then(wish: Wish, calls: int = 1) -> Sequence[Batch]:
            nonlocal given
            batches = receive(wish, calls)
            gone.gone, given = True, at.delivery.ledger.in_flight(PLACE)
            return batches

        with monkeypatch.context() as patch:
            patch.setattr(at.delivery, "receive_at_once", gone_then)
            assert ways.receive(gone) is HELD
            await until(lambda: given == 1 and at.delivery.ledger.in_flight(PLACE) == 0)
        assert not gone.answers
        caller = DirectCaller()
        assert ways.receive(caller) is HELD
        await until(lambda: bool(caller.answers))
        message = message_in(caller.answers[0])
        assert (decode_record(message.record).queue_offset, message.delivery_number) == (0, 1)


async def test_a_master_that_is_one_no_more_answers_by_its_handlers(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        [handle] = await ways.received()
        receiver, acknowledger = DirectCaller(), DirectCaller()
        assert ways.receive(receiver) is HELD
        assert ways.acknowledge(acknowledger, handle) is HELD
        at.delivery.journal.drop()
        assert (receiver.answers, acknowledger.answers) == ([], [])
        assert len(receiver.handed_over) == len(acknowledger.handed_over) == 1
        assert await ways.is_handlers()
        assert ways.acknowledge(acknowledger, handle) is HELD
        await until(lambda: len(acknowledger.handed_over) == 2)


async def test_an_acknowledgement_without_its_replicas_is_refused(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        handle, other = await ways.received(2)
        acknowledgement = at.broker.acknowledgement
        acknowledgement._owes_replicas = acknowledgement.waits = True  # from here on nobody has what is written
        caller = DirectCaller()
        assert ways.acknowledge(caller, handle) is HELD
        await until(lambda: bool(caller.ended))
        [(code, details, trailing)] = caller.ended
        assert (code, dict(trailing)["rocketmq-status"]) == (grpc.StatusCode.DATA_LOSS, "FLUSH_DISK_TIMEOUT")
        assert "not known to be safe: SLAVE_NOT_AVAILABLE" in details
        assert not caller.answers
        caller = DirectCaller()
        request = calls_pb2.AckMessageRequest(group=pb.Resource(name=GROUP), topic=pb.Resource(name=TOPIC))
        request.entries.add(message_id="id", receipt_handle=other)
        assert ways.acks(request.SerializeToString(), caller) is HELD
        await until(lambda: bool(caller.answers))
        answer = calls_pb2.AckMessageResponse.FromString(caller.answers[0])
        assert answer.status.code == pb.MASTER_PERSISTENCE_TIMEOUT
        assert not caller.handed_over


@pytest.mark.parametrize("error", [DiskFull("There is no room."), RuntimeError("a fault of ours")])
async def test_a_journal_that_cannot_be_written_is_told_by_the_handler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        [handle] = await ways.received()

        def fails(*_: Any, **__: Any) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(at.store, "append", fails)
            caller = DirectCaller()
            assert ways.acknowledge(caller, handle) is HELD
            await until(lambda: bool(caller.handed_over or caller.answers))
            assert not caller.answers
            assert ways.acknowledge(DirectCaller(), handle) is None, "now it is known before"
        await until(lambda: at.delivery.journal.failure is None)


async def test_a_receive_does_not_wait_for_a_journal_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first finds out; those after it are the handler's, which does not wait for it either."""
    async with delivering(tmp_path) as at:
        ways = await begun(at)

        def full(*_: Any, **__: Any) -> Any:
            raise DiskFull("There is no room.")

        with monkeypatch.context() as patch:
            patch.setattr(at.store, "append", full)
            caller = DirectCaller()
            assert ways.receive(caller) is HELD
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(caller.answers) == 1
            assert ways.receive() is None
            batch = await at.delivery.receive(Wish(GROUP, TOPIC, invisible_ms=60_000, most=1))
            assert len(batch.messages) == 1
        await until(lambda: at.delivery.journal.failure is None)


async def test_who_comes_when_the_journal_is_written_again_does_not_wait_for_the_turn_that_was_to_try_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That turn is up to a second away."""
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        [handle] = await ways.received()

        def full(*_: Any, **__: Any) -> Any:
            raise DiskFull("There is no room.")

        with monkeypatch.context() as patch:
            patch.setattr(at.store, "append", full)
            caller = DirectCaller()
            assert ways.acknowledge(caller, handle) is HELD
            await until(lambda: bool(caller.handed_over))
        at.delivery.journal.write()  # as a handler does
        callers = [DirectCaller() for _ in range(3)]
        assert [ways.receive(one) for one in callers] == [HELD] * 3
        for _ in range(5):
            await asyncio.sleep(0)
        assert [len(one.answers) for one in callers] == [1, 1, 1]


async def test_a_topic_that_grows_is_received_from_whole(tmp_path: Path) -> None:
    """Where a receive looks is kept only while group, topics and places are the same."""
    async with delivering(tmp_path) as at:
        ways = await begun(at, messages=1)
        await ways.received()
        assert await ways.is_handlers()
        await at.broker.topics.change([TopicConfig(TOPIC, 3, 3)], [])  # type: ignore[attr-defined]
        await at.send(TOPIC, 1, queue=2)
        await ways.received()


async def test_rocketmq_5_clients_acknowledge_alike(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        ways = await begun(at)
        handles = await ways.received(2)
        request = calls_pb2.AckMessageRequest(group=pb.Resource(name=GROUP), topic=pb.Resource(name=TOPIC))
        for number, handle in enumerate((*handles, "no handle")):
            request.entries.add(message_id=f"id {number}", receipt_handle=handle)
        caller = DirectCaller()
        assert ways.acks(request.SerializeToString(), caller) is HELD
        await until(lambda: bool(caller.answers))
        answer = calls_pb2.AckMessageResponse.FromString(caller.answers[0])
        assert answer.status.code == pb.MULTIPLE_RESULTS
        assert [one.status.code for one in answer.entries] == [pb.OK, pb.OK, pb.INVALID_RECEIPT_HANDLE]
        assert ways.cursor() == 2
        assert ways.acks(request.SerializeToString(), DirectCaller(headers=())) is None, "nobody said who it is"
        assert ways.acks(b"\xff", DirectCaller()) is None
