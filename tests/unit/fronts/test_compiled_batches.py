"""The compiled core against its Python twin for encoded batches: the same answers, the same log, the same counts."""

import asyncio
import errno
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import strategies as st

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD
from tandemmq.common.slices import Slices
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.compiled_core import compiled_core, core_problem
from tandemmq.store.format.batch import LOOKED_INTO, encode_client_batch
from tandemmq.store.fronts.held_answer import SendCore
from tandemmq.store.fronts.native import answers, requests
from tandemmq.store.fronts.native.direct_send import DirectSendBatch
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.settings import CoreChoice
from tandemmq.store.v1 import message_pb2, store_pb2
from tests.campaigns import examples
from tests.faults.faulty_disk import Fault, FaultyDisk
from tests.unit.broker.broker_kit import HOST, Kit
from tests.unit.fronts.compiled_kit import Way, around_the_core, changed_by_sends, comparable, logged
from tests.unit.fronts.direct_caller import DirectCaller
from tests.unit.fronts.test_compiled_send import PEERS, _counted, python_way, request, sending

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")


def batch_core(kit: Kit) -> SendCore:
    core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").batch
    assert core is not None
    return core


async def python_batch(kit: Kit, message: bytes, peer: str) -> bytes | str:
    """The answer of the Python path, or the name of its refusal."""
    try:
        given = store_pb2.SendBatchRequest.FromString(message)
        host = peer_host(peer)
        sent = await kit.broker.append(
            [requests.new_message(one, host) for one in given.messages],
            [requests.new_batch(one, host) for one in given.batches],
        )
    except (TandemError, DecodeError) as error:
        return type(error).__name__
    answer = await answers.receipts(sent, PutStatus.PUT_OK, Slices(kit.store.timers))
    return answer.SerializeToString()


def batch(topic: str = "orders", messages: bytes = b"", no_wait: bool = False, **fields: Any) -> bytes:
    encoded = message_pb2.EncodedBatch(topic=topic, messages=messages or ONE, **fields)
    return store_pb2.SendBatchRequest(batches=[encoded], no_wait=no_wait).SerializeToString()


ONE = encode_client_batch([(7, b"one", b"KEYS\x01a\x02")])
MANY = encode_client_batch([(n, b"%d" % n * 300, b"KEYS\x01%d\x02TAGS\x01t" % n) for n in range(60)])

pieces = st.tuples(
    st.sampled_from([0, 1, -1, 2**31 - 1]),
    st.binary(max_size=30) | st.sampled_from([b"", b"x" * 16_384, b"x" * 16_385, b"y" * 9_000]),
    st.binary(max_size=12)
    | st.sampled_from(
        [b"KEYS\x01k\x02", b"TAGS\x01t", b"WAIT\x01false\x02", b"a\x01b\x02DELAY\x013\x02", b"TIMER_DELAY_MS\x015",
         b"TRAN_MSG\x01true\x02", b"UNIQ_KEY\x01k\x02", b"xWAIT\x01y\x02", b"a\x01\x00", b"DELAY\x010\x02", b"WAIT\x02"]
    ),
)  # fmt: skip
bodies = st.lists(pieces, max_size=6).map(encode_client_batch) | st.just(MANY) | st.binary(max_size=50)
requests_of_batches = st.builds(
    store_pb2.SendBatchRequest,
    messages=st.just([]) | st.just([message_pb2.Message(topic="orders", body=b"alone", properties={"UNIQ_KEY": "k"})]),
    batches=st.lists(
        st.builds(
            message_pb2.EncodedBatch,
            topic=st.sampled_from(["orders", "orders", "bills", "closed", "missing", "%RETRY%workers", ""]),
            queue_id=st.none() | st.sampled_from([0, 1, 3, 4, -1, -2]),
            messages=bodies,
            count=st.sampled_from([0, 0, 1, 3, 60, -1]),
            sys_flag=st.sampled_from([0, 0, 1, 4, 0x400]),
            born_timestamp=st.sampled_from([0, 1, 1_760_000_000_000, -1]),
            born_host=st.sampled_from(["", "", "", "1.2.3.4:5"]),
            reconsume_times=st.sampled_from([0, 0, 0, 1]),
        ),
        min_size=1,
        max_size=2,
    ),
    no_wait=st.booleans(),
).map(lambda request: request.SerializeToString())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A request with a byte changed, a piece doubled, or its end missing."""
    data = draw(requests_of_batches)
    at = draw(st.integers(0, max(0, len(data) - 1)))
    how = draw(st.sampled_from(["byte", "twice", "cut"]))
    if how == "byte" and data:
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    return data + data[at:] if how == "twice" else data[:at]


@examples(25, 200, st.lists(st.tuples(requests_of_batches | damaged(), st.sampled_from(PEERS)), max_size=8))
def test_both_ways_give_the_same_answers_and_the_same_log(calls: list[tuple[bytes, str]]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare(Path(one), Path(two), calls))


async def _compare(one: Path, two: Path, calls: list[tuple[bytes, str]]) -> None:
    async with sending(one, compiled=False) as (kit, _), sending(two, compiled=False) as (twin, _):
        core = batch_core(kit)
        for message, peer in [(batch(queue_id=queue), PEERS[0]) for queue in range(4)] + calls:
            before = changed_by_sends(kit)
            answer: bytes | str | None = core.answer(message, peer_host(peer).packed)
            expected = await python_batch(twin, message, peer)
            if answer is None:
                assert changed_by_sends(kit) == before
                answer = await python_batch(kit, message, peer)
            assert answer == expected
            assert changed_by_sends(kit) == changed_by_sends(twin)
            kit.clock.now = twin.clock.now = kit.clock.now + 1
        await asyncio.sleep(0)
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]
        assert _counted(kit)[0] == _counted(twin)[0]  # type: ignore[index]
        end = kit.store.commit_log.max_offset
    async with sending(one, compiled=False) as (kit, _):
        assert kit.store.commit_log.max_offset == end


PLAIN = (
    batch(queue_id=0),
    batch(queue_id=1, count=60, messages=MANY, born_timestamp=5, sys_flag=0x301),
    batch(messages=MANY, no_wait=True),
    batch("bills", queue_id=-1, messages=encode_client_batch([(0, b"", b""), (1, b"x" * 16_384, b"xWAIT\x01y\x02")])),
)
NOT_PLAIN = (
    batch("missing"),
    batch("closed"),
    batch("%RETRY%workers"),
    batch("SCHEDULE_TOPIC_XXXX"),
    batch(queue_id=4),
    batch(count=2),
    batch(count=-1),
    batch(sys_flag=4),
    batch(born_timestamp=-1),
    batch(born_host="1.2.3.4:5"),
    batch(reconsume_times=1),
    batch(messages=ONE[:-1]),
    batch(messages=ONE + b"\0"),
    batch(messages=encode_client_batch([(0, b"x" * 16_385, b"")])),
    batch(messages=encode_client_batch([(0, b"x", b"KEYS\x01a\x00")])),
    batch(messages=encode_client_batch([(0, b"", b"")] * 1025)),
    *(batch(messages=encode_client_batch([(0, b"x", b"a\x01b\x02" + mark + b"\x011\x02")])) for mark in LOOKED_INTO),
    batch() + batch(),
    store_pb2.SendBatchRequest(messages=[message_pb2.Message(topic="orders")]).SerializeToString(),
    batch() + b"\x20\x01",  # an unknown field of the request
    b"\x12\x0a\x1a\x00\x0a\x06orders",  # fields in another order
    b"",
)


async def test_what_is_plain_is_taken_and_nothing_else(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=False) as (kit, _):
        core = batch_core(kit)
        for topic in ("orders", "bills"):
            for queue in range(4):  # the first message of each queue is Python's
                python_way(kit, request(topic, queue_id=queue), PEERS[0])
        assert None not in [core.answer(message, HOST.packed) for message in PLAIN]
        assert core.taken == len(PLAIN)
        before = changed_by_sends(kit)
        for message in NOT_PLAIN:
            assert core.answer(message, HOST.packed) is None, message[:80]
        assert changed_by_sends(kit) == before


async def test_records_have_the_bytes_of_the_python_way(tmp_path: Path) -> None:
    """Through the mapping, and laid out apart; with the address of a caller by IPv4 and by IPv6."""
    large = encode_client_batch([(n, b"%d" % n * 500, b"KEYS\x01%d\x02" % n) for n in range(60)])
    async with (
        sending(tmp_path / "a", compiled=False) as (kit, _),
        sending(tmp_path / "b", compiled=False) as (twin, _),
    ):
        core = batch_core(kit)
        for one in (kit, twin):
            python_way(one, request(queue_id=0, properties={"UNIQ_KEY": "k"}), PEERS[0])
        for peer in PEERS:
            for messages in (ONE, MANY, large):
                message = batch(queue_id=0, messages=messages)
                answer = core.answer(message, peer_host(peer).packed)
                assert answer == await python_batch(twin, message, peer)
        size = kit.store.commit_log.max_offset
        assert size == twin.store.commit_log.max_offset
        logs = [one.store.commit_log.files.files[0].map[:size] for one in (kit, twin)]
        assert logs[0] == logs[1]


async def test_no_core_where_copies_are_looked_for(tmp_path: Path) -> None:
    async with sending(tmp_path, compiled=False, window=60_000) as (kit, _):
        python_way(kit, request(queue_id=0), PEERS[0])
        assert batch_core(kit).answer(batch(queue_id=0), HOST.packed) is None


@around_the_core
async def test_a_batch_that_waits_for_the_disk_is_held_until_it_is_there(tmp_path: Path, way: Way) -> None:
    async with sending(tmp_path, compiled=False, flush_disk_type="SYNC_FLUSH") as (kit, _):
        python_way(kit, request(queue_id=0), PEERS[0])
        core = batch_core(kit)
        direct = way(DirectSendBatch(core, kit.broker.acknowledgement, kit.traffic))
        call, at_once = DirectCaller(PEERS[0]), DirectCaller(PEERS[0])
        assert direct(batch(queue_id=0, messages=MANY), call) is HELD
        await kit.store.wait_flushed(core.end_offset)
        while call.later is None:
            await asyncio.sleep(0)
        (receipt,) = store_pb2.SendBatchResponse.FromString(call.later).batch_receipts
        assert (receipt.status, receipt.first_queue_offset, receipt.count) == (store_pb2.PUT_OK, 1, 60)
        assert isinstance(direct(batch(queue_id=0, no_wait=True), at_once), bytes)
        late = DirectCaller(PEERS[0])
        assert direct(batch(queue_id=0), late) is HELD
        kit.store._flush._fail(OSError("the disk is gone"))
        while late.later is None:
            await asyncio.sleep(0)
        (receipt,) = store_pb2.SendBatchResponse.FromString(late.later).batch_receipts
        assert receipt.status == store_pb2.FLUSH_DISK_TIMEOUT


@around_the_core
async def test_a_disk_that_fails_leaves_the_batch_to_python(tmp_path: Path, way: Way) -> None:
    disk = FaultyDisk()
    async with sending(tmp_path, compiled=False, disk=disk) as (kit, _):
        python_way(kit, request(queue_id=0), PEERS[0])
        core = batch_core(kit)
        direct = way(DirectSendBatch(core, kit.broker.acknowledgement, kit.traffic))
        large = batch(queue_id=0, messages=encode_client_batch([(0, b"x" * 1000, b"")] * 60))
        before = changed_by_sends(kit)
        disk._fault = Fault("pwrite", disk.counts["pwrite"] + 1, errno.EIO)
        assert direct(large, DirectCaller(PEERS[0])) is None
        assert changed_by_sends(kit) == before
        assert isinstance(direct(large, DirectCaller(PEERS[0])), bytes)


def test_the_numbers_of_the_fields_are_those_of_the_contract() -> None:
    """The core has them as constants: who changes a field changes it there too."""

    def numbers(message: Any) -> dict[str, int]:
        return {field.name: field.number for field in message.DESCRIPTOR.fields}

    assert numbers(message_pb2.EncodedBatch) == {
        "topic": 1, "queue_id": 2, "messages": 3, "count": 4, "sys_flag": 5, "born_timestamp": 6, "born_host": 7,
        "reconsume_times": 8,
    }  # fmt: skip
    assert numbers(store_pb2.SendBatchRequest) == {"messages": 1, "batches": 2, "no_wait": 3}
    assert numbers(store_pb2.SendBatchResponse) == {"receipts": 1, "batch_receipts": 2}
    assert numbers(store_pb2.BatchReceipt) == {
        "status": 1, "queue_id": 2, "first_queue_offset": 3, "count": 4, "store_timestamp": 5, "message_id": 6,
        "physical_offsets": 7, "reason": 8,
    }  # fmt: skip
