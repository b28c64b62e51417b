"""The compiled core against its Python twin, for classic clients: the same frames, the same answers, the same log."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import strategies as st

from tandemmq.common.errors import TandemError
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.topic_names import BROKER_WRITES
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, Command
from tandemmq.common.wire.remoting.errors import BadHeader
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization, encode_frame
from tandemmq.common.wire.remoting.versions import V4_9_7, V5_3_2
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.rules import SPECIAL
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import compiled_core, core_problem
from tandemmq.store.format.properties import WAIT
from tandemmq.store.fronts.remoting.call import RemotingCall, host_of
from tandemmq.store.fronts.remoting.direct_send import DirectFrames, FramesCore
from tandemmq.store.fronts.remoting.retry_sends import group_of_retry
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.sending import RemotingSending
from tandemmq.store.fronts.remoting.sent_message import SendHeader, new_message
from tandemmq.store.settings import CoreChoice
from tests.campaigns import examples
from tests.golden import captured_frames
from tests.unit.broker.broker_kit import HOST, Kit, broker, records
from tests.unit.fronts.compiled_kit import changed_by_sends, comparable, logged

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

PEERS = ("10.1.2.3:4567", "[fe80::1]:4567", "")
PLAIN = {
    "a": "producers", "b": "orders", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1760000000123", "h": "0",
    "i": "KEYS\x01k1 k2\x02UNIQ_KEY\x010A0102\x02WAIT\x01true\x02TAGS\x01t\x02", "j": "0", "k": "false", "m": "false",
}  # fmt: skip


@asynccontextmanager
async def serving(root: Path, **settings: Any) -> AsyncIterator[tuple[Kit, FramesCore]]:
    size: dict[str, Any] = {"mapped_file_size_commit_log": 1 << 20, "rules": {"file_size": 1 << 20}}
    async with broker(root, **{**size, **settings}) as kit:
        for topic, perm in (("orders", 6), ("closed", 4), ("%RETRY%workers", 6)):
            kit.topics._entries[topic] = TopicConfig(topic, 4, 4, perm)
        core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").frames
        assert core is not None
        yield kit, core


def frame(fields: dict[str, str], body: bytes = b"body", binary: bool = False, **head: Any) -> RemotingFrame:
    """A request as Java writes it."""
    form = Serialization.ROCKETMQ if binary else Serialization.JSON
    said = {"opaque": 7, "version": V5_3_2, **head}
    data = codec.encode(Command(RequestCode.SEND_MESSAGE_V2, fields=fields, body=body, serialization=form, **said))
    (one,) = RemotingFrameReader().receive(data)
    return one


def answered(core: FramesCore, given: RemotingFrame, peer: str = PEERS[0]) -> bytes | None:
    return core.answer(given.header, given.body, host_of(peer).packed, given.serialization is Serialization.ROCKETMQ)


def python_way(kit: Kit, given: RemotingFrame, peer: str = PEERS[0]) -> bytes | str:
    """The answer of the Python path, or the name of its refusal."""
    rules = RemotingRules("cluster", "broker", HOST)
    sending = RemotingSending(kit.broker, rules, cast(Any, None), cast(Any, None))  # only its receipts are asked for
    try:
        command = codec.decode(given)
        header = SendHeader.short(command)
        if command.code != RequestCode.SEND_MESSAGE_V2 or command.is_response or group_of_retry(header.topic):
            return "another way"
        stored = kit.broker.store_at_once(new_message(header, bytes(command.body), host_of(peer), "cluster"))
    except (TandemError, BadHeader) as error:
        return type(error).__name__
    if stored is None:
        return "a topic must be made"
    call = RemotingCall(command, cast(RemotingConnection, None))
    answer = codec.encode(sending.receipt(call, Receipt(*stored, PutStatus.PUT_OK)))
    return b"" if command.flag & ONE_WAY else answer


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(["", "a b", 'a"b', "a\\b"])
pairs = st.tuples(
    st.sampled_from(["UNIQ_KEY", "KEYS", "TAGS", "WAIT", "DELAY", "color", "MSG_REGION", "CLUSTER"]) | texts,
    st.sampled_from(["true", "false", "1"]) | texts,
)
properties = st.lists(pairs, max_size=4).map(lambda all: "".join(f"{name}\x01{value}\x02" for name, value in all))
numbers = st.sampled_from(["0", "1", "-1", "007", "3", "4", "x", "", "1234567890", "99999999999999999999"])
VALUES = {
    "a": texts, "b": st.sampled_from(["orders", "closed", "missing", "%RETRY%workers", "SCHEDULE_TOPIC_XXXX", ""]),
    "c": texts, "d": numbers, "e": numbers, "f": numbers, "g": numbers, "h": numbers, "i": properties | texts,
    "j": numbers, "k": st.sampled_from(["true", "false", "no", ""]), "l": numbers, "m": texts, "n": texts,
}  # fmt: skip
changes = st.lists(st.sampled_from(sorted(VALUES)), max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: VALUES[name] for name in names})
)


@st.composite
def frames(draw: st.DrawFn) -> RemotingFrame:
    fields = {**PLAIN, **draw(changes)}
    if not draw(st.integers(0, 3)):
        del fields[draw(st.sampled_from(sorted(fields)))]
    given = frame(
        dict(sorted(fields.items())) if draw(st.integers(0, 9)) else fields,
        draw(st.binary(max_size=30) | st.just(b"x" * 16_385)),
        draw(st.booleans()),
        flag=draw(st.sampled_from([0, 0, 0, 0, 0, ONE_WAY, 1])),
        opaque=draw(st.sampled_from([0, 5, -3, 2**31 - 1])),
        version=draw(st.sampled_from([V4_9_7, V5_3_2])),
    )
    if draw(st.integers(0, 4)):
        return given
    at = draw(st.integers(0, len(given.header) - 1))
    damaged = given.header[:at] + bytes([draw(st.integers(0, 255))]) + given.header[at + draw(st.integers(0, 1)) :]
    return given._replace(header=damaged)


@examples(25, 300, st.lists(st.tuples(frames(), st.sampled_from(PEERS)), max_size=12))
def test_both_ways_give_the_same_answers_and_the_same_log(calls: list[tuple[RemotingFrame, str]]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare(Path(one), Path(two), calls))


async def _compare(one: Path, two: Path, calls: list[tuple[RemotingFrame, str]]) -> None:
    async with serving(one) as (kit, core), serving(two) as (twin, _):
        for given, peer in calls:
            before = changed_by_sends(kit)
            answer: bytes | str | None = answered(core, given, peer)
            expected = python_way(twin, given, peer)
            if answer is None:
                assert changed_by_sends(kit) == before
                answer = python_way(kit, given, peer)
            assert without_made_key(answer) == without_made_key(expected)
            assert changed_by_sends(kit) == changed_by_sends(twin)
            kit.clock.now = twin.clock.now = kit.clock.now + 1
        await asyncio.sleep(0)
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]


def without_made_key(answer: bytes | str) -> object:
    if isinstance(answer, str) or not answer:
        return answer
    (one,) = RemotingFrameReader().receive(answer)
    command = codec.decode(one)
    assert codec.encode(command) == answer
    fields = dict(command.fields or {})
    if fields.get("transactionId", "").startswith("0A000001"):
        command.fields = {**fields, "transactionId": "made"}
    return command


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("version", [V4_9_7, V5_3_2])
async def test_what_java_clients_send_is_taken_to_the_byte(tmp_path: Path, binary: bool, version: int) -> None:
    given = frame(PLAIN, binary=binary, version=version)
    async with serving(tmp_path / "a") as (kit, core), serving(tmp_path / "b") as (twin, _):
        assert answered(core, given) is None, "the first of a queue is Python's"
        assert python_way(kit, given) == python_way(twin, given)
        answer = answered(core, given)
        assert answer == python_way(twin, given)
        assert logged(kit) == logged(twin)
        assert (core.taken, core.waits) == (1, True)
        assert logged(kit)[1].properties == {
            "KEYS": "k1 k2", "UNIQ_KEY": "0A0102", "TAGS": "t", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
            "CLUSTER": "cluster",
        }  # fmt: skip
        unasked = frame({**PLAIN, "i": "WAIT\x01false\x02"}, binary=binary, version=version, flag=ONE_WAY)
        assert answered(core, unasked) == b""
        assert not core.waits
        await asyncio.sleep(0)
        await kit.dispatched()
        assert len(records(kit.pull("orders", 1))) == 3


async def test_nothing_else_is_taken(tmp_path: Path) -> None:
    async with serving(tmp_path) as (kit, core):
        python_way(kit, frame(PLAIN))
        before = changed_by_sends(kit)
        for name, value in (
            ("b", "missing"), ("b", "closed"), ("b", "%RETRY%workers"), ("b", "SCHEDULE_TOPIC_XXXX"), ("b", "ordérs"),
            ("a", ""), ("a", "ä"), ("e", "4"), ("e", "x"), ("f", "4"), ("g", "1" * 19), ("h", "1" * 10), ("j", "1"),
            ("k", "perhaps"), ("i", "DELAY\x013\x02"), ("i", "a\x011\x02a\x012\x02"), ("i", "no separator\x02"),
            ("i", "a\x01\x02"), ("i", "\x01b\x02"), ("i", "a\x01b\x01c\x02"), ("i", "MSG_REGION\x01here\x02"),
            ("i", "WAIT\x01TRUE\x02"), ("i", "a\x01" + "x" * 33_000), ("i", "\x02a\x01b"),
        ):  # fmt: skip
            for binary in (False, True):
                assert answered(core, frame({**PLAIN, name: value}, binary=binary)) is None, (name, value)
        assert answered(core, frame({**PLAIN, "i": 'a\x01"quoted"\x02'})) is None
        assert answered(core, frame(PLAIN, flag=1)) is None
        assert answered(core, frame(PLAIN, body=b"x" * 16_385)) is None
        for header in (b"", b"{", b'{"code":310}', frame(PLAIN).header[:-1], frame(PLAIN).header + b" "):
            for form in Serialization:
                assert answered(core, RemotingFrame(form, header, b"")) is None
        assert changed_by_sends(kit) == before


class Socket:
    """A connection as the front sees it."""

    peer = PEERS[0]

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.held: list[int] = []
        self.closed = ""

    def has_room(self, size: int) -> bool:
        return len(self.held) < 2

    def begin_request(self, size: int) -> bool:
        self.held.append(size)
        return True

    def end_request(self, size: int) -> None:
        self.held.remove(size)

    def send_bytes(self, answer: bytes) -> None:
        self.sent.append(answer)

    def respond(self, request: Command, response: Command) -> None:
        self.sent.append(codec.encode(response))

    @property
    def told(self) -> list[tuple[int, int]]:
        """Code and number of each answer."""
        return [(one.code, one.opaque) for one in map(codec.decode, RemotingFrameReader().receive(b"".join(self.sent)))]

    def close(self, reason: str) -> None:
        self.closed = reason


class FailingCore:
    end_offset, waits, taken, answered, position = 0, True, 0, 0, 0

    def answer(self, header: bytes, body: bytes, peer: bytes, binary: bool) -> bytes | None:
        raise ValueError("a fault")

    def answer_all(self, data: bytes, at: int, peer: bytes, most: int) -> bytes:
        raise ValueError("a fault")

    def written(self) -> bytes:
        return b""


async def test_a_call_at_which_the_core_fails_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type="SYNC_FLUSH") as (kit, _):
        socket = Socket()
        sending = cast(RemotingSending, Gathering())
        direct = DirectFrames(FailingCore(), kit.broker.acknowledgement, sending, kit.traffic)
        assert direct(cast(RemotingConnection, socket), frame(PLAIN))
        data = whole(frame(PLAIN, opaque=8))
        assert direct.take(cast(RemotingConnection, socket), data + data) == len(data), "nobody else answers it"
        assert (socket.held, socket.closed) == ([], "")
        assert socket.told == [(ResponseCode.SYSTEM_ERROR, 7), (ResponseCode.SYSTEM_ERROR, 8)]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_calls_before_one_at_which_the_core_fails_have_their_answers(tmp_path: Path, flush: str) -> None:
    ids = iter(["a" * 32])
    async with serving(tmp_path, flush_disk_type=flush) as (kit, _):
        kit.broker.sender.new_id = lambda _: next(ids)
        core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").frames
        assert core is not None
        python_way(kit, frame(PLAIN))
        socket = Socket()
        direct = DirectFrames(core, kit.broker.acknowledgement, cast(RemotingSending, Gathering()), kit.traffic)
        nameless = {**PLAIN, "i": "TAGS\x01t\x02"}
        frames = [frame(nameless, opaque=7), frame(nameless, opaque=8), frame(PLAIN, opaque=9)]
        data = [whole(one) for one in frames]
        taken = direct.take(cast(RemotingConnection, socket), b"".join(data))
        assert taken == len(data[0]) + len(data[1])
        assert direct.take(cast(RemotingConnection, socket), data[2]) == len(data[2]), "the others go on"
        while len(socket.sent) < 3:
            await asyncio.sleep(0.001)
        failed = (ResponseCode.SYSTEM_ERROR, 8)
        assert sorted(socket.told) == sorted([(0, 7), failed, (0, 9)])
        assert (socket.held, socket.closed) == ([], "")


class Gathering:
    gathers = False


async def test_answers_wait_for_the_disk_and_messages_for_those_before_them(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type="SYNC_FLUSH") as (kit, core):
        python_way(kit, frame(PLAIN))
        others, socket = Gathering(), Socket()
        direct = DirectFrames(core, kit.broker.acknowledgement, cast(RemotingSending, others), kit.traffic)
        connection = cast(RemotingConnection, socket)
        others.gathers = True
        assert not direct(connection, frame(PLAIN)), "it would overtake messages that wait for the end of the turn"
        others.gathers = False
        assert direct(connection, frame(PLAIN))
        assert (socket.sent, socket.held) == ([], [4])
        assert not direct(connection, frame({**PLAIN, "b": "missing"}))
        assert socket.held == [4]
        assert direct(connection, frame(PLAIN, opaque=8))
        assert not direct(connection, frame(PLAIN)), "too many wait on this connection"
        assert direct.take(connection, whole(frame(PLAIN))) == 0
        while len(socket.sent) < 2:
            await asyncio.sleep(0.001)
        decoded = [codec.decode(one) for one in RemotingFrameReader().receive(b"".join(socket.sent))]
        assert [(one.code, one.opaque) for one in decoded] == [(ResponseCode.SUCCESS, 7), (ResponseCode.SUCCESS, 8)]
        assert socket.held == []


async def test_what_comes_in_one_read_is_held_one_by_one_while_there_is_room(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type="SYNC_FLUSH") as (kit, core):
        python_way(kit, frame(PLAIN))
        socket = Socket()
        others = cast(RemotingSending, Gathering())
        direct = DirectFrames(core, kit.broker.acknowledgement, others, kit.traffic)
        unasked = frame({**PLAIN, "i": "WAIT\x01false\x02"}, opaque=6)
        data = [whole(one) for one in (unasked, frame(PLAIN, opaque=7), frame(PLAIN, opaque=8), frame(PLAIN, opaque=9))]
        taken = direct.take(cast(RemotingConnection, socket), b"".join(data))
        assert taken == sum(map(len, data[:3])), "the last has no room"
        assert len(socket.sent) == 1, "who asks not to wait has the answer"
        while len(socket.sent) < 3:
            await asyncio.sleep(0.001)
        decoded = [codec.decode(one) for one in RemotingFrameReader().receive(b"".join(socket.sent))]
        assert [(one.code, one.opaque) for one in decoded] == [(0, 6), (0, 7), (0, 8)]
        assert socket.held == []


@examples(6, 200, st.lists(frames() | st.builds(frame, st.just(PLAIN)), max_size=12), st.integers(0, 40))
def test_frames_that_come_in_one_read_are_answered_as_one_by_one(given: list[RemotingFrame], cut: int) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare_reads(Path(one), Path(two), given, cut))


async def _compare_reads(one: Path, two: Path, given: list[RemotingFrame], cut: int) -> None:
    data = b"".join(map(whole, given))
    data = data[: len(data) - cut]
    async with serving(one) as (kit, core), serving(two) as (twin, alone):
        for served in (kit, twin):
            python_way(served, frame(PLAIN))
        answers = core.answer_all(data, 0, host_of(PEERS[0]).packed, 8)
        expected, at = b"", 0
        for number in range(core.answered):
            answer = answered(alone, given[number])
            assert answer is not None
            expected += answer
            at += len(whole(given[number]))
        assert core.position == at
        assert [without_made_key(encoded) for encoded in _apart(answers)] == [
            without_made_key(encoded) for encoded in _apart(expected)
        ]
        assert core.taken == alone.taken
        rest = given[core.answered :]
        if rest and core.answered < 8 and at + len(whole(rest[0])) <= len(data):
            assert answered(alone, rest[0]) is None, "it stops at what is not taken, and nowhere else"
        await asyncio.sleep(0)
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]


def whole(given: RemotingFrame) -> bytes:
    """Its bytes on the wire."""
    return encode_frame(given.serialization, given.header, given.body)


def _apart(answers: bytes) -> list[bytes]:
    return list(map(whole, RemotingFrameReader().receive(answers)))


@pytest.mark.golden
@pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])
async def test_of_the_plain_sends_that_were_recorded_nearly_all_are_taken(tmp_path: Path, version: str) -> None:
    taken, plain, left = 0, 0, set[str]()
    roomy: dict[str, Any] = {"mapped_file_size_commit_log": 1 << 26, "rules": {"file_size": 1 << 26}}
    roomy["rules"]["max_message_size"] = 4 << 20
    async with serving(tmp_path, **roomy) as (kit, core):
        for one in captured_frames(version):
            if one.get("code") != RequestCode.SEND_MESSAGE_V2 or one["direction"] != "to_server" or not one["raw"]:
                continue
            (given,) = RemotingFrameReader().receive(base64.b64decode(one["raw"]))
            fields = codec.decode(given).fields or {}
            topic, special = fields["b"], {pair.partition("\x01")[0] for pair in fields["i"].split("\x02")} & SPECIAL
            kit.topics._entries[topic] = TopicConfig(topic, 16, 16)
            kit.store.commit_log.offsets.setdefault((topic, int(fields["e"])), 0)
            ordinary = special <= {WAIT} and topic not in BROKER_WRITES and not topic.startswith("%")
            plain += ordinary
            if answered(core, given) is not None:
                taken += 1
            elif ordinary:
                left.add(given.header.decode("utf-8", "replace"))
        assert plain > 300
        assert taken >= 0.95 * plain, left
        assert sum(1 for _ in logged(kit)) == taken
