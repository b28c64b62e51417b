"""The compiled reads of classic connections against their Python twin: the same bytes, the same answers and log."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import strategies as st

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.limits import RemotingCounts, RemotingLimits
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader
from tandemmq.store.compiled_core import compiled_core, core_problem
from tandemmq.store.fronts.remoting.direct_send import DirectFrames, FramesCore
from tandemmq.store.fronts.remoting.dispatch import Dispatch
from tandemmq.store.fronts.remoting.identity import RemotingIdentity
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.sending import RemotingSending
from tandemmq.store.settings import CoreChoice
from tests.campaigns import examples
from tests.unit.broker.broker_kit import HOST, Kit
from tests.unit.fronts.compiled_kit import comparable, logged
from tests.unit.fronts.test_compiled_frames import PLAIN, frame, frames, python_way, serving, whole, without_made_key

pytestmark = pytest.mark.skipif(bool(core_problem()), reason="the core is not there")


class Transport:
    """A socket that takes everything."""

    def __init__(self) -> None:
        self.written = b""
        self.writes = 0
        self.closing = False

    def get_extra_info(self, name: str) -> object:
        return ("10.1.2.3", 4567) if name == "peername" else None

    def set_write_buffer_limits(self, _: int) -> None: ...

    def is_closing(self) -> bool:
        return self.closing

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.written += data
        self.writes += 1

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.closing = True

    abort = close


class Served:
    """A connection of a front that has sends and nothing else."""

    def __init__(self, kit: Kit, core: FramesCore, *, compiled: bool) -> None:
        self.kit = kit
        self.guard = CallGuard()
        self.dispatch = Dispatch(RemotingIdentity(self.guard, {}), cast(Any, kit.traffic))
        sending = RemotingSending(kit.broker, RemotingRules("cluster", "broker", HOST), self.dispatch, cast(Any, None))
        self.direct = DirectFrames(core, kit.broker.acknowledgement, sending, cast(Any, kit.traffic))
        self.dispatch.begin_with(self.direct)
        self.dispatch.add({RequestCode.SEND_MESSAGE_V2: sending.send_short})
        self.transport = Transport()
        self.connection = RemotingConnection(self, RemotingLimits(turn_seconds=60), RemotingCounts())
        if compiled:
            assert self.dispatch.handlers.reads is not None
            self.connection.read_by(self.dispatch.handlers.reads)
        self.connection.connection_made(cast(Any, self.transport))

    def began(self, connection: RemotingConnection) -> None:
        connection.lane = self.dispatch.handlers.lane

    def came(self, connection: RemotingConnection, given: RemotingFrame) -> None:
        self.dispatch.handlers.came(connection, given)

    def ended(self, connection: RemotingConnection) -> None: ...

    async def receive(self, data: bytes) -> None:
        self.connection.data_received(data)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    @property
    def answers(self) -> list[Any]:
        """What was answered."""
        return [without_made_key(whole(one)) for one in RemotingFrameReader().receive(self.transport.written)]

    @property
    def told(self) -> list[tuple[int, int]]:
        """Code and number of each."""
        found = map(codec.decode, RemotingFrameReader().receive(self.transport.written))
        return [(one.code, one.opaque) for one in found]


given_frames = frames().filter(lambda one: b"%RETRY%" not in one.header) | st.builds(frame, st.just(PLAIN))


@examples(25, 250, st.lists(given_frames, max_size=8), st.lists(st.integers(1, 400), max_size=8), st.booleans())
def test_bytes_cut_anywhere_are_answered_alike(given: list[RemotingFrame], cuts: list[int], flush: bool) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare(Path(one), Path(two), given, cuts, flush))


async def _compare(one: Path, two: Path, given: list[RemotingFrame], cuts: list[int], flush: bool) -> None:
    disk = "SYNC_FLUSH" if flush else "ASYNC_FLUSH"
    data = b"".join(map(whole, [frame(PLAIN), *given]))
    async with serving(one, flush_disk_type=disk) as (kit, core), serving(two, flush_disk_type=disk) as (twin, other):
        quick, slow = Served(kit, core, compiled=True), Served(twin, other, compiled=False)
        for served in (quick, slow):
            python_way(served.kit, frame(PLAIN))
            rest = data
            for cut in cuts:
                await served.receive(rest[:cut])
                rest = rest[cut:]
            if rest:
                await served.receive(rest)
            while served.connection.request_bytes:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)
        if not flush:
            assert quick.answers == slow.answers
        elif not quick.transport.closing:  # else the disk was there before the bad frame, or was not
            assert sorted(map(repr, quick.answers)) == sorted(map(repr, slow.answers))
        assert quick.transport.closing == slow.transport.closing
        assert quick.connection.held == slow.connection.held
        assert core.taken == other.taken
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]


async def test_a_read_of_sends_is_one_write_and_nothing_of_the_connection_s(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type="ASYNC_FLUSH") as (kit, core):
        served = Served(kit, core, compiled=True)
        python_way(kit, frame(PLAIN))
        served.connection.data_received(whole(frame(PLAIN, opaque=1)))  # finds out that there is a lane
        served.connection.read = served.connection.go_on = None  # type: ignore[method-assign, assignment]
        before = served.transport.writes
        served.connection.data_received(whole(frame(PLAIN, opaque=2)) + whole(frame(PLAIN, opaque=3, binary=True)))
        assert served.transport.writes == before + 1
        assert served.told == [(ResponseCode.SUCCESS, number) for number in (1, 2, 3)]
        assert core.taken == 3
        assert served.connection.heard


async def test_it_answers_after_what_waits_to_be_written(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type="ASYNC_FLUSH") as (kit, core):
        served = Served(kit, core, compiled=True)
        python_way(kit, frame(PLAIN))
        await served.receive(whole(frame(PLAIN, opaque=1)))
        served.connection.send(Command(40, opaque=5))
        await served.receive(whole(frame(PLAIN, opaque=2)))
        assert served.told == [(0, 1), (40, 5), (0, 2)]


async def test_callers_who_must_be_recognized_are_python_s(tmp_path: Path) -> None:
    async with serving(tmp_path, flush_disk_type="ASYNC_FLUSH") as (kit, core):
        served = Served(kit, core, compiled=True)
        python_way(kit, frame(PLAIN))
        await served.receive(whole(frame(PLAIN, opaque=1)))
        served.guard.gate = cast(Any, object())
        served.came = lambda connection, _: connection.close("who?")  # type: ignore[assignment, method-assign]
        await served.receive(whole(frame(PLAIN, opaque=2)))
        assert core.taken == 1
        assert served.transport.closing


async def test_a_fault_of_the_core_is_answered_and_the_rest_goes_on(tmp_path: Path) -> None:
    ids = iter(["a" * 32])
    async with serving(tmp_path, flush_disk_type="ASYNC_FLUSH") as (kit, _):
        kit.broker.sender.new_id = lambda _: next(ids)
        core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").frames
        assert core is not None
        python_way(kit, frame(PLAIN))
        served = Served(kit, core, compiled=True)
        await served.receive(whole(frame(PLAIN, opaque=1)))
        nameless = {**PLAIN, "i": "TAGS\x01t\x02"}
        given = frame(nameless, opaque=2), frame(nameless, opaque=3), frame(PLAIN, opaque=4)
        await served.receive(b"".join(map(whole, given)))
        assert served.told == [(0, 1), (0, 2), (ResponseCode.SYSTEM_ERROR, 3), (0, 4)]
