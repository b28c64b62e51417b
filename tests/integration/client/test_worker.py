"""Workers: handlers, their failures, their order; and a pool of processes of which one is killed."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import DeadLetter, MessageContent, Producer, RequestFailed, Retry, aio, aio_worker, worker
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until


def send(store: StoreProcess, topic: str, bodies: list[str], **extras: str) -> None:
    with Producer(store.address) as producer:
        for body in bodies:
            producer.send(topic, body, **extras)  # type: ignore[arg-type]


def test_plain_handlers(store: StoreProcess) -> None:
    """One that returns, one that fails once, one that asks for a retry, one that gives up."""
    send(store, "handled", ["good", "fails", "asks", "hopeless"])
    stop = threading.Event()
    seen: list[tuple[bytes, int]] = []

    def handle(message: MessageContent) -> None:
        seen.append((message.body, message.delivery_number))
        if len(seen) == 6:
            stop.set()
        if message.body == b"hopeless":
            raise DeadLetter("no such customer")
        if message.delivery_number == 1 and message.body != b"good":
            raise (Retry(after=0) if message.body == b"asks" else KeyError("once"))

    counts = worker(
        handle, store.address, group="plain", topic="handled", retry_after=lambda number: 0, concurrency=2, stop=stop
    )
    assert sorted(seen) == [
        (b"asks", 1), (b"asks", 2), (b"fails", 1), (b"fails", 2), (b"good", 1), (b"hopeless", 1),
    ]  # fmt: skip
    assert (counts.done, counts.retried, counts.dead) == (3, 2, 1)
    with store.client() as client:
        (record,) = client.pull("%DLQ%plain", 0, 0, wait_seconds=10).records
        assert record.body == b"hopeless"


async def test_it_finishes_what_it_holds(store: StoreProcess) -> None:
    send(store, "finished", ["one", "two"])
    stop, both = asyncio.Event(), asyncio.Event()
    running: list[bytes] = []
    finished: list[bytes] = []

    async def handle(message: aio.Message) -> None:
        running.append(message.body)
        if len(running) == 2:
            both.set()
            stop.set()
        await both.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        finished.append(message.body)

    counts = await aio.worker(handle, store.address, group="g", topic="finished", concurrency=2, stop=stop)
    assert sorted(finished) == [b"one", b"two"]
    assert counts.done == 2


async def test_messages_of_a_key_are_handled_in_turn(store: StoreProcess) -> None:
    """The third of a key fails twice: nothing of its key overtakes it, other keys go on."""
    keys, each = ("a", "b", "c"), 10
    with Producer(store.address) as producer:
        for number in range(each):
            for key in keys:
                producer.send("turns", str(number), order_key=key)
    stop = asyncio.Event()
    done: dict[str, list[int]] = {key: [] for key in keys}
    at_work: Counter[str] = Counter()

    async def handle(message: aio.Message) -> None:
        key = message.order_key
        at_work[key] += 1
        assert at_work[key] == 1, "two of one key at a time"
        await asyncio.sleep(0)
        at_work[key] -= 1
        if key == "a" and message.body == b"2" and message.delivery_number < 3:
            raise KeyError("not yet")
        done[key].append(int(message.body))
        if sum(map(len, done.values())) == each * len(keys):
            stop.set()

    await asyncio.wait_for(
        aio.worker(handle, store.address, group="g", topic="turns", retry_after=lambda number: 0, stop=stop), 60
    )
    assert done == {key: list(range(each)) for key in keys}


@pytest.mark.parametrize("key", ["", "customer-4"])
async def test_the_group_says_how_often_a_message_is_tried(
    store: StoreProcess, make_group: Callable[[str, bool, int], None], key: str
) -> None:
    name = f"given-up-{key or 'alone'}"
    make_group(name, bool(key), 2)
    with Producer(store.address) as producer:
        producer.send(name, b"poison", order_key=key)
        producer.send(name, b"good", order_key=key)
    stop = asyncio.Event()
    tries: list[int] = []
    good: list[int] = []

    async def handle(message: aio.Message) -> None:
        is_good = message.body == b"good"
        (good if is_good else tries).append(message.delivery_number)
        if good and len(tries) == 3:
            stop.set()
        if not is_good:
            raise KeyError("never")

    counts = await asyncio.wait_for(
        aio.worker(handle, store.address, group=name, topic=name, retry_after=lambda number: 0, stop=stop), 60
    )
    assert (tries, good) == ([1, 2, 3], [1])
    assert (counts.done, counts.retried, counts.dead) == (1, 2, 1)
    with store.client() as client:
        (letter,) = client.pull(f"%DLQ%{name}", 0, 0, wait_seconds=10).records
    assert letter.body == b"poison"


async def test_the_group_says_how_long_a_failed_message_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [0, 250, 86_400_000]}}
    groups = {"waiting": {"groupName": "waiting", "retryMaxTimes": 16, "groupRetryPolicy": policy}}
    config = tmp_path / "store" / "config"
    config.mkdir(parents=True)
    (config / "subscriptionGroup.json").write_text(json.dumps({"subscriptionGroupTable": groups}))
    monkeypatch.setattr(aio_worker, "back_off", lambda number: 3_600)
    stop = asyncio.Event()
    tries: list[int] = []

    async def handle(message: aio.Message) -> None:
        tries.append(message.delivery_number)
        if len(tries) == 3:
            stop.set()
        raise KeyError("never")

    with StoreProcess(tmp_path / "store") as own:
        send(own, "waited", ["poison"])
        await asyncio.wait_for(aio.worker(handle, own.address, group="waiting", topic="waited", stop=stop), 60)
        assert tries == [1, 2, 3]
        for group, waits in (("waiting", [0, 0.25, 43_200, 43_200]), ("of-no-policy", [3_600] * 4)):
            async with aio.Consumer(own.address, group=group, topic="waited") as consumer:
                await consumer._greeted.wait()
                wait = aio_worker._policy_of(consumer)
                assert [wait(number) for number in (1, 2, 3, 9)] == waits


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"attempts": 0}])
async def test_numbers_that_make_no_sense(store: StoreProcess, wrong: dict[str, Any]) -> None:
    async def handle(message: aio.Message) -> None:
        raise AssertionError("never")

    with pytest.raises(ValueError, match=next(iter(wrong))):
        await aio.worker(handle, store.address, group="g", topic="t", **wrong)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        worker(print, store.address, group="g", topic="t", **wrong)


async def test_what_no_retry_can_mend_ends_it(store: StoreProcess) -> None:
    async def handle(message: aio.Message) -> None:
        raise AssertionError("never")

    with pytest.raises(RequestFailed):
        await aio.worker(handle, store.address, group="no good name", topic="turns")


HANDLER = """
    import os
    import sys

    from tandemmq.client import worker

    def handle(message):
        line = f"{os.getpid()} {message.body.decode()} {message.delivery_number}\\n"
        os.write(lines, line.encode())
        if message.body == b"poison":
            raise ValueError("cannot be read")

    lines = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    worker(handle, sys.argv[1], group="pool", topic="work", concurrency=2, invisible=10, retry_after=lambda number: 0)
"""


@pytest.mark.slow
def test_a_pool_of_processes_of_which_one_is_killed(store: StoreProcess, tmp_path: Path) -> None:
    """Every message is handled; the one that always fails is a dead letter, after as many deliveries as are allowed."""
    program, lines = tmp_path / "pool.py", tmp_path / "lines"
    program.write_text(textwrap.dedent(HANDLER))
    lines.touch()

    def handled() -> set[str]:
        return {line.split()[1] for line in lines.read_text().splitlines()}

    pool = [subprocess.Popen([sys.executable, str(program), store.address, str(lines)]) for _ in range(4)]
    try:
        bodies = [str(number) for number in range(200)]
        send(store, "work", [*bodies[:100], "poison"])
        until(lambda: len(handled()) > 20, 60, "they work")
        pool[0].kill()
        send(store, "work", bodies[100:])
        until(lambda: handled() >= {*bodies, "poison"}, 60, "all is handled")
        with store.client() as client:
            until(lambda: "%DLQ%pool" in {one.topic for one in client.queues().topics}, 60, "there is a dead letter")
            (record,) = client.pull("%DLQ%pool", 0, 0, wait_seconds=30).records
        assert record.body == b"poison"
        numbers = [int(line.split()[2]) for line in lines.read_text().splitlines() if line.split()[1] == "poison"]
        assert sorted(numbers) == list(range(1, 18)), "retryMaxTimes and one"
        for process in pool[1:]:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(60) for process in pool[1:]] == [0, 0, 0]
    finally:
        for process in pool:
            process.kill()
            process.wait()


def test_the_command_line(store: StoreProcess, tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text("async def handle(message):\n    print(message.body.decode(), flush=True)\n")
    send(store, "served", ["a cake"])
    command = [sys.executable, "-m", "tandemmq.cli.main", "worker", "orders:handle", "kitchen", "served", "--json"]
    with subprocess.Popen(
        [*command, "--address", store.address], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "a cake\n"
            process.send_signal(signal.SIGTERM)
            said, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert json.loads(said) == {"done": 1, "retried": 0, "dead": 0}, errors
