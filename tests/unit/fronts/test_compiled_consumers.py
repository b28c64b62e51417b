"""The compiled core against its Python twins, for Receive and Acknowledge: the same bytes both ways, turn by turn."""

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tandemmq.common.grpc_transport import HELD
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import consuming_ways, core_problem
from tandemmq.store.delivery.clock import BootClock
from tandemmq.store.delivery.errors import BadHandle
from tandemmq.store.delivery.journal.journal_format import JOURNAL_TOPIC
from tandemmq.store.delivery.port import Batch, GivenMessage, Wish
from tandemmq.store.delivery.receiving.answer import GivenBatch
from tandemmq.store.delivery.receiving.handles import Shown, decode_handle, encode_handle
from tandemmq.store.format.record import decode_record, split_records
from tandemmq.store.fronts.native import delivery_answers
from tandemmq.store.fronts.native.direct_delivery import DirectAcknowledge, DirectReceive
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import message_pb2
from tests.campaigns import examples
from tests.unit.delivery.delivery_kit import DeliveringStore, delivering, state
from tests.unit.fronts.direct_caller import DirectCaller

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

GROUP, TOPIC = "workers", "orders"
NOW = 1_700_000_000_000


def python_way(batch: Batch) -> bytes:
    return delivery_answers.received(batch, message_pb2.RAW).SerializeToString()


given = st.builds(
    GivenMessage,
    st.sampled_from(["", "orders", "x" * 127, "x" * 128, "größe", "\U0001f600"]),
    st.sampled_from([b"record", b"", b"x" * 127, b"x" * 128, b"x" * 20_000]),
    st.sampled_from([1, 127, 128, (1 << 31) - 1]),
    st.sampled_from(["", "handle", "x" * 200]),
    st.sampled_from([-(1 << 63), -1, 0, 1, 60_000, (1 << 63) - 1]),
)


@examples(200, 5_000, st.lists(given, max_size=4))
def test_the_bytes_of_an_answer_are_the_same(messages: list[GivenMessage]) -> None:
    from tandemmq.store.fronts.native.compiled.consumer_codec import CompiledReceived

    batch = GivenBatch(messages)
    assert CompiledReceived(python_way).answer(batch) == python_way(batch)


@pytest.mark.parametrize(
    "message",
    [
        GivenMessage("\ud800", b"record", 1, "handle", 1),
        GivenMessage("orders", b"record", 1 << 31, "handle", 1),
        GivenMessage("orders", b"record", 1, "handle", 1 << 63),
    ],
)
def test_what_protobuf_does_not_take_is_refused_in_the_same_words(message: GivenMessage) -> None:
    from tandemmq.store.fronts.native.compiled.consumer_codec import CompiledReceived

    said = []
    for way in (python_way, CompiledReceived(python_way).answer):
        with pytest.raises(ValueError, match=".") as refused:
            way(GivenBatch([message]))
        said.append(str(refused.value))
    assert said[0] == said[1]


def forged(text: str, what: int) -> str:
    """A handle with one of its numbers changed; what is none stays so."""
    try:
        handle = decode_handle(text, GROUP, TOPIC)
    except BadHandle:
        return text
    changed = [
        handle._replace(place=handle.place._replace(queue=1)),
        handle._replace(offset=handle.offset + 1_000),
        handle._replace(number=handle.number + 1),
        handle._replace(resets=handle.resets + 1),
        handle._replace(start=handle.start - 1),
    ]
    return encode_handle(changed[what], Shown.AS_ASKED)


class Stream:
    """Turns of requests to one store, and what came of them."""

    def __init__(self, at: DeliveringStore, *, core: bool) -> None:
        from tandemmq.store.delivery.compiled import handle_codec

        self.at, self.metrics = at, StoreMetrics("cluster", "node")
        twins = (
            DirectReceive(at.delivery, PullLimits(32, 1 << 20), self.metrics),
            DirectAcknowledge(at.delivery, self.metrics),
        )
        if core:
            receiving: Any = at.delivery.receiving
            receiving.handles.core = handle_codec
        receive, acknowledge = consuming_ways(*twins, self.metrics) if core else twins
        self.ways: dict[str, Any] = {"receive": receive, "acknowledge": acknowledge}
        self.handles = ["none"]
        self.told: list[object] = []

    def request(self, what: str, most: int, some: list[int], damage: int) -> bytes:
        if what == "receive":
            wanted = delivery_pb2.ReceiveRequest(group=GROUP, topic=TOPIC, invisible_ms=60_000, max_messages=most)
            wanted.wait_ms = 10 * (damage % 2)
            return wanted.SerializeToString()
        handles = [self.handles[at % len(self.handles)] for at in some]
        if damage > 5:
            handles = [forged(one, damage - 6) for one in handles]
        data = delivery_pb2.AcknowledgeRequest(group=GROUP, topic=TOPIC, handles=handles).SerializeToString()
        match damage:
            case 1:
                return data[: len(data) // 2]
            case 2:
                return data + b"\x0a\x07workers"  # the group once more, at the end
            case 3:
                return data + b"\x20\x01"  # a field that nobody knows
            case 4:
                return data.replace(b"workers", b"w\xffrkers")
            case 5:
                return data + b"\x1a\x03\xc3\xa9x"  # a handle that is not ASCII
        return data

    async def turn(self, asked: list[tuple[str, int, list[int], int, bool, bool]]) -> None:
        """Ask for all of it in one turn of the loop; wait for the answers."""
        callers, came = [], []
        for what, most, some, damage, gone, has_room in asked:
            callers.append(DirectCaller(has_room=has_room))
            came.append(self.ways[what](self.request(what, most, some, damage), callers[-1]))
            callers[-1].gone = gone
        async with asyncio.timeout(30):
            while any(not self.is_over(*one) for one in zip(callers, came, strict=True)):
                await asyncio.sleep(0)
        for one, caller, answer in zip(asked, callers, came, strict=True):
            if one[0] == "receive" and caller.answers:
                self.told.append(self.given(caller.answers[0]))
            else:
                self.told.append((answer, caller.answers))
            self.told.append((caller.handed_over, caller.ended))

    @staticmethod
    def is_over(caller: DirectCaller, came: object) -> bool:
        return came is not HELD or bool(caller.gone or caller.answers or caller.handed_over or caller.ended)

    def given(self, answer: bytes) -> object:
        messages = delivery_pb2.ReceiveResponse.FromString(answer).messages
        self.handles += [one.handle for one in messages]
        return [
            (one.topic, one.delivery_number, one.handle, one.invisible_ms, decode_record(one.record).queue_offset)
            for one in messages
        ]

    def journal(self) -> list[tuple[int, bytes]]:
        log = self.at.store.commit_log
        records = [decode_record(one) for one in split_records(log.files.files[0].map[: log.max_offset])]
        return [(one.queue_offset, one.body) for one in records if one.topic == JOURNAL_TOPIC]

    def counted(self) -> dict[object, int]:
        return {key: sum(times.counts) for key, times in self.metrics._calls.items()}


async def outcome(root: Path, turns: list[Any], *, core: bool) -> object:
    async with delivering(root, mapped_file_size_commit_log=1 << 20) as at:
        await at.broker.topics.add([TopicConfig(TOPIC, 1, 1)])
        await at.send(TOPIC, 60)
        at.store.catch_up()
        (await at.delivery.receive(Wish(GROUP, TOPIC, most=1))).release()
        at.delivery.journal.write()
        stream = Stream(at, core=core)
        for turn in turns:
            await stream.turn(turn)
        at.delivery.journal.write()
        return stream.told, state(at.delivery.ledger), stream.journal(), stream.counted()


asked = st.tuples(
    st.sampled_from(["receive", "acknowledge", "acknowledge"]),
    st.sampled_from([1, 1, 3, 100]),
    st.lists(st.integers(0, 40), max_size=3) | st.just(list(range(70))),
    st.sampled_from([0, 0, 0, 0, 0, 0, *range(1, 11)]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([True, True, True, False]),
)


@examples(8, 150, st.lists(st.lists(asked, max_size=8), max_size=5))
def test_the_same_comes_of_it(turns: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as root:
        patch.setattr("tandemmq.common.slices._SLICE_SECONDS", 3_600.0)
        for clock in (BootClock, SystemClock):
            patch.setattr(clock, "now_ms", lambda _self: NOW)
        python, compiled = (
            asyncio.run(partial(outcome, Path(root) / name, turns, core=name == "core")())
            for name in ("python", "core")
        )
        assert compiled == python
