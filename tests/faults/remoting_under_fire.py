"""A real store, or a name server, whose remoting port strangers attack, beside a client that must not notice.

    python -m tests.faults.remoting_under_fire [--at store|names] [--inputs 20000] [--seed 7] [--first 0]

The rules: the healthy client is always served; no request makes a handler fail; what is answered are whole frames;
nothing of a connection stays when it has ended, memory is bounded; the process ends cleanly, and starts again with all
that it had acknowledged. Stops at the first broken rule with the input that broke it.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psutil

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.common.wire.remoting.errors import BadRemotingFrame
from tandemmq.common.wire.remoting.frames import RemotingFrameReader
from tests.contract.remoting.classic_client import ClassicClient, records
from tests.contract.remoting.conftest import classic, port_of
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until
from tests.faults.remoting_mutations import RemotingMutator
from tests.names_process import GET_ROUTE, NamesProcess

ATTACKERS = 12
PATIENCE = 60.0
GROWTH = 160 << 20
"""Bytes that a process may gain after its first tenth of inputs: topics, groups and clients of strangers."""
LISTEN = 0.02
"""Seconds in which answers are waited for."""
FAULTS = ("incident", "Traceback", "never retrieved", "Exception in callback", "was destroyed", "never awaited")
"""What a process logs of an exception that nobody expected."""
WHOLE = "whole"
"""Topic of the healthy client."""


class Besieged(Protocol):
    """A process under attack."""

    port: int
    log: Path
    process: psutil.Process

    def healthy_call(self, number: int) -> None:
        """What an honest client asks; fails if it is not served."""

    def end(self) -> None:
        """Ends it cleanly, and looks whether everything is there."""

    def close(self) -> None:
        """Lets go of the honest client, whatever has happened."""


class BesiegedStore:
    """A store: a message is sent, and pulled again."""

    def __init__(self, store: StoreProcess) -> None:
        self._store = store
        self.port, self.log = port_of(store), store.log
        assert store.process is not None
        self.process = psutil.Process(store.process.pid)
        self._client = ClassicClient(self.port, "healthy")
        self._sent = 0

    def healthy_call(self, number: int) -> None:
        """Its queue has its messages and no others."""
        body = b"body %d" % number
        sent = self._client.send(WHOLE, body)
        assert (sent.code, sent.fields.get("queueOffset")) == (0, str(number)), (sent.code, sent.remark)
        assert [one.body for one in records(self._client.pull("healthy", WHOLE, number))] == [body]
        self._sent = number + 1

    def end(self) -> None:
        """It starts again, with every message."""
        self._client.close()
        assert self._store.stop() == 0, self.log.read_text()[-5_000:]
        check_log(self.log)
        self._store.start()
        with ClassicClient(port_of(self._store)) as client:
            found: list[bytes] = []
            while len(found) < self._sent:
                found += [one.body for one in records(client.pull("healthy", WHOLE, len(found)))]
        assert found == [b"body %d" % number for number in range(self._sent)]

    def close(self) -> None:
        """See Besieged."""
        self._client.close()


class BesiegedNames:
    """A name server: the route of a broker that is registered over a connection which stays open."""

    def __init__(self, names: NamesProcess, store: StoreProcess) -> None:
        self._names = names
        self.port, self.log = int(str(names.settings["names_port"])), names.log
        assert names.process is not None
        self.process = psutil.Process(names.process.pid)
        names.until_route("TBW102", {"broker-a": {"0": f"127.0.0.1:{port_of(store)}"}})
        self._client = ClassicClient(self.port, "healthy")

    def healthy_call(self, number: int) -> None:
        """It is there. What strangers register beside it is their right."""
        answer = self._client.ask(GET_ROUTE, {"topic": "broker-a"})
        assert b"broker-a" in answer.body, answer

    def end(self) -> None:
        """It stops."""
        self._client.close()
        assert self._names.stop() == 0, self.log.read_text()[-5_000:]
        check_log(self.log)

    def close(self) -> None:
        """See Besieged."""
        self._client.close()


@contextmanager
def besieged(at: str, directory: Path) -> Iterator[Besieged]:
    """A process of a kind."""
    if at == "store":
        with (
            classic(directory / "store", remoting_max_connections=1_000) as store,
            closing(BesiegedStore(store)) as target,
        ):
            yield target
        return
    with (
        NamesProcess(directory / "names") as names,
        classic(directory / "store", namesrv_addr=names.address, broker_ip1="127.0.0.1") as store,
        closing(BesiegedNames(names, store)) as target,
    ):
        yield target


def check_log(log: Path) -> None:
    """Raises AssertionError if the process has told of a fault of its own."""
    said = log.read_text(errors="replace")
    found = [line[:6_000] for line in said.splitlines() if any(word in line for word in FAULTS)]
    assert not found, found[0]


@contextmanager
def healthy(target: Besieged) -> Iterator[list[int]]:
    """Calls all the time, in a thread; gives their number. Raises what went wrong, at the end."""
    done, stopped, wrong = [0], threading.Event(), list[BaseException]()

    def call() -> None:
        try:
            while not stopped.wait(0.002):
                target.healthy_call(done[0])
                done[0] += 1
        except BaseException as error:  # noqa: BLE001 - raised below
            wrong.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield done
    finally:
        stopped.set()
        thread.join(PATIENCE)
    if wrong:
        raise wrong[0]


async def attack(port: int, parts: list[bytes]) -> None:
    """One input on a connection of its own; what comes back must be whole frames without a fault."""
    received = b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with suppress(ConnectionError):
            for part in parts:
                if writer.is_closing():
                    break
                writer.write(part)
                await asyncio.sleep(0)
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTEN):
                    while found := await reader.read(1 << 18):
                        received += found
    finally:
        writer.transport.abort()
    with suppress(BadRemotingFrame):  # the other side of a TLS handshake
        for frame in RemotingFrameReader(1 << 25).receive(received):
            answer = codec.decode(frame)
            assert "incident" not in (answer.remark or ""), answer.remark
            assert not answer.is_response or answer.code != ResponseCode.SYSTEM_BUSY or answer.remark


async def attack_with(port: int, mutator: RemotingMutator, numbers: range) -> None:
    """These inputs, a dozen at a time."""
    left = iter(numbers)

    async def attacker() -> None:
        for number in left:
            parts = mutator.make(number)
            try:
                await attack(port, parts)
            except (AssertionError, OSError):
                sys.stdout.write(f"input {number} of seed {mutator.seed}: {[part.hex() for part in parts]}\n"[:20_000])
                raise

    await asyncio.gather(*[attacker() for _ in range(ATTACKERS)])


def connections(target: Besieged) -> int:
    """Sockets of its port: listening, the healthy client's, and of a name server the broker's."""
    return sum(one.laddr.port == target.port for one in target.process.net_connections("tcp"))


def under_fire(
    target: Besieged,
    mutator: RemotingMutator,
    first: int,
    inputs: int,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """So many inputs beside a healthy client. Raises AssertionError; gives what happened."""
    piece = max(inputs // 10, 1)
    memory = now = 0
    with healthy(target) as done:
        for begin in range(first, first + inputs, piece):
            asyncio.run(attack_with(target.port, mutator, range(begin, min(begin + piece, first + inputs))))
            check_log(target.log)
            now = target.process.memory_info().rss
            memory = memory or now
            say(f"{begin + piece - first} inputs, {done[0]} healthy calls, {now >> 20} MiB\n")
        growth = now - memory
        enough = done[0] + 5
        until(lambda: done[0] >= enough, PATIENCE, lambda: f"{done[0]} healthy calls")
    assert growth < GROWTH, growth
    until(lambda: connections(target) <= 3, PATIENCE, lambda: f"{connections(target)} connections")
    target.end()
    return {"inputs": inputs, "healthy_calls": done[0], "growth": growth}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", choices=("store", "names"), default="store")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, default=20_000)
    options = parser.parse_args()
    sys.stdout.write(f"remoting, {options.at}: {options.inputs} inputs, seed {options.seed}\n")
    with tempfile.TemporaryDirectory() as directory, besieged(options.at, Path(directory)) as target:
        report = under_fire(target, RemotingMutator(options.seed), options.first, options.inputs, sys.stdout.write)
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
