"""The compiled core against its Python twin, for gateways: the same questions, the same answers and log."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.message import DecodeError
from hypothesis import strategies as st

from tandemmq.broker.v1 import broker_pb2 as pb
from tandemmq.common.serving.guard import CallGuard
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import compiled_core, core_problem
from tandemmq.store.format import properties
from tandemmq.store.fronts.internal import gateway_sends
from tandemmq.store.fronts.internal.gateway_link import BrokerParts, GatewayLink
from tandemmq.store.fronts.internal.gateway_sends import LinkCore
from tandemmq.store.settings import CoreChoice
from tests.campaigns import examples
from tests.unit.broker.broker_kit import Kit, broker
from tests.unit.fronts.compiled_kit import changed_by_sends, comparable, logged

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

MOST = 16 * 1024


@dataclass
class Call:
    """A call of Link as the transport shows it."""

    over: bool = False
    hear: Callable[[bytes], object] = lambda _: None
    written: list[bytes] = field(default_factory=list)

    def listen(self, hear: Callable[[bytes], object]) -> "asyncio.Future[None]":
        self.hear = hear
        return asyncio.get_running_loop().create_future()

    def write_now(self, answer: bytes) -> bool:
        self.written.append(answer)
        return True

    def flush(self) -> None:
        pass


class LinkedBroker:
    """A broker, and a link to it."""

    def __init__(self, kit: Kit, core: LinkCore | None) -> None:
        self.kit = kit
        self._call = Call()
        groups = SimpleNamespace(changed=kit.topics.changed, get=lambda name: None)
        delivery = cast(Any, SimpleNamespace(broker=kit.broker, groups=groups, journal=None))
        members = cast(Any, SimpleNamespace(linked=lambda *_: object(), unlinked=lambda *_: None))
        parts = BrokerParts("broker-a", delivery, members, core)
        self.run = GatewayLink(parts, CallGuard(), self._call, lambda: 1).run()

    async def ask(self, request: bytes, count: int = 1) -> dict[int, object] | str:
        """The answers to the questions of a request, by their numbers; or why the link ends."""
        try:
            self._call.hear(request)
        except BadRequest:
            return "it ends"
        found: dict[int, object] = {}
        for turn in range(10_000):
            if len(found) >= count:
                return found
            await asyncio.sleep(0 if turn < 100 else 0.001)  # a topic is made by a thread
            for one in pb.LinkResponse.FromString(b"".join(self._call.written)).answers:
                assert one.id not in found, "a question is answered once"
                found[one.id] = said(one)
            self._call.written.clear()
        raise AssertionError(f"{count} answers are due: {found}")


def said(answer: pb.Answer) -> object:
    """An answer, but for keys that the broker has made."""
    if answer.stored.message_id.startswith("0A000001"):
        answer.stored.message_id = answer.stored.transaction_id = "made"
    return str(answer)


@asynccontextmanager
async def linked(root: Path, *, compiled: bool, **settings: Any) -> AsyncIterator[tuple[LinkedBroker, LinkCore]]:
    size: dict[str, Any] = {"mapped_file_size_commit_log": 1 << 20, "rules": {"file_size": 1 << 20}}
    async with broker(root, **{**size, "window": 60_000, **settings}) as kit:
        kit.topics._entries["orders"] = TopicConfig("orders", 2, 2)
        core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").link
        assert core is not None
        one = LinkedBroker(kit, core if compiled else None)
        running = asyncio.create_task(one.run)
        await asyncio.sleep(0)
        await one.ask(pb.LinkRequest(questions=[pb.Question(id=1, hello=pb.Hello(gateway="g"))]).SerializeToString())
        for number in range(2):  # the first message of each queue is Python's
            await one.ask(request(pb.Question(id=2, send=message(UNIQ_KEY=f"first {number}"))))
        try:
            yield one, core
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def message(topic: str = "orders", body: bytes = b"body", **own: str) -> pb.Message:
    host = "10.1.2.3:4567"
    return pb.Message(topic=topic, body=body, born_host=host, properties=properties.encode(own), born_timestamp=9)


def request(*questions: pb.Question) -> bytes:
    return pb.LinkRequest(questions=questions).SerializeToString()


texts = st.sampled_from(["v", "a b", "é", "", "x" * 200, "true", "false"]) | st.text(max_size=3)
names = st.sampled_from(["UNIQ_KEY", "TAGS", "KEYS", "WAIT", "DELAY", "__SHARDINGKEY", "TRAN_MSG", "é", ""])
pairs = st.lists(st.tuples(names, texts), max_size=4).map(
    lambda given: b"".join(
        name.encode() + b"\x01" + value.encode("utf-8", "replace") + b"\x02" for name, value in given
    )
)
messages = st.builds(
    pb.Message,
    topic=st.sampled_from(["orders", "orders", "orders", "missing", "%RETRY%workers", "SCHEDULE_TOPIC_XXXX", "é", ""]),
    born_host=st.sampled_from(["10.1.2.3:4567", "[fe80::1]:4567", "nowhere", "", "é:1", "10.1.2.3:99999"]),
    body=st.sampled_from([b"body", b"body", b"", b"x" * MOST, b"x" * (MOST + 1)]),
    properties=pairs | pairs.map(lambda data: data[:-1]) | st.binary(max_size=12),
    sys_flag=st.sampled_from([0, 0, 1, 2, 4, 0x300, 1 << 20, -1]),
    born_timestamp=st.sampled_from([0, 1_700_000_000_000, -1]),
)
questions = st.builds(
    pb.Question, id=st.sampled_from([7, 0, 1 << 40]), user=st.sampled_from(["", "", "me", "é"]), send=messages
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    given = request(draw(questions))
    how, at = draw(st.sampled_from(["", "", "", "byte", "cut"])), draw(st.integers(0, len(given) - 1))
    if how == "byte":
        return given[:at] + bytes([draw(st.integers(0, 255))]) + given[at + 1 :]
    return given[:at] if how == "cut" else given


def sends(data: bytes) -> bool:
    """Whether it has nothing but messages, as far as it can be read."""
    try:
        return all(one.WhichOneof("question") == "send" for one in pb.LinkRequest.FromString(data).questions)
    except DecodeError:
        return True


def counted(data: bytes) -> int:
    try:
        return len(pb.LinkRequest.FromString(data).questions)
    except DecodeError:
        return 0


@examples(25, 200, st.lists(requests().filter(sends), max_size=12), st.sampled_from([0, 60_000]))
def test_both_ways_give_the_same_answers_and_the_same_log(calls: list[bytes], window: int) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare(Path(one), Path(two), calls, window))


async def _compare(one: Path, two: Path, calls: list[bytes], window: int) -> None:
    async with (
        linked(one, compiled=True, window=window) as (link, _),
        linked(two, compiled=False, window=window) as (twin, _),
    ):
        for given in calls:
            count = counted(given)
            assert await link.ask(given, count) == await twin.ask(given, count)
            assert changed_by_sends(link.kit) == changed_by_sends(twin.kit)
            link.kit.clock.now = twin.kit.clock.now = link.kit.clock.now + 1
        await asyncio.sleep(0)
        assert [comparable(one) for one in logged(link.kit)] == [comparable(one) for one in logged(twin.kit)]


async def test_plain_messages_of_a_turn_are_taken_and_all_else_is_pythons(tmp_path: Path) -> None:
    async with linked(tmp_path, compiled=True) as (link, core):
        said_of_copy = pb.Question(id=13, send=message(UNIQ_KEY="k1"))
        plain = [pb.Question(id=10 + at, user="me" if at else "", send=message(UNIQ_KEY=f"k{at}")) for at in range(3)]
        others = [
            pb.Question(id=20, find_topic=pb.FindEntry(name="orders")),
            pb.Question(id=21, send=message("b/a/d")),
            pb.Question(id=22, send=message(__SHARDINGKEY="g", UNIQ_KEY="ordered")),
            said_of_copy,
        ]
        answers = await link.ask(request(others[0], *plain, *others[1:]), 7)
        assert core.taken == 3
        assert isinstance(answers, dict)
        assert answers[13] == str(answers[11]).replace("id: 11", "id: 13"), "a copy has the place of the first"
        assert "orders" in str(answers[20])
        assert "refusal" in str(answers[21])
        bodies = [one.properties["UNIQ_KEY"] for one in logged(link.kit)[2:]]
        assert bodies == ["k0", "k1", "k2", "ordered"]


async def test_a_copy_with_a_long_key_is_recognized_by_python(tmp_path: Path) -> None:
    async with linked(tmp_path, compiled=True) as (link, core):
        for key, taken in (("k" * 256, 1), ("k" * 257, 1)):
            copies = [pb.Question(id=at, send=message(UNIQ_KEY=key)) for at in (10, 11)]
            answers = await link.ask(request(*copies), 2)
            assert isinstance(answers, dict)
            assert answers[11] == str(answers[10]).replace("id: 10", "id: 11")
            assert core.taken == taken
        assert len(logged(link.kit)) == 4


async def test_nothing_is_taken_before_hello(tmp_path: Path) -> None:
    async with linked(tmp_path, compiled=True) as (link, core):
        fresh = LinkedBroker(link.kit, core)
        running = asyncio.create_task(fresh.run)
        await asyncio.sleep(0)
        assert await fresh.ask(request(pb.Question(id=1, send=message(UNIQ_KEY="k")))) == "it ends"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert core.taken == 0


@pytest.mark.parametrize("settings", [{"flush_disk_type": "SYNC_FLUSH"}, {}])
async def test_messages_wait_for_the_disk_where_sends_do(tmp_path: Path, settings: dict[str, Any]) -> None:
    async with linked(tmp_path, compiled=True, **settings) as (link, core):
        two = [pb.Question(id=at, send=message(UNIQ_KEY=f"k{at}")) for at in (10, 11)]
        before = link.kit.store.flushed_offset
        answers = await link.ask(request(*two), 2)
        assert core.taken == 2
        assert isinstance(answers, dict)
        assert all('status: "PUT_OK"' in str(one) for one in answers.values())
        assert (link.kit.store.flushed_offset > before) is bool(settings)


def test_what_is_not_safe_says_so() -> None:
    stored = [pb.Answer(id=at, stored=pb.Stored(message_id="k", offset=at, status="PUT_OK")) for at in (1, 2)]
    answered: list[bytes] = []
    good = pb.LinkResponse(answers=stored).SerializeToString()
    gateway_sends._tell(good, answered.append, PutStatus.FLUSH_DISK_TIMEOUT)
    (response,) = answered
    assert [(one.id, one.stored.status) for one in pb.LinkResponse.FromString(response).answers] == [
        (1, "FLUSH_DISK_TIMEOUT"), (2, "FLUSH_DISK_TIMEOUT"),
    ]  # fmt: skip
