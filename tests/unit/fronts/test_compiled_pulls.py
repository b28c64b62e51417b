"""The compiled core against its Python twin, for classic pulls: the same frames, the same answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import strategies as st

from tandemmq.client import decode_records
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.limits import RemotingCounts, RemotingLimits
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, Command
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import compiled_core, core_problem, reading_core
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.fronts.remoting.dispatch import Dispatch
from tandemmq.store.fronts.remoting.front import RemotingFront
from tandemmq.store.fronts.remoting.identity import RemotingIdentity
from tandemmq.store.fronts.remoting.request_modes import RequestModes
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.scans import SCANS
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import CoreChoice, FlushDiskType
from tests.campaigns import examples
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering
from tests.unit.fronts.test_frame_reads import Transport
from tests.unit.grpc_transport.lane_kit import outside_of_tasks

pytestmark = pytest.mark.skipif(bool(core_problem()), reason="the core is not there")

PLAIN = {
    "queueId": "0", "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "subscription": "*",
    "suspendTimeoutMillis": "0", "bname": "broker-a", "topic": "orders", "queueOffset": "0", "expressionType": "TAG",
    "subVersion": "1760000000123", "consumerGroup": "workers", "maxMsgBytes": "2147483647",
}  # fmt: skip
STORED = 40


class Served:
    """A connection of the whole front."""

    def __init__(self, kit: DeliveringStore, *, compiled: bool) -> None:
        self.metrics = StoreMetrics("cluster", "node")
        self.guard = CallGuard()
        dispatch = Dispatch(RemotingIdentity(self.guard, {}), self.metrics, SCANS)
        core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").frames
        assert core is not None
        rules = RemotingRules("cluster", "broker-a", HOST)
        modes = RequestModes(kit.store.config.store_path_root_dir, LocalDisk(), SystemClock())
        self.front = RemotingFront(kit.broker, kit.delivery, rules, dispatch, modes, core=core if compiled else None)
        self.transport = Transport()
        self.connection = RemotingConnection(self, RemotingLimits(turn_seconds=60), RemotingCounts())
        if compiled:
            assert dispatch.handlers.reads is not None
            self.connection.read_by(dispatch.handlers.reads)
        self.connection.connection_made(cast(Any, self.transport))

    def began(self, connection: RemotingConnection) -> None:
        connection.lane = self.front.dispatch.handlers.lane

    def came(self, connection: RemotingConnection, given: RemotingFrame) -> None:
        self.front.dispatch.handlers.came(connection, given)

    def ended(self, connection: RemotingConnection) -> None: ...

    async def ask(self, data: bytes) -> bytes:
        """What is written when these bytes come."""
        self.transport.written = b""
        await outside_of_tasks(partial(self.connection.data_received, data))
        while self.connection.request_bytes:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        return self.transport.written

    def only_the_core(self) -> None:
        """Whatever it does not take fails."""
        self.connection.read = self.connection.go_on = None  # type: ignore[method-assign, assignment]


def pull(code: int = RequestCode.PULL_MESSAGE, **more: Any) -> bytes:
    head = {name: more.pop(name) for name in ("opaque", "flag", "serialization") if name in more}
    return codec.encode(Command(code, fields={**PLAIN, **more}, **head))


@asynccontextmanager
async def serving(root: Path, **settings: Any) -> AsyncIterator[DeliveringStore]:
    async with delivering(root, **settings) as kit:
        kit.store.use_core(reading_core(CoreChoice.ALWAYS))
        await kit.broker.topics.add([TopicConfig(topic, 4, 4, perm) for topic, perm in (("orders", 6), ("closed", 2))])
        groups = [GroupConfig(name, consume_enable=name != "stopped") for name in ("workers", "stopped")]
        await kit.delivery.groups.add(groups)
        for topic in ("orders", "closed"):
            await kit.send(topic, STORED)
        await kit.broker.acknowledgement.status(kit.store.commit_log.max_offset, True)
        kit.store.catch_up()
        yield kit


numbers = st.sampled_from(["0", "1", "-1", "39", "40", "41", "007", "", "x", "2147483647", "99999999999"])
VALUES: dict[str, st.SearchStrategy[str]] = {
    "queueId": numbers, "maxMsgNums": numbers, "commitOffset": numbers, "queueOffset": numbers, "maxMsgBytes": numbers,
    "sysFlag": st.sampled_from(["0", "1", "4", "5", "8", "-1", "x"]),
    "subscription": st.sampled_from(["*", "", "a", "a || b", "color = 'red'"]),
    "expressionType": st.sampled_from(["TAG", "SQL92", "", "other"]),
    "topic": st.sampled_from(["orders", "closed", "missing", ""]),
    "consumerGroup": st.sampled_from(["workers", "stopped", ""]),
    "bname": st.sampled_from(["", "é", 'a"b']),
}  # fmt: skip


@st.composite
def pulls(draw: st.DrawFn) -> bytes:
    fields = dict(draw(st.permutations(sorted(PLAIN.items()))) if not draw(st.integers(0, 3)) else PLAIN)
    for name in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2)):
        fields[name] = draw(VALUES[name])
    if not draw(st.integers(0, 5)):
        del fields[draw(st.sampled_from(sorted(fields)))]
    code = draw(st.sampled_from([RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE]))
    form = draw(st.sampled_from([Serialization.JSON] * 3 + [Serialization.ROCKETMQ]))
    flag = draw(st.sampled_from([0, 0, 0, ONE_WAY]))
    return codec.encode(Command(code, draw(st.sampled_from([0, 7, -3])), flag, fields, serialization=form))


@examples(3, 60, st.lists(pulls(), min_size=20, max_size=60), st.integers(1, 9_000))
def test_pulls_are_answered_alike(given: list[bytes], cut: int) -> None:
    async def compare(root: Path) -> None:
        async with serving(root) as kit:
            quick, slow = Served(kit, compiled=True), Served(kit, compiled=False)
            await quick.ask(pull())  # finds out that there is a lane
            data = b"".join(given)
            answers = [await served.ask(data[:cut]) + await served.ask(data[cut:]) for served in (quick, slow)]
            assert answers[0] == answers[1]

    with TemporaryDirectory() as root:
        asyncio.run(compare(Path(root)))


async def test_pulls_that_find_something_are_the_core_s_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        served = Served(kit, compiled=True)
        await served.ask(pull())
        served.only_the_core()
        written = await served.ask(
            pull(opaque=1) + pull(RequestCode.LITE_PULL_MESSAGE, opaque=2, queueOffset="30", maxMsgBytes="500")
        )
        one, other = map(codec.decode, RemotingFrameReader().receive(written))
        assert (one.opaque, one.code, one.remark, dict(one.fields or {})["nextBeginOffset"]) == (1, 0, "FOUND", "32")
        assert [record.queue_offset for record in decode_records(bytes(one.body))] == list(range(32))
        assert (other.opaque, len(other.body) <= 500, decode_records(bytes(other.body))[0].queue_offset) == (
            2,
            True,
            30,
        )
        for code in ("PULL_MESSAGE", "LITE_PULL_MESSAGE"):
            assert sum(served.metrics.times(code, "SUCCESS", protocol="remoting").counts) == 2 - (code[0] == "L")


async def test_sends_that_wait_for_the_disk_do_not_keep_pulls_from_the_core(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type=FlushDiskType.SYNC_FLUSH) as kit:
        served = Served(kit, compiled=True)
        await served.ask(pull())
        served.only_the_core()
        assert await served.ask(pull(opaque=1))


async def test_the_position_that_a_pull_brings_is_committed(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        served = Served(kit, compiled=True)
        await served.ask(pull())
        served.only_the_core()
        await served.ask(pull(sysFlag="5", commitOffset="7", queueOffset="9"))
        for task in asyncio.all_tasks():
            if task.get_name() == "a commit":
                await task
        progress = kit.delivery.ledger.progress(Place("workers", "orders", 0))
        assert progress is not None
        assert progress.cursor == 7


async def test_a_group_s_changes_and_resets_count_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        served = Served(kit, compiled=True)
        await served.ask(pull())
        await kit.delivery.commit("workers", "orders", 0, 5)
        await kit.delivery.commit("workers", "orders", 0, 2)
        served.front.resets.note("workers", "orders", [0])
        (told,) = map(codec.decode, RemotingFrameReader().receive(await served.ask(pull(queueOffset="9"))))
        assert told.code == ResponseCode.PULL_OFFSET_MOVED
        served.guard.gate = cast(Any, object())
        served.came = lambda connection, _: connection.close("who?")  # type: ignore[assignment, method-assign]
        await served.ask(pull())
        assert served.transport.closing
