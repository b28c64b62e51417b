"""Groups, delays and transactions go from RocketMQ to ours, to RocketMQ and to ours again: nothing is lost.

What comes again on the way is counted, and is no more than docs/rocketmq-compatibility.md says.
"""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.port import Ending, Subscription, Wish
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.format.record import decode_record
from tests.interop.java_delivery import Half, JavaDelivery
from tests.interop.ours import CONFIG
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.interop.test_killed import remove_unfinished
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

WORK, JOBS, PULLED = "work", "jobs", "pulled"
POPPERS, PULLERS, PRODUCERS = "poppers", "pullers", "producers"
RETRY, DEAD = f"%RETRY%{PULLERS}", f"%DLQ%{PULLERS}"
SECONDS = 15
"""What is delayed waits longer than it takes to stop a broker; what comes early is counted all the same."""
LEVELS = f"1s 5s 10s {SECONDS}s 1m"
"""Of delays: what waits has the fourth."""


class Scene:
    """One directory, and how its brokers end."""

    def __init__(self, version: str, root: Path, *, clean: bool) -> None:
        self.version = version
        self.root = root
        self.clean = clean
        self.timers = version.startswith("5")
        self._copies = 0

    @contextmanager
    def java(self) -> Iterator[JavaDelivery]:
        """RocketMQ on the directory."""
        broker = RocketMQ(
            self.version,
            self.root,
            transactionCheckInterval=600_000,
            messageDelayLevel=LEVELS,
        )
        broker.start()
        try:
            with broker.connect() as remoting:
                yield JavaDelivery(remoting)
                time.sleep(0 if self.clean else 6.0)  # it writes its offsets every five seconds
            if self.clean:
                broker.stop()
        finally:
            broker.kill()
        remove_unfinished(self.root)

    @asynccontextmanager
    async def ours(self) -> AsyncIterator[DeliveringStore]:
        """Our store on the directory; what a kill -9 would leave of it is the directory after that."""
        settings: dict[str, Any] = {**CONFIG, "file_reserved_time": 100_000, "message_delay_level": LEVELS}
        self._copies += 1
        copy = self.root.with_name(f"killed-{self._copies}")
        async with delivering(self.root, **settings) as at:
            yield at
            if not self.clean:
                at.killed(copy)
        if not self.clean:
            shutil.rmtree(self.root)
            copy.rename(self.root)
            remove_unfinished(self.root)


def java_writes(java: JavaDelivery, *, timers: bool) -> Half:
    """One of each kind; gives the half message that is pending."""
    for number in range(5):
        java.send(JOBS, f"j{number}")
    offsets = [java.send(PULLED, f"p{number}") for number in range(5)]
    if timers:
        popped = java.pop(POPPERS, JOBS, 3, SECONDS * 1_000)
        assert [record.body for record, _ in popped] == [b"j0", b"j1", b"j2"]
        java.acknowledge(popped[1][1])
        java.send(WORK, "timed-done", TIMER_DELIVER_MS=str(time.time_ns() // 1_000_000 + 2_000))
        java.wait_for(WORK, "timed-done")
        java.send(WORK, "timed", TIMER_DELIVER_MS=str(time.time_ns() // 1_000_000 + SECONDS * 1_000))
    else:
        java.commit(POPPERS, JOBS, 3)
    java.send_back(PULLERS, PULLED, offsets[0], 1)
    java.send_back(PULLERS, PULLED, offsets[1], -1)
    java.commit(PULLERS, PULLED, 3)
    java.end(java.send_half(WORK, "committed", PRODUCERS))
    java.end(java.send_half(WORK, "rolled back", PRODUCERS), commit=False)
    half = java.send_half(WORK, "half", PRODUCERS)
    java.send(WORK, "level-done", DELAY="1")
    java.wait_for(WORK, "level-done", "committed")
    java.wait_for(DEAD, "p1")
    java.send(WORK, "level", DELAY="4")
    return half


async def stored(at: DeliveringStore, topic: str, *wanted: str, queue: int = 0) -> Counter[str]:
    """How often each body is in a queue, once all the wanted ones are."""
    found: Counter[str] = Counter()
    for _ in range(1_800):
        at.store.catch_up()
        found.clear()
        one = at.store.queue(topic, queue)
        for offset in range(0 if one is None else one.max_offset):
            unit = None if one is None else one.unit(offset)
            data = None if unit is None else at.store.read_record(unit.physical_offset, unit.size)
            assert data is not None
            found[decode_record(data).body.decode()] += 1
        if set(wanted) <= found.keys():
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"of {wanted} in {topic} only {found} came")


async def received(at: DeliveringStore, group: str, topic: str, *wanted: str, keep: str = "") -> Counter[str]:
    """How often a group gets each message, until it has the wanted ones and no more come. All but `keep` are done."""
    found: Counter[str] = Counter()
    for _ in range(300):
        complete = set(wanted) <= found.keys()
        batch = await at.delivery.receive(Wish(group, topic, -1, Subscription(), wait_ms=1_500, invisible_ms=20_000))
        batch.sent(lambda: True)
        if complete and not batch.messages:
            return found
        bodies = {one.handle: decode_record(one.record).body.decode() for one in batch.messages}
        found.update(bodies.values())
        done = [handle for handle, body in bodies.items() if body != keep]
        assert all(one.error is None for one in await at.delivery.acknowledge(group, topic, done))
    raise AssertionError(f"of {wanted} only {found} came")


async def committed(at: DeliveringStore, handle: str) -> None:
    """Commit a transaction, once half messages are read."""
    while True:
        try:
            return await at.delivery.end_transaction(PRODUCERS, handle, Ending.COMMIT)
        except NotDelivering:
            await asyncio.sleep(0.05)


async def ours_goes_on(at: DeliveringStore, half: Half, scene: Scene) -> None:
    """All that RocketMQ has left is carried on, and what it had done does not come again."""
    await committed(at, handle_of(half))
    timed = ["timed", "timed-done"] if scene.timers else []
    work = await stored(at, WORK, "half", "level", "level-done", "committed", *timed)
    assert "rolled back" not in work
    again = Counter({body: times - 1 for body, times in work.items() if times > 1})
    assert scene.clean <= (not again), again
    assert again.keys() <= {"level-done", "timed-done"}, again
    open_jobs = ["j0", "j2"] if scene.timers else []
    jobs = await received(at, POPPERS, JOBS, *open_jobs, "j3", "j4")
    pulled = await received(at, PULLERS, PULLED, "p0", "p3", "p4")
    if scene.clean:
        assert jobs == Counter([*open_jobs, "j3", "j4"])
        assert pulled == Counter(["p0", "p3", "p4"])
    assert await stored(at, DEAD, "p1") == {"p1": 1}


async def ours_writes(at: DeliveringStore, *, timers: bool) -> Half:
    """The same kinds."""

    async def send(topic: str, body: str, **properties: str) -> int:
        receipt = await at.broker.send(NewMessage(topic, HOST, body.encode(), properties, 0))
        return receipt.place.physical_offset

    offsets = [await send(PULLED, f"q{number}") for number in range(4)]
    for number in range(4):
        await send(JOBS, f"k{number}")
    at.store.catch_up()
    await received(at, POPPERS, JOBS, "k0", "k1", "k2", "k3", keep="k1")
    await at.delivery.send_back(PULLERS, offsets[0], 1, 16)
    await at.delivery.send_back(PULLERS, offsets[1], -1, 16)
    queue = at.store.queue(PULLED, 0)
    assert queue is not None
    await at.delivery.commit(PULLERS, PULLED, 0, queue.max_offset - 1)
    now = time.time_ns() // 1_000_000
    if timers:
        await send(WORK, "our timed-done", TIMER_DELIVER_MS=str(now + 1_000))
        await stored(at, WORK, "our timed-done")
        await send(WORK, "our timed", TIMER_DELIVER_MS=str(now + SECONDS * 1_000))
    await send(WORK, "our level", DELAY="4")
    half, done = await half_of(at, "our half"), await half_of(at, "our committed")
    await committed(at, handle_of(done))
    return half


async def half_of(at: DeliveringStore, body: str) -> Half:
    """A half message."""
    properties = {"TRAN_MSG": "true", "PGROUP": PRODUCERS}
    place = (await at.broker.send(NewMessage(WORK, HOST, body.encode(), properties, 0))).place
    data = at.store.read_record(place.physical_offset)
    assert data is not None
    return Half(PRODUCERS, decode_record(data).unique_key or "", place.queue_offset, place.physical_offset)


def handle_of(half: Half) -> str:
    """What ends it here."""
    return str(TransactionHandle(half.unique_key, half.queue_offset, half.physical_offset))


def java_goes_on(java: JavaDelivery, half: Half, scene: Scene) -> None:
    """All that ours has left is carried on."""
    java.end(half)
    timed = ["our timed", "our timed-done"] if scene.timers else []
    work = java.wait_for(WORK, "our half", "our level", "our committed", *timed)
    again = {body for body, times in work.items() if times > 1 and body.startswith("our")}
    assert again <= ({"our timed-done"} if scene.timers and not scene.clean else set()), work
    java.wait_for(RETRY, "q0")
    assert java.bodies(DEAD)["q1"] == 1
    bodies = [f"j{number}" for number in range(5)] + [f"k{number}" for number in range(4)]
    position = java.position(POPPERS, JOBS)
    assert bodies[position] == "k1" or (not scene.clean and position <= bodies.index("k1")), position
    assert java.position(PULLERS, PULLED) == 8 or not scene.clean


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_there_and_back(tmp_path: Path, version: str, clean: bool) -> None:
    need_rocketmq(version)
    scene = Scene(version, tmp_path / "store", clean=clean)
    with scene.java() as java:
        half = java_writes(java, timers=scene.timers)
    async with scene.ours() as at:
        await ours_goes_on(at, half, scene)
        half = await ours_writes(at, timers=scene.timers)
    with scene.java() as java:
        java_goes_on(java, half, scene)
    async with scene.ours() as at:
        work = await stored(at, WORK)
        again = {body: times for body, times in work.items() if times > 1}
        assert not (clean and again), again
        jobs = await received(at, POPPERS, JOBS, "k1")
        assert jobs.keys() == {"k1"} or not clean, jobs
        await received(at, PULLERS, PULLED, "q0", "q3")
