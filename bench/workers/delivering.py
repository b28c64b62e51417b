"""Delivery inside the store's own process: delays, transactions, and what memory and starts cost."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import payloads
from bench.model import Sample
from bench.process import memory_mb
from tandemmq.store.assembly import make_broker, make_delivery, open_topics
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.compiled_core import core_problem
from tandemmq.store.delivery.delays.timer_entry import TimerEntry
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.delays.timer_window import TimerWindow
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.journal.facts import Dealt, Given, Moved, Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import StoreSettings

_HOST = Host("127.0.0.1", 10911)
_AT_ONCE = 256
_FORTY_DAYS_MS = 40 * 24 * 3_600_000
_MORE = 10_000
"""Timers that are added to see what one more costs."""
_DUE_MS = 60_000
"""So much of the index is loaded to see what a timer that is due costs."""

Samples = dict[str, Sample]


class _Open(NamedTuple):
    store: MessageStore
    broker: Broker
    delivery: Delivery


@asynccontextmanager
async def _delivering(root: Path) -> AsyncIterator[_Open]:
    settings = StoreSettings(store_path_root_dir=root)
    store = MessageStore.open(settings.store_config())
    topics, _ = open_topics(settings)
    broker = make_broker(settings, store, topics, StoreMetrics("bench", "bench"))
    delivery = make_delivery(settings, broker)
    _use_core(delivery)
    store.start()
    delivery.start()
    try:
        await delivery.ready()
        yield _Open(store, broker, delivery)
    finally:
        await delivery.stop()
        await store.close()


def _use_core(delivery: Delivery) -> None:
    """As the store does where there is one."""
    if not core_problem() and delivery.follower is not None:
        from tandemmq.store.delivery.compiled import fact_codec

        delivery.journal.core, delivery.follower.core = fact_codec.encode_run, fact_codec


async def _arrived(store: MessageStore, messages: int) -> None:
    """Wait until queue 0 of the topic has so many."""
    queue = store.ensure_queue(payloads.TOPIC, 0)
    while queue.max_offset < messages:  # noqa: ASYNC110 - the store tells of single queues only
        await asyncio.sleep(0.005)


async def _delayed(root: Path, messages: int) -> Samples:
    body = payloads.body()
    async with _delivering(root) as at:
        due = int(time.time() * 1000) + 3_000 + messages // 10
        named = {"TIMER_DELIVER_MS": str(due)}
        begun, cpu = time.perf_counter(), time.process_time()
        for _ in range(0, messages, _AT_ONCE):
            some = [NewMessage(payloads.TOPIC, _HOST, body, dict(named), queue_id=0) for _ in range(_AT_ONCE)]
            await at.broker.append(some, [])
            await asyncio.sleep(0)
        sent = -(-messages // _AT_ONCE) * _AT_ONCE
        taken = Sample(rate=sent / (time.perf_counter() - begun), cpu_us=(time.process_time() - cpu) / sent * 1e6)
        await asyncio.sleep(max(due / 1000 - time.time(), 0))
        begun, cpu = time.perf_counter(), time.process_time()
        await _arrived(at.store, sent)
        seconds = time.perf_counter() - begun
        given = Sample(rate=sent / seconds, cpu_us=(time.process_time() - cpu) / sent * 1e6)
    return {"in": taken, "out, all due at once": given}


async def _late(root: Path, rate: int, seconds: int) -> Samples:
    """Each tenth of a second a tenth of the rate, due one after the other, a second later."""
    sent = 0
    async with _delivering(root) as at:
        begun = time.time()
        while (now := time.time()) - begun < seconds:
            some = []
            while sent < (now - begun) * rate:
                due = int((begun + sent / rate + 1) * 1000)
                named = {"TIMER_DELIVER_MS": str(due)}
                some.append(NewMessage(payloads.TOPIC, _HOST, str(due).encode(), named, queue_id=0))
                sent += 1
            if some:  # the first turn comes before the first message is due to be sent
                await at.broker.append(some, [])
            await asyncio.sleep(0.01)
        await _arrived(at.store, sent)
        queue = at.store.queue(payloads.TOPIC, 0)
        assert queue is not None
        late = []
        for offset in range(sent):
            unit = queue.unit(offset)
            data = None if unit is None else at.store.read_record(unit.physical_offset)
            assert data is not None
            record = decode_record(data, verify=False)
            late.append(record.store_timestamp - int(record.body))
    late.sort()
    return {
        f"{rate:,} a second": Sample(
            p50_us=late[len(late) // 2] * 1e3,
            p99_us=late[len(late) * 99 // 100] * 1e3,
            worst_ms=late[-1],
            least_ms=late[0],
        )
    }


async def _transactions(root: Path, messages: int) -> Samples:
    body, named = payloads.body(), {"TRAN_MSG": "true", "PGROUP": "p"}
    async with _delivering(root) as at:
        begun, cpu = time.perf_counter(), time.process_time()
        handles = []
        for number in range(messages):
            half = NewMessage(payloads.TOPIC, _HOST, body, {**named, "UNIQ_KEY": f"k{number}"}, queue_id=0)
            place = (await at.broker.send(half)).place
            handles.append(str(TransactionHandle(f"k{number}", place.queue_offset, place.physical_offset)))
        halves = Sample(
            rate=messages / (time.perf_counter() - begun), cpu_us=(time.process_time() - cpu) / messages * 1e6
        )
        begun, cpu = time.perf_counter(), time.process_time()
        for handle in handles:
            await at.delivery.end_transaction("p", handle, Ending.COMMIT)
        await _arrived(at.store, messages)
        ends = Sample(
            rate=messages / (time.perf_counter() - begun), cpu_us=(time.process_time() - cpu) / messages * 1e6
        )
    return {"half messages": halves, "commits": ends}


def _timers(root: Path, *waiting: str) -> Samples:
    return {f"{int(one):,} waiting": _timers_waiting(root / one, int(one)) for one in waiting}


def _timers_waiting(directory: Path, waiting: int) -> Sample:
    """An index with so many timers in the next forty days."""
    chance, now, offset = random.Random(waiting), 1_800_000_000_000, 0
    before = memory_mb(os.getpid())[1]
    index = TimerIndex(directory, LocalDisk())
    index.load()

    def add(timers: int) -> None:
        nonlocal offset
        for begin in range(0, timers, _AT_ONCE):
            some = min(_AT_ONCE, timers - begin)
            whens = [now + chance.randrange(_FORTY_DAYS_MS) for _ in range(some)]
            entries = [TimerEntry(when, offset + at, (offset + at) * 300, at) for at, when in enumerate(whens)]
            offset += some
            index.add(entries, offset, offset * 300)

    add(waiting)
    begun = time.process_time()
    add(_MORE)
    add_us = (time.process_time() - begun) / _MORE * 1e6
    window, begun = TimerWindow(index, 1_000, None), time.process_time()
    while window.load(now + _DUE_MS):
        pass
    load_ms = (time.process_time() - begun) * 1e3
    anon = memory_mb(os.getpid())[1] - before
    pending = index.checkpoint()
    pending.write()
    index.written(pending)
    index.close()
    fresh, begun = TimerIndex(directory, LocalDisk()), time.perf_counter()
    assert fresh.load()
    seconds = time.perf_counter() - begun
    size = sum(path.stat().st_size for path in directory.iterdir()) / (1 << 20)
    return Sample(us=add_us, load_ms=load_ms, loaded=len(window), seconds=seconds, anon_mb=anon, disk_mb=size)


async def _groups(root: Path, groups: int) -> Samples:
    """Each group has four queues, and gets and acknowledges in all of them, again and again."""
    places = [Place(f"group-{number}", payloads.TOPIC, queue) for number in range(groups) for queue in range(4)]
    async with _delivering(root) as at:
        journal, due = at.delivery.journal, at.delivery.clock.now_ms() + 3_600_000
        begun, cpu = time.perf_counter(), time.process_time()
        for number in range(0, len(places), _AT_ONCE):
            journal.note(*[Moved(place, 0, 0) for place in places[number : number + _AT_ONCE]])
            journal.write()
        for turn in range(5):
            for number in range(0, len(places), 32):
                some = places[number : number + 32]
                journal.note(*[Given(place, turn * 4, 4, due) for place in some])
                journal.note(*[Dealt(place, turn * 4, 3) for place in some])
                journal.write()
                await asyncio.sleep(0)
        facts = len(places) * 11
        noted = Sample(us=(time.process_time() - cpu) / facts * 1e6, rate=facts / (time.perf_counter() - begun))
        await journal.safe()
        assert await at.store.wait_flushed(at.store.commit_log.max_offset)
        await asyncio.sleep(0.1)
        guard = at.store._retention.guards[0]() or 0
        noted["base_mb"] = (at.store.commit_log.max_offset - guard) / (1 << 20)
        noted["log_mb"] = at.store.commit_log.max_offset / (1 << 20)
    begun, cpu = time.perf_counter(), time.process_time()
    async with _delivering(root) as at:
        replayed = Sample(seconds=time.perf_counter() - begun, cpu_s=time.process_time() - cpu)
        assert len(at.delivery.ledger) >= len(places)
    return {"noted": noted, "open and replay": replayed}


def _in_flight(messages: int) -> Samples:
    """Given out 32 at a time, each answer with its own time, in 16 queues."""
    places = [Place("group", payloads.TOPIC, queue) for queue in range(16)]
    before, ledger = memory_mb(os.getpid())[1], Ledger()
    for place in places:
        ledger.apply(Moved(place, 0, 0))
    ledger.come_due(0)
    begun = time.process_time()
    for number in range(messages // 32):
        ledger.apply(Given(places[number % 16], number // 16 * 32, 32, 1_800_000_000_000 + number))
    given_us = (time.process_time() - begun) / messages * 1e6
    anon = memory_mb(os.getpid())[1] - before
    begun = time.process_time()
    for number in range(messages // 32):
        ledger.apply(Dealt(places[number % 16], number // 16 * 32, 32))
    dealt_us = (time.process_time() - begun) / messages * 1e6
    sample = Sample(anon_mb=anon, bytes_each=anon * (1 << 20) / messages, given_us=given_us, dealt_us=dealt_us)
    return {f"{messages:,} in flight": sample}


def _run(task: Callable[..., Coroutine[Any, Any, Samples]]) -> Callable[..., Samples]:
    return lambda root, *numbers: asyncio.run(task(root, *map(int, numbers)))


_TASKS: dict[str, Callable[..., Samples]] = {
    "delayed": _run(_delayed),
    "late": _run(_late),
    "transactions": _run(_transactions),
    "timers": _timers,
    "groups": _run(_groups),
    "in-flight": lambda _, messages: _in_flight(int(messages)),
}


def measure(what: str, root: Path, *numbers: str) -> Samples:
    """One of the measurements, with its numbers; the samples by what they are of."""
    return _TASKS[what](root, *numbers)
