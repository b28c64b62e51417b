"""Many of everything, against a server that is a process of its own."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

import psutil
import pytest

from tests.integration.grpc_transport.hosting import PATIENCE
from tests.integration.grpc_transport.wire import Wire, wired

pytestmark = [pytest.mark.slow, pytest.mark.serial, pytest.mark.timeout(600)]

CONNECTIONS = 1000
STREAMS = 10_000
GROWTH = 24 << 20
"""What a process may keep behind a second round that it did not behind the first, bytes."""


class ProbeProcess:
    """`python -m tests.grpc_probe`."""

    def __init__(self, transport: str) -> None:
        command = [sys.executable, "-m", "tests.grpc_probe", "--transport", transport]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().split()
        assert ready[0] == "READY"
        self.target = f"127.0.0.1:{ready[1]}"

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    @property
    def descriptors(self) -> int:
        """Open files and sockets."""
        return int(psutil.Process(self.process.pid).num_fds())


@pytest.fixture
def probe(transport: str) -> Iterator[ProbeProcess]:
    process = ProbeProcess(transport)
    with process.process:
        yield process
        process.process.terminate()
        assert process.process.wait(timeout=60) == 0


async def counters(wire: Wire, judge: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """The probe's counters, once they are as they should be."""
    async with asyncio.timeout(200):
        while True:
            answer = await wire.answer(wire.call("Count", b""))
            found: dict[str, int] = json.loads(answer.messages[0])
            if judge(found):
                return found
            await asyncio.sleep(0.05)


async def test_a_thousand_connections_with_a_call_each(probe: ProbeProcess) -> None:
    before = probe.descriptors
    async with AsyncExitStack() as stack:
        wires = await asyncio.gather(*(stack.enter_async_context(wired(probe.target)) for _ in range(CONNECTIONS)))
        waiting = [wire.call("Wait", b"") for wire in wires]
        echoes = await asyncio.gather(*(wire.answer(wire.call("Echo", b"x")) for wire in wires))
        assert all(answer.messages == [b"x"] and answer.status == "0" for answer in echoes)
        await counters(wires[0], lambda found: found["active"] == CONNECTIONS)
        assert probe.descriptors >= before + CONNECTIONS
        assert not any(wire.answers[stream].ended for wire, stream in zip(wires, waiting, strict=True))
    async with wired(probe.target) as wire:
        found = await counters(wire, lambda found: found["active"] == 0)
        assert found["cancelled"] == CONNECTIONS
        async with asyncio.timeout(PATIENCE):
            while probe.descriptors > before + 2:
                await asyncio.sleep(0.02)


async def round_of_streams(probe: ProbeProcess, count: int, cancel: bool) -> None:
    """Calls that wait, over four connections, until all are cancelled or their connections are gone."""
    async with wired(probe.target) as watcher:
        before = (await counters(watcher, lambda found: found["active"] == 0))["cancelled"]
        async with AsyncExitStack() as stack:
            wires = [await stack.enter_async_context(wired(probe.target)) for _ in range(4)]
            streams = [(wire, wire.call("Wait", b"")) for wire in wires for _ in range(count // 4)]
            await counters(watcher, lambda found: found["active"] == count)
            if cancel:
                for wire, stream in streams:
                    wire.cancel(stream)
                await counters(watcher, lambda found: found["active"] == 0)
                echoes = [await wire.answer(wire.call("Echo", b"x")) for wire in wires]
                assert all(answer.status == "0" for answer in echoes), "the connections go on"
        await counters(watcher, lambda found: found["active"] == 0 and found["cancelled"] == before + count)


async def test_ten_thousand_streams_leave_nothing_behind(probe: ProbeProcess, transport: str) -> None:
    """On grpcio, fewer: it takes a quarter of a millisecond for each."""
    count = STREAMS if transport == "fast" else STREAMS // 10
    await round_of_streams(probe, count, cancel=True)
    before = probe.memory
    await round_of_streams(probe, count, cancel=True)
    await round_of_streams(probe, count, cancel=False)
    assert probe.memory < before + GROWTH


async def test_ten_thousand_streams_on_one_connection(probe: ProbeProcess, transport: str) -> None:
    count = STREAMS - 1 if transport == "fast" else 1000
    async with wired(probe.target) as watcher, wired(probe.target) as wire:
        for _ in range(count):
            wire.call("Wait", b"")
        await counters(watcher, lambda found: found["active"] == count)
        assert (await wire.answer(wire.call("Echo", b"x"))).status == "0"
        wire.abort()
        await counters(watcher, lambda found: found["active"] == 0)
