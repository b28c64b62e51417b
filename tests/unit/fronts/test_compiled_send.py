"""The compiled core against its Python twin: the same requests through both, the same answers and the same log."""

import asyncio
import errno
import os
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import strategies as st

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD
from tandemmq.store import compiled_core as compiled_core_module
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.rules import SPECIAL
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import CoreNotUsable, check_core, compiled_core, core_problem
from tandemmq.store.format.host import Host
from tandemmq.store.fronts.held_answer import HeldAnswers, SendCore
from tandemmq.store.fronts.native.answers import send_response
from tandemmq.store.fronts.native.direct_send import DirectSend
from tandemmq.store.fronts.native.requests import new_message, peer_host
from tandemmq.store.log.marks.running_flags import Reason
from tandemmq.store.settings import CoreChoice
from tandemmq.store.v1 import message_pb2, store_pb2
from tests.campaigns import examples
from tests.faults.faulty_disk import Fault, FaultyDisk
from tests.unit.broker.broker_kit import HOST, Kit, broker, records
from tests.unit.fronts.compiled_kit import Way, around_the_core, changed_by_sends, comparable, logged
from tests.unit.fronts.direct_caller import DirectCaller

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

PEERS = ("ipv4:10.1.2.3:4567", "ipv6:%5Bfe80::1%5D:4567", "unix:/tmp/socket")
TOPICS = ("orders", "bills", "closed", "missing", "SCHEDULE_TOPIC_XXXX", "%RETRY%workers", "")


@asynccontextmanager
async def sending(root: Path, *, compiled: bool, **settings: Any) -> AsyncIterator[tuple[Kit, SendCore | None]]:
    """A broker with some topics, and the core over it, if it is to be there.

    `remembered`: so many messages at most, to recognize copies of them; unset: as many as usual.
    """
    remembered = settings.pop("remembered", 0)
    size: dict[str, Any] = {"mapped_file_size_commit_log": 1 << 20, "rules": {"file_size": 1 << 20}}
    async with broker(root, **{**size, **settings}) as kit:
        for topic, perm in (("orders", 6), ("bills", 6), ("closed", 4), ("%RETRY%workers", 6)):
            kit.topics._entries[topic] = TopicConfig(topic, 4, 4, perm)
        if remembered and kit.sender.duplicates is not None:
            kit.sender.duplicates.most = remembered
        core = None
        if compiled:
            core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").send
        yield kit, core


def python_way(kit: Kit, message: bytes, peer: str) -> bytes | str:
    """The answer of the Python path, or the name of its refusal."""
    try:
        request = store_pb2.SendRequest.FromString(message)
        stored = kit.broker.store_at_once(new_message(request.message, peer_host(peer)))
    except (TandemError, DecodeError) as error:
        return type(error).__name__
    if stored is None:
        return "a topic must be made"
    return send_response(Receipt(*stored, PutStatus.PUT_OK)).SerializeToString()


texts = st.text(max_size=6) | st.sampled_from(["\x01", "\x02", "é", "\U0001f600", "a b", "k" * 40_000])
names = st.sampled_from(
    ["color", "TAGS", "KEYS", "WAIT", "DELAY", "UNIQ_KEY", "TRAN_MSG", "TIMER_DELAY_MS", "__SHARDINGKEY", "POP_CK", ""]
) | st.text(max_size=5)  # fmt: skip
messages = st.builds(
    message_pb2.Message,
    topic=st.sampled_from(TOPICS),
    queue_id=st.none() | st.sampled_from([0, 1, 3, 4, -1, -2, 2**31 - 1]),
    body=st.binary(max_size=40) | st.sampled_from([b"x" * 16_384, b"x" * 16_385]),
    tag=st.just("") | texts,
    keys=st.lists(st.text(min_size=1, max_size=4) | texts, max_size=3),
    properties=st.dictionaries(names, texts, max_size=4),
    flag=st.sampled_from([0, 1, -1, 2**31 - 1]),
    sys_flag=st.sampled_from([0, 0, 0, 1, 4]),
    born_timestamp=st.sampled_from([0, 1, 1_760_000_000_000, -1]),
    born_host=st.sampled_from(["", "", "", "1.2.3.4:5", "nowhere"]),
    reconsume_times=st.sampled_from([0, 0, 0, 1]),
)
requests = st.builds(store_pb2.SendRequest, message=messages, no_wait=st.booleans()).map(
    lambda request: request.SerializeToString()
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A request with a byte changed, a piece doubled, or its end missing."""
    data = draw(requests)
    at = draw(st.integers(0, max(0, len(data) - 1)))
    how = draw(st.sampled_from(["byte", "twice", "cut"]))
    if how == "byte" and data:
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    return data + data[at:] if how == "twice" else data[:at]


@examples(25, 300, st.lists(st.tuples(requests | damaged(), st.sampled_from(PEERS)), max_size=12))
def test_both_ways_give_the_same_answers_and_the_same_log(calls: list[tuple[bytes, str]]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare(Path(one), Path(two), calls))


async def _compare(one: Path, two: Path, calls: list[tuple[bytes, str]]) -> None:
    async with sending(one, compiled=True) as (kit, core), sending(two, compiled=False) as (twin, _):
        assert core is not None
        for message, peer in calls:
            before = changed_by_sends(kit)
            answer: bytes | str | None = core.answer(message, peer_host(peer).packed)
            expected = python_way(twin, message, peer)
            if answer is None:
                assert changed_by_sends(kit) == before
                answer = python_way(kit, message, peer)
            assert _without_made_key(answer) == _without_made_key(expected)
            assert changed_by_sends(kit) == changed_by_sends(twin)
            kit.clock.now = twin.clock.now = kit.clock.now + 1
        await asyncio.sleep(0)
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]
        assert _counted(kit) == _counted(twin)
        end = kit.store.commit_log.max_offset
    async with sending(one, compiled=False) as (kit, _):
        assert kit.store.commit_log.max_offset == end


def _without_made_key(answer: bytes | str) -> object:
    """Ids that stores make have counters: one is left out where the core asks for it and does not take the call."""
    if isinstance(answer, str):
        return answer
    response = store_pb2.SendResponse.FromString(answer)
    assert response.SerializeToString() == answer
    if response.receipt.unique_key.startswith("0A000001"):
        response.receipt.unique_key = "made"
    return response


def _counted(kit: Kit) -> object:
    counts = kit.traffic
    appended = sum(counts._append.counts)
    return {topic: (one.messages, one.bytes, list(one.sizes.counts)) for topic, one in counts._in.items()}, appended


def request(topic: str = "orders", body: bytes = b"one", no_wait: bool = False, **fields: Any) -> bytes:
    message = message_pb2.Message(topic=topic, body=body, **fields)
    return store_pb2.SendRequest(message=message, no_wait=no_wait).SerializeToString()


PLAIN = (
    request(),
    request(queue_id=3, tag="paid", keys=["a", "b"], properties={"UNIQ_KEY": "0A", "color": "blau-grün", "n": "1"}),
    request(body=b"", born_timestamp=5, flag=-1, no_wait=True),
    request(properties={"TAGS": "a", "KEYS": "b c", "WAIT": "false"}),
    request(sys_flag=0x301, properties={"WAIT": "true"}),
    request("%RETRY%workers", b"x" * 10_000, queue_id=-1),
)
NOT_PLAIN = (
    request("missing"),
    request("closed"),
    request("SCHEDULE_TOPIC_XXXX"),
    request(queue_id=4),
    request(queue_id=-2),
    request(body=b"x" * 16_385),
    request(tag="a\x01b"),
    request(keys=["a b"]),
    request(keys=[""]),
    request(tag="a", properties={"TAGS": "b"}),
    request(keys=["a"], properties={"KEYS": "b"}),
    request(sys_flag=4),
    request(sys_flag=0x400),
    request(born_timestamp=-1),
    request(born_host="1.2.3.4:5"),
    request(reconsume_times=1),
    *(request(properties={name: "1"}) for name in sorted(SPECIAL)),
    request(properties={"empty": ""}),
    request(properties={"": "nameless"}),
    request(properties={"long": "x" * 32_767}),
    request() + b"\x18\x01",  # an unknown field of the request
    b"\x0a\x0b" + request()[2:] + b"\x60\x01",  # and of the message
    b"\x0a\x0e\x0a\x06orders\x1a\x01a\x1a\x01b",  # a body twice
    b"\x0a\x0c\x0a\x06orders\x22\x02\xc3\x28",  # a tag that is no UTF-8
    b"\x0a\x0c\x0a\x86\x00orders\x1a\x01a",  # a length with a byte more than it needs
    b"\x0a\x0a\x0a\x06orders\x10\x80",  # the end of a number is missing
    b"",
)


async def test_what_is_plain_is_taken_and_nothing_else(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True) as (kit, core):
        assert core is not None
        for message in PLAIN:
            for queue in range(4):  # the first message of each queue is Python's
                given = store_pb2.SendRequest.FromString(message)
                given.message.queue_id = queue
                python_way(kit, given.SerializeToString(), PEERS[0])
        taken = [core.answer(message, peer_host(PEERS[0]).packed) for message in PLAIN]
        assert None not in taken
        assert core.taken == len(PLAIN)
        before = changed_by_sends(kit)
        assert [core.answer(message, peer_host(PEERS[0]).packed) for message in NOT_PLAIN] == [None] * len(NOT_PLAIN)
        assert changed_by_sends(kit) == before
        await asyncio.sleep(0)
        await kit.dispatched()
        found = {record.properties["UNIQ_KEY"] for queue in range(4) for record in records(kit.pull("orders", queue))}
        for answer in taken:
            receipt = store_pb2.SendResponse.FromString(answer or b"").receipt
            assert receipt.unique_key in found or kit.pull("%RETRY%workers").count


async def test_it_takes_nothing_while_the_store_takes_nothing(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True) as (kit, core):
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        plain = request(queue_id=0)
        assert core.answer(plain, HOST.packed) is not None
        kit.store.flags.set(Reason.FENCED, "fenced")
        assert core.answer(plain, HOST.packed) is None
        kit.store.flags.clear(Reason.FENCED)
        assert core.answer(plain, HOST.packed) is not None
        kit.store.commit_log.offsets.doubt(("orders", 0))
        assert core.answer(plain, HOST.packed) is None
    async with sending(tmp_path, compiled=False) as (kit, _):
        await kit.dispatched()
        assert kit.pull("orders").count == 3


async def test_a_turn_whose_end_cannot_be_had_is_not_the_last_that_is_told(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True) as (kit, _):
        failing, told = [True], list[bool]()

        def soon(callback: Any) -> object:
            if failing.pop():
                raise RuntimeError("the loop is closed")
            return kit.store.timers.call_soon(callback)

        core = compiled_core(kit.broker, soon, CoreChoice.ALWAYS, "cluster").send
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        with pytest.raises(RuntimeError):
            core.answer(request(queue_id=0), HOST.packed)
        kit.store.grown.listen(lambda: told.append(True))
        failing.append(False)
        assert core.answer(request(queue_id=0), HOST.packed) is not None
        assert told == [True]
        await asyncio.sleep(0)
        assert kit.traffic._in["orders"].messages == 3


async def test_files_roll_by_python_and_nothing_is_lost_at_the_seam(tmp_path: Path) -> None:
    small: dict[str, Any] = {"mapped_file_size_commit_log": 64 << 10, "rules": {"file_size": 64 << 10}}
    async with sending(tmp_path, compiled=True, **small) as (kit, core):
        assert core is not None
        left = 0
        for number in range(200):
            message = request(body=b"%d" % number + b"." * 2_000, queue_id=0)
            if core.answer(message, HOST.packed) is None:
                assert isinstance(python_way(kit, message, PEERS[0]), bytes)
                left += 1
        assert 6 <= left < 20  # the first of the queue; the end of each file, and what must wait for the next one
        assert core.taken == 200 - left
    async with sending(tmp_path, compiled=False, **small) as (kit, _):
        await kit.dispatched()
        numbers = [int(one.body.partition(b".")[0]) for at in (0, 100) for one in records(kit.pull("orders", 0, at))]
        assert sorted(set(numbers)) == list(range(200))


async def test_a_file_that_is_put_back_within_a_turn_gets_what_is_sent_after(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True) as (kit, core):
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        file = kit.store.commit_log.files.files[0]
        for number in range(3):
            assert core.answer(request(body=b"%d" % number, queue_id=0), HOST.packed) is not None
            file.path.unlink()
            assert file.put_back_if_deleted()
        assert [record.body for record in logged(kit)] == [b"one", b"0", b"1", b"2"]
    async with sending(tmp_path, compiled=False) as (kit, _):
        await kit.dispatched()
        assert [record.body for record in records(kit.pull("orders"))] == [b"one", b"0", b"1", b"2"]


async def test_a_file_is_held_no_longer_than_a_turn(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True) as (kit, core):
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        mapping = kit.store.commit_log.files.files[0].map
        assert core.answer(request(queue_id=0), HOST.packed) is not None
        with pytest.raises(BufferError):
            mapping.close()
        await asyncio.sleep(0)
        mapping.close()


async def test_copies_are_recognized(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True, window=60_000) as (kit, core):
        assert core is not None
        first = request(queue_id=1, properties={"UNIQ_KEY": "one"})
        python_way(kit, request(queue_id=1), PEERS[0])
        answer = core.answer(first, HOST.packed)
        assert answer is not None
        assert core.answer(first, HOST.packed) is None
        assert python_way(kit, first, PEERS[0]) == answer
        kit.clock.now += 60_001
        again = core.answer(first, HOST.packed)
        assert again is not None
        assert again != answer


sends_again = st.tuples(
    st.sampled_from(["one", "two", "three", "größe"]),
    st.sampled_from(["orders", "bills", "%RETRY%workers"]),
    st.sampled_from([0, 0, 0, 1]),
)
moves = st.one_of(sends_again, sends_again, sends_again, st.sampled_from([1, 30_000, 60_000, 60_001]), st.none())


@examples(6, 400, st.lists(moves, max_size=30))
def test_both_ways_recognize_the_same_copies(played: list[tuple[str, str, int] | int | None]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare_copies(Path(one), Path(two), played))


async def _compare_copies(one: Path, two: Path, played: list[tuple[str, str, int] | int | None]) -> None:
    """A number: so many milliseconds pass; None: the role has changed, and the index alone knows what was stored."""
    async with (
        sending(one, compiled=True, window=60_000, remembered=2) as (kit, core),
        sending(two, compiled=False, window=60_000, remembered=2) as (twin, _),
    ):
        assert core is not None
        for move in played:
            for each in (kit, twin):
                if isinstance(move, int):
                    each.clock.now += move
                elif move is None:
                    await each.dispatched()
                    assert each.sender.duplicates is not None
                    each.sender.duplicates.begin_anew()
            if isinstance(move, tuple):
                key, topic, times = move
                message = request(topic, queue_id=1, properties={"UNIQ_KEY": key}, reconsume_times=times)
                answer = core.answer(message, peer_host(PEERS[0]).packed) or python_way(kit, message, PEERS[0])
                assert answer == python_way(twin, message, PEERS[0])
            assert known_copies(kit) == known_copies(twin)
        assert changed_by_sends(kit) == changed_by_sends(twin)


def known_copies(kit: Kit) -> object:
    window = kit.sender.duplicates
    assert window is not None
    return dict(window.stored), list(window.order), window.recognized


async def test_a_store_with_an_address_of_ipv6(tmp_path: Path) -> None:
    host = Host("fe80::7", 10911)
    own: dict[str, Any] = {"rules": {"store_host": host}}
    async with (
        sending(tmp_path / "a", compiled=True, **own) as (kit, core),
        sending(tmp_path / "b", compiled=False, **own) as (twin, _),
    ):
        assert core is not None
        for peer in PEERS:
            for message in (request(queue_id=0, properties={"UNIQ_KEY": "k"}),) * 2:
                answer = core.answer(message, peer_host(peer).packed) or python_way(kit, message, peer)
                assert answer == python_way(twin, message, peer)
        assert core.taken == 5
        assert logged(kit) == logged(twin)
        assert logged(kit)[-1].store_host == host


async def test_records_have_the_same_bytes_where_no_map_has_an_order_of_its_own(tmp_path: Path) -> None:
    message = request(queue_id=0, tag="t", keys=["a", "b"], properties={"UNIQ_KEY": "k"}, flag=3, born_timestamp=9)
    async with (
        sending(tmp_path / "a", compiled=True) as (kit, core),
        sending(tmp_path / "b", compiled=False) as (twin, _),
    ):
        assert core is not None
        for kits in (kit, twin):
            python_way(kits, message, PEERS[0])
        assert core.answer(message, peer_host(PEERS[0]).packed) == python_way(twin, message, PEERS[0])
        size = kit.store.commit_log.max_offset
        logs = [one.store.commit_log.files.files[0].map[:size] for one in (kit, twin)]
        assert logs[0] == logs[1]


async def test_what_a_held_answer_says_when_the_disk_does_not_answer(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, _):
        way = DirectSend(kit.broker, kit.traffic).when_safe
        answer, call = send_response_of(store_pb2.PUT_OK), DirectCaller(PEERS[0])
        held = HeldAnswers(way)
        held.held.append((call, answer, 0.0))
        held(PutStatus.FLUSH_DISK_TIMEOUT)
        assert call.later == send_response_of(store_pb2.FLUSH_DISK_TIMEOUT)


def send_response_of(status: store_pb2.SendStatus.ValueType) -> bytes:
    receipt = store_pb2.SendReceipt(status=status, message_id="A", unique_key="k", physical_offset=300)
    return store_pb2.SendResponse(receipt=receipt).SerializeToString()


@around_the_core
async def test_a_send_that_waits_for_the_disk_is_held_until_it_is_there(tmp_path: Path, way: Way) -> None:
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        direct = way(DirectSend(kit.broker, kit.traffic, core))
        call = DirectCaller(PEERS[0])
        assert direct(request(queue_id=0), call) is HELD
        assert core.taken == 1
        await kit.store.wait_flushed(core.end_offset)
        while call.later is None:
            await asyncio.sleep(0.001)
        receipt = store_pb2.SendResponse.FromString(call.later).receipt
        assert (receipt.status, receipt.queue_offset) == (store_pb2.PUT_OK, 1)
        at_once = direct(request(queue_id=0, no_wait=True), call)
        assert isinstance(at_once, bytes)


@around_the_core
async def test_the_sends_of_a_turn_wait_as_one_for_the_end_of_the_last(tmp_path: Path, way: Way) -> None:
    """Where a flush that began before ends before it, none of them is answered."""
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        python_way(kit, request(queue_id=0), PEERS[0])
        direct = way(DirectSend(kit.broker, kit.traffic, core))
        waits: list[tuple[int, Callable[[PutStatus], None], bool]] = []

        def when_safe(end_offset: int, told: Callable[[PutStatus], None], *, wait: bool) -> None:
            waits.append((end_offset, told, wait))

        kit.broker.acknowledgement.when_safe = when_safe  # type: ignore[method-assign]
        for _ in range(2):
            calls = [DirectCaller(PEERS[0]) for _ in range(3)]
            assert [direct(request(queue_id=0), call) for call in calls] == [HELD] * 3
            assert waits == []
            await asyncio.sleep(0)
            ((end_offset, told, wait),) = waits
            assert (end_offset, wait) == (kit.store.commit_log.max_offset, True)
            assert [call.later for call in calls] == [None] * 3
            told(PutStatus.PUT_OK)
            receipts = [store_pb2.SendResponse.FromString(call.later or b"").receipt for call in calls]
            assert [receipt.status for receipt in receipts] == [store_pb2.PUT_OK] * 3
            assert sorted({receipt.queue_offset for receipt in receipts}) == [at.queue_offset for at in receipts]
            waits.clear()


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@around_the_core
async def test_sends_that_wait_for_replicas_are_held_until_these_have_them(
    tmp_path: Path, way: Way, flush: str
) -> None:
    async with sending(tmp_path, compiled=True, flush_disk_type=flush, broker_role="SYNC_MASTER") as (kit, core):
        python_way(kit, request(queue_id=0), PEERS[0])
        direct, log = way(DirectSend(kit.broker, kit.traffic, core)), kit.store.commit_log
        transfer = kit.broker.acknowledgement.transfer
        transfer.begin()
        transfer.progress(True, 0, 1)
        first, second = DirectCaller(PEERS[0]), DirectCaller(PEERS[0])
        assert direct(request(queue_id=0), first) is HELD
        between = log.max_offset
        assert direct(request(queue_id=0), second) is HELD
        await asyncio.sleep(0)
        transfer.progress(True, between, 1)
        await kit.store.wait_flushed(log.max_offset)
        assert (first.later, second.later) == (None, None)
        transfer.progress(True, log.max_offset, 1)
        assert [status_of(call) for call in (first, second)] == [store_pb2.PUT_OK] * 2
        alone = DirectCaller(PEERS[0])
        assert direct(request(queue_id=0), alone) is HELD
        transfer.end()
        await kit.store.wait_flushed(log.max_offset)
        while alone.later is None:
            await asyncio.sleep(0)
        assert status_of(alone) == store_pb2.SLAVE_NOT_AVAILABLE


@pytest.mark.parametrize("compiled", [True, False])
async def test_a_master_that_becomes_a_slave_in_the_turn_of_a_send_does_not_say_that_it_is_safe(
    tmp_path: Path, compiled: bool
) -> None:
    """Its new master does not have the message: the slave gives it up."""
    async with sending(tmp_path, compiled=compiled, broker_role="SYNC_MASTER") as (kit, core):
        python_way(kit, request(queue_id=0), PEERS[0])
        transfer = kit.broker.acknowledgement.transfer
        transfer.begin()
        transfer.progress(True, kit.store.commit_log.max_offset, 1)
        call = DirectCaller(PEERS[0])
        assert DirectSend(kit.broker, kit.traffic, core)(request(queue_id=0), call) is HELD
        transfer.end()
        kit.store.replica.demote(7)
        while call.later is None:
            await asyncio.sleep(0)
        assert status_of(call) == store_pb2.SLAVE_NOT_AVAILABLE


def status_of(call: DirectCaller) -> store_pb2.SendStatus.ValueType:
    """What a call that was held was told."""
    assert call.later is not None
    return store_pb2.SendResponse.FromString(call.later).receipt.status


@around_the_core
async def test_sends_that_cannot_be_made_durable_are_told_so(tmp_path: Path, way: Way) -> None:
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        python_way(kit, request(queue_id=0), PEERS[0])
        direct = way(DirectSend(kit.broker, kit.traffic, core))
        call, late = DirectCaller(PEERS[0]), DirectCaller(PEERS[0])
        assert direct(request(queue_id=0), call) is HELD
        kit.store._flush._fail(OSError("the disk is gone"))
        assert direct(request(queue_id=0), late) is None, "the store takes no more"
        while call.later is None:
            await asyncio.sleep(0)
        assert store_pb2.SendResponse.FromString(call.later).receipt.status == store_pb2.FLUSH_DISK_TIMEOUT


async def test_the_numbers_of_the_fields_are_those_of_the_contract() -> None:
    """The core has them as constants: who changes a field changes it there too."""
    fields = {field.name: field.number for field in message_pb2.Message.DESCRIPTOR.fields}
    assert fields == {
        "topic": 1, "queue_id": 2, "body": 3, "tag": 4, "keys": 5, "properties": 6, "flag": 7, "sys_flag": 8,
        "born_timestamp": 9, "born_host": 10, "reconsume_times": 11, "repeatable": 12,
    }  # fmt: skip
    receipt = {field.name: field.number for field in store_pb2.SendReceipt.DESCRIPTOR.fields}
    assert receipt == {
        "status": 1, "message_id": 2, "unique_key": 3, "queue_id": 4, "queue_offset": 5, "physical_offset": 6,
        "store_timestamp": 7, "reason": 8, "transaction_handle": 9, "recall_handle": 10,
    }  # fmt: skip


async def test_never_and_always(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with broker(tmp_path) as kit:

        def state(choice: CoreChoice, *, asks_who: bool = False) -> str:
            core = compiled_core(kit.broker, kit.store.timers.call_soon, choice, "cluster", asks_who=asks_who)
            assert (core.send is None) == (core.state != "compiled")
            assert (core.frames is None) == (core.link is None) == (asks_who or core.send is None)
            return core.state

        assert state(CoreChoice.NEVER) == "python: compiledCore is never"
        assert state(CoreChoice.AUTO) == "compiled"
        assert state(CoreChoice.AUTO, asks_who=True) == "compiled"
        monkeypatch.setattr(kit.store.commit_log, "append_crc", True)
        assert state(CoreChoice.AUTO) == "python: enabledAppendPropCRC is true"
        monkeypatch.setattr(kit.store.commit_log, "append_crc", False)
        monkeypatch.setattr("tandemmq.store.compiled_core._digest", lambda: "other source")
        assert state(CoreChoice.AUTO).startswith("python: it was built from other source")
        with pytest.raises(CoreNotUsable, match="built from other source"):
            check_core(CoreChoice.ALWAYS)
        monkeypatch.setattr("tandemmq.store.compiled_core._is_built", lambda path: False)
        assert state(CoreChoice.AUTO) == "python: it is not built for this Python"
        with pytest.raises(CoreNotUsable, match="not built for this Python"):
            check_core(CoreChoice.ALWAYS)
        check_core(CoreChoice.AUTO)


def test_every_module_of_the_core_is_looked_for() -> None:
    package = Path(compiled_core_module.__file__).parent.parent
    declared = {
        ".".join(one.relative_to(package).with_suffix("").parts)
        for one in package.glob("**/compiled/*.pxd")
        if one.with_suffix(".py").exists()
    }
    assert set(compiled_core_module._MODULES) == declared


async def test_a_record_that_the_system_writes_by_half_is_not_there(tmp_path: Path) -> None:
    """The Python way says what is wrong; nothing has changed, and what was written is zeros again."""
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        file, end, before = kit.store.commit_log.files.files[0], kit.store.commit_log.max_offset, changed_by_sends(kit)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (end + 100, limits[1]))
        try:
            assert core.answer(request(queue_id=0), HOST.packed) is None
            assert changed_by_sends(kit) == before
            assert not any(file.map[end:])
            assert python_way(kit, request(queue_id=0), PEERS[0]) == "DiskFailed"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert changed_by_sends(kit) == before
        assert not any(file.map[end:])
        assert core.answer(request(queue_id=0), HOST.packed) is not None
        assert [record.queue_offset for record in logged(kit)] == [0, 1]


async def test_a_disk_that_is_watched_sees_what_the_core_writes(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with sending(tmp_path, compiled=True, disk=disk, flush_disk_type="SYNC_FLUSH") as (kit, core):
        assert core is not None
        python_way(kit, request(queue_id=0), PEERS[0])
        end, before = kit.store.commit_log.max_offset, changed_by_sends(kit)
        disk._fault = Fault("pwrite", disk.counts["pwrite"] + 1, errno.EIO)
        assert core.answer(request(queue_id=0), HOST.packed) is None
        assert changed_by_sends(kit) == before
        assert not any(kit.store.commit_log.files.files[0].map[end:])
        assert core.answer(request(queue_id=0), HOST.packed) is not None


async def test_a_sync_that_fails_without_the_interpreter_acknowledges_nothing(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        direct, call = DirectSend(kit.broker, kit.traffic, core), DirectCaller(PEERS[0])
        python_way(kit, request(queue_id=0), PEERS[0])
        assert direct(request(queue_id=0), call) is HELD
        file, (reader, writer) = kit.store.commit_log.files.files[0], os.pipe()
        real, file.fd = file.fd, writer  # which cannot be synced
        while call.later is None:
            await asyncio.sleep(0)
        file.fd = real
        os.close(reader)
        os.close(writer)
        assert store_pb2.SendResponse.FromString(call.later).receipt.status == store_pb2.FLUSH_DISK_TIMEOUT
        assert kit.store.flags.holds(Reason.FLUSH_FAILED)
        assert kit.store.flushed_offset == 0
        assert direct(request(queue_id=0), DirectCaller(PEERS[0])) is None
