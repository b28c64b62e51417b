"""What a message costs our channel and grpcio's: CPU of the caller's process, against our server in another one.

As a program it prints a table::

    python -m tests.integration.grpc_transport.test_channel_cost
"""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
import uvloop

from tandemmq.common.grpc_transport import channel, duplex

ECHO = "/tandemmq.test.Probe/Echo"
CONVERSE = "/tandemmq.test.Probe/Converse"
MESSAGE = bytes(40)
Talk = Callable[[Any, int], Awaitable[None]]


async def unary(made: Any, count: int) -> None:
    """One call after the other."""
    echo = made.unary_unary(ECHO)
    for _ in range(count):
        await echo(MESSAGE)


async def awaited(made: Any, count: int) -> None:
    """Ping-pong on one stream by `write` and `read`."""
    call = made.stream_stream(CONVERSE)()
    for _ in range(count):
        await call.write(MESSAGE)
        await call.read()
    await call.done_writing()
    await call.code()


async def listened(made: Any, count: int, ahead: int = 1) -> None:
    """Ping-pong by `write_now` and `listen`, with `ahead` messages on their way."""
    call = made.stream_stream(CONVERSE)()
    await call.wait_for_connection()
    link, done, sent, heard = duplex(call), asyncio.Event(), ahead, 0

    def on_message(_message: bytes) -> None:
        nonlocal sent, heard
        heard += 1
        if sent < count:
            sent += 1
            assert link.write_now(MESSAGE)
        elif heard == count:
            done.set()

    link.listen(on_message)
    for _ in range(ahead):
        assert link.write_now(MESSAGE)
    await done.wait()
    call.cancel()


async def pipelined(made: Any, count: int) -> None:
    """The same with 32 messages on their way, as under load."""
    await listened(made, count, 32)


def cost(port: int, kind: str, talk: Talk, count: int) -> float:
    """Microseconds of CPU for each message that is answered."""

    async def run() -> float:
        open_channel = grpc.aio.insecure_channel if kind == "grpcio" else channel
        async with open_channel(f"127.0.0.1:{port}") as made:
            await talk(made, 200)
            before = resource.getrusage(resource.RUSAGE_SELF)
            await talk(made, count)
            after = resource.getrusage(resource.RUSAGE_SELF)
        return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / count * 1e6

    return uvloop.run(run())


@contextmanager
def probe() -> Iterator[int]:
    """Our server in a process of its own; its port."""
    process = subprocess.Popen([sys.executable, "-m", "tests.grpc_probe"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[1])
    finally:
        process.terminate()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.serial
def test_a_message_costs_a_fraction_of_what_it_costs_grpcio() -> None:
    """Other processes make everything dearer, now this and now that: what counts is the least that each has cost."""
    least = {"theirs": float("inf"), "awaited": float("inf"), "listened": float("inf")}

    def enough() -> bool:
        return least["awaited"] < 0.75 * least["theirs"] and least["listened"] < 0.5 * least["theirs"]

    with probe() as port:
        for rounds in range(12):
            for name, kind, talk in (
                ("theirs", "grpcio", awaited),
                ("awaited", "fast", awaited),
                ("listened", "fast", listened),
            ):
                least[name] = min(least[name], cost(port, kind, talk, 2000))
            if rounds and enough():
                break
    assert enough(), least


def main() -> None:
    """Prints the table."""
    with probe() as port:
        for name, talk, kinds in (
            ("unary calls", unary, ("grpcio", "fast")),
            ("stream, write and read", awaited, ("grpcio", "fast")),
            ("stream, write_now and listen", listened, ("fast",)),
            ("the same, 32 on their way", pipelined, ("fast",)),
        ):
            for kind in kinds:
                sys.stdout.write(
                    f"{name:30} {kind:8} {min(cost(port, kind, talk, 20_000) for _ in range(2)):7.1f} us\n"
                )


if __name__ == "__main__":
    main()
