"""Receiving over stores that stop and are killed: what was acknowledged never comes again, all else does, in order."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.clock import BootClock
from tandemmq.store.delivery.errors import HandleExpired
from tandemmq.store.delivery.journal.facts import GivenAgain, HeldBy, Place
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.members.sessions import Member
from tandemmq.store.delivery.opening import RENEWED_WAIT_MS
from tandemmq.store.delivery.port import FilterKind, GivenMessage, Subscription, Wish
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.delivery.receiving.renewal import RENEWED_MS
from tandemmq.store.format.record import decode_record
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering

GROUP, TOPIC = "workers", "orders"

LONG_MS = 600_000
"""So long nothing comes due by itself, however busy the machine is."""


@pytest.fixture(scope="module", autouse=True)
def _long_wait() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tandemmq.store.delivery.opening.LEAST_WAIT_MS", LONG_MS)
        yield


async def send(at: DeliveringStore, *bodies: str, **properties: str) -> None:
    for body in bodies:
        message = NewMessage(TOPIC, HOST, body.encode(), {"__SHARDINGKEY": body[0], **properties}, queue_id=0)
        await at.broker.append([message], [])


async def take(at: DeliveringStore, most: int = 32, group: str = GROUP) -> list[GivenMessage]:
    batch = await at.delivery.receive(Wish(group, TOPIC, most=most, invisible_ms=LONG_MS))
    batch.sent(lambda: True)
    return list(batch.messages)


async def acknowledge(at: DeliveringStore, messages: Sequence[GivenMessage], group: str = GROUP) -> list[bool]:
    outcomes = await at.delivery.acknowledge(group, TOPIC, [one.handle for one in messages])
    return [one.error is None for one in outcomes]


def come_due(at: DeliveringStore) -> None:
    """All that is given out is due now."""
    ledger, now = at.delivery.ledger, at.delivery.clock.now_ms()
    for progress in ledger.all():
        for offset, entry in list(progress.entries.items()):
            if entry.due > now:
                at.delivery.journal.note(GivenAgain(progress.place, offset, entry.number, now))
    ledger.come_due(now)


async def killed(at: DeliveringStore, root: Path) -> Path:
    """What a kill -9 would leave when the present turn is over."""
    await asyncio.sleep(0)
    return at.killed(root)


def bodies(messages: Sequence[GivenMessage]) -> list[str]:
    return [decode_record(one.record).body.decode() for one in messages]


async def test_after_a_clean_stop_nothing_comes_twice_and_handles_still_count(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        await send(at, "a", "b", "c")
        held = await take(at, 2)
        assert await acknowledge(at, held[:1]) == [True]
    async with delivering(tmp_path) as at:
        assert bodies(await take(at)) == ["c"]
        assert await acknowledge(at, held) == [True, True]
        come_due(at)
        again = await take(at)
        assert (bodies(again), [one.number for one in again]) == (["c"], [2])


async def test_after_a_kill_what_was_acknowledged_never_comes_again(tmp_path: Path) -> None:
    async with delivering(tmp_path / "one") as at:
        await send(at, "a", "b", "c")
        held = await take(at, 2)
        assert await acknowledge(at, held[:1]) == [True]
        left = await killed(at, tmp_path / "two")
    async with delivering(left) as at:
        assert bodies(await take(at)) == ["c"], "what is held stays so for some seconds"
        come_due(at)
        again = await take(at)
        assert sorted(bodies(again)) == ["b", "c"]
        assert await acknowledge(at, [held[1]]) == [False], "a handle of before the kill, given out again since"
        assert await acknowledge(at, again) == [True, True]
        progress = at.delivery.ledger.progress(Place(GROUP, TOPIC, 0))
        assert progress is not None
        assert progress.cursor == 3


@pytest.mark.parametrize("way", ["plain", "at once", "tags", "properties", "ordered"])
async def test_a_handle_of_what_a_crash_took_does_not_acknowledge_what_took_its_place(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However messages are given out for the first time: the handle names the same place and number."""
    monkeypatch.setattr("tandemmq.common.slices._SLICE_SECONDS", 3_600.0)  # a busy machine gives nothing at once

    async def taken(at: DeliveringStore) -> list[GivenMessage]:
        expression, kind = {"tags": ("red", FilterKind.TAG), "properties": ("a = 1", FilterKind.SQL)}.get(
            way, ("*", FilterKind.TAG)
        )
        wish = Wish(GROUP, TOPIC, subscription=Subscription(expression, kind), invisible_ms=LONG_MS)
        batches = at.delivery.receive_at_once(wish) if way == "at once" else [await at.delivery.receive(wish)]
        return [message for batch in batches for message in batch.messages]

    async with delivering(tmp_path / "first") as at:
        await at.delivery.groups.add([GroupConfig(GROUP, consume_message_orderly=way == "ordered")])
        await send(at, "first", TAGS="red", a="1")
        at.store.catch_up()
        assert await acknowledge(at, await taken(at)) == [True]
        root = await killed(at, tmp_path / "second")
        await send(at, "lost", TAGS="red", a="1")
        at.store.catch_up()
        [lost] = await taken(at)
    async with delivering(root) as at:
        await send(at, "other", TAGS="red", a="1")
        at.store.catch_up()
        [other] = await taken(at)
        assert await acknowledge(at, [lost]) == [False]
        assert at.delivery.ledger.entries == 1
        assert await acknowledge(at, [other]) == [True]


@pytest.mark.parametrize("deliveries", [1, 2])
@pytest.mark.parametrize("told", [False, True], ids=["by facts", "told whole"])
@pytest.mark.parametrize("ends", ["k", "s", "kskk"])
async def test_nor_does_it_after_further_starts(tmp_path: Path, ends: str, told: bool, deliveries: int) -> None:
    """The journal says which start gave a message out; over clean stops (s) and kills (k), and in snapshots too."""

    async def given(at: DeliveringStore, body: str) -> GivenMessage:
        await send(at, body)
        at.store.catch_up()
        [message] = await take(at)
        for _ in range(1, deliveries):
            come_due(at)
            [message] = await take(at)
        assert (bodies([message]), message.number) == ([body], deliveries)
        return message

    async with delivering(tmp_path / "first") as at:
        assert await acknowledge(at, [await given(at, "first")]) == [True]
        root = await killed(at, tmp_path / "second")
        lost = await given(at, "lost")
    other = None
    for life, end in enumerate(ends):
        async with delivering(root) as at:
            other = other or await given(at, "other")
            assert await acknowledge(at, [lost]) == [False]
            progress = at.delivery.ledger.progress(Place(GROUP, TOPIC, 0))
            assert progress is not None
            if told:
                at.delivery.journal.note(*progress.snapshot(1))
            if end == "k":
                root = await killed(at, tmp_path / f"life {life}")
    async with delivering(root) as at:
        assert other is not None
        assert await acknowledge(at, [lost]) == [False]
        assert at.delivery.ledger.entries == 1
        assert await acknowledge(at, [other]) == [True]
        assert at.delivery.ledger.entries == 0


async def test_when_an_answer_can_leave_a_kill_does_not_undo_it(tmp_path: Path) -> None:
    async with delivering(tmp_path / "one") as at:
        await send(at, "a", "b")
        batch = await at.delivery.receive(Wish(GROUP, TOPIC, most=1, invisible_ms=4 * LONG_MS))
        left = at.killed(tmp_path / "two")
        await at.delivery.change_invisible(GROUP, TOPIC, batch.messages[0].handle, 2 * LONG_MS)
        later = at.killed(tmp_path / "three")
    for root, wait in ((left, 4 * LONG_MS), (later, 2 * LONG_MS)):
        async with delivering(root) as at:
            assert bodies(await take(at)) == ["b"]
            progress = at.delivery.ledger.progress(Place(GROUP, TOPIC, 0))
            assert progress is not None
            entry = progress.entries[0]
            assert entry.number == 1
            assert abs(entry.due - at.delivery.clock.now_ms() - wait) < LONG_MS


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_what_is_renewed_waits_for_its_client_after_a_start_and_is_renewed_then(tmp_path: Path, end: str) -> None:
    place = Place(GROUP, TOPIC, 0)
    async with delivering(tmp_path / "one") as at:
        await send(at, "a", "b")
        batch = await at.delivery.receive(Wish(GROUP, TOPIC, renew=True, client_id="client"))
        batch.sent(lambda: True)
        now = at.delivery.clock.now_ms()
        at.delivery.journal.note(HeldBy(place, 0, 2, now + 1_000, "client", now))  # its minute is nearly over
        left = await killed(at, tmp_path / "two") if end == "kill" else at.root
    before = BootClock().now_ms()
    async with delivering(left) as at:
        progress = at.delivery.ledger.progress(place)
        assert progress is not None
        after = at.delivery.clock.now_ms()
        assert all(before + RENEWED_WAIT_MS <= one.due <= after + RENEWED_WAIT_MS for one in progress.entries.values())
        at.delivery.sessions.register(Member("client", GROUP))
        assert all(one.due >= after + RENEWED_MS for one in progress.entries.values())
        assert await take(at) == []
        assert await acknowledge(at, batch.messages) == [True, True]
        come_due(at)
        assert await take(at) == []


async def test_who_is_gone_before_the_answer_can_leave_gives_it_back(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        await send(at, "a")
        receiving = asyncio.create_task(at.delivery.receive(Wish(GROUP, TOPIC, most=1, invisible_ms=60_000)))
        progress = None
        while progress is None or not progress.entries:
            await asyncio.sleep(0)
            progress = at.delivery.ledger.progress(Place(GROUP, TOPIC, 0))
        assert receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
        assert receiving.cancelled()
        [message] = await take(at)
        assert message.number == 1


async def test_after_a_kill_message_groups_are_locked_as_before(tmp_path: Path) -> None:
    async with delivering(tmp_path / "one") as at:
        await at.delivery.groups.add([GroupConfig(GROUP, consume_message_orderly=True)])
        await send(at, "x0", "x1", "y0")
        assert bodies(await take(at, 1)) == ["x0"]
        assert bodies(held := await take(at, 1)) == ["y0"]
        left = await killed(at, tmp_path / "two")
    async with delivering(left) as at:
        await send(at, "x2", "y1", "z0")
        assert bodies(await take(at)) == ["z0"]
        assert await acknowledge(at, held) == [True]
        assert bodies(await take(at)) == ["y1"]
        come_due(at)
        again = bodies(await take(at))
        assert [one for one in again if one[0] == "x"] == ["x0", "x1", "x2"]


async def test_a_queue_that_is_put_right_after_a_kill_unlocks_no_message_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was given out could not be read when the next was looked at, which was then given out too."""
    async with delivering(tmp_path / "one") as at:
        await at.delivery.groups.add([GroupConfig(GROUP, consume_message_orderly=True)])
        await send(at, "x0", "x1", "y0")
        assert bodies(await take(at, 1)) == ["x0"]
        root = await killed(at, tmp_path / "two")
    read = PlaceReader.one
    unreadable = {0}

    def one(self: PlaceReader, place: Place, offset: int) -> bytes | Absence:
        return Absence.LATER if offset in unreadable else read(self, place, offset)

    monkeypatch.setattr(PlaceReader, "one", one)
    async with delivering(root) as at:
        assert bodies(await take(at)) == []
        unreadable.clear()
        assert bodies(await take(at)) == ["y0"]
        come_due(at)
        assert [one for one in bodies(await take(at)) if one[0] == "x"] == ["x0", "x1"]


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["send", "take", "take", "acknowledge", "acknowledge", "retry", "release", "due", "stop", "kill"]
        ),
        st.integers(0, 5),
    ),
    max_size=25,
)


class History:
    """What producers and consumers have seen."""

    def __init__(self, root: Path, *, ordered: bool) -> None:
        self.root = root
        self.ordered = ordered
        self.sent: list[str] = []
        self.done: set[str] = set()
        self.held: list[GivenMessage] = []
        self.numbers: dict[str, int] = {}
        self.runs = 0

    async def step(self, at: DeliveringStore, what: str, number: int) -> None:
        if what == "send":
            fresh = [f"{'abc'[len(self.sent) % 3]}{len(self.sent) + one}" for one in range(number + 1)]
            await send(at, *fresh)
            self.sent += fresh
        elif what == "take":
            self.check(messages := await take(at, number + 1))
            self.held += messages
        elif what == "release":
            batch = await at.delivery.receive(Wish(GROUP, TOPIC, most=number + 1, invisible_ms=10_000))
            batch.release()
        elif what == "due":
            come_due(at)
        elif self.held and what in ("acknowledge", "retry"):
            one = self.held.pop(number % len(self.held))
            if what == "acknowledge":
                if (await acknowledge(at, [one]))[0]:
                    self.done.update(bodies([one]))
            else:
                with suppress(HandleExpired):
                    await at.delivery.change_invisible(GROUP, TOPIC, one.handle, number * 1_000)

    def check(self, messages: Sequence[GivenMessage]) -> None:
        """Nothing that is done with comes again; numbers grow; message groups are in order."""
        given = bodies(messages)
        assert not self.done.intersection(given)
        for body, one in zip(given, messages, strict=True):
            assert one.number >= self.numbers.get(body, 0)
            self.numbers[body] = one.number
        if self.ordered:
            for body in given:
                earlier = [one for one in self.sent if one[0] == body[0] and int(one[1:]) < int(body[1:])]
                assert all(one in self.done or given.index(one) < given.index(body) for one in earlier)

    async def finish(self, at: DeliveringStore) -> None:
        """All that is left comes, and then nothing."""
        for _ in range(200):
            come_due(at)
            messages = await take(at)
            if not messages:
                break
            self.check(messages)
            for one in messages:
                if (await acknowledge(at, [one]))[0]:
                    self.done.update(bodies([one]))
        assert self.done == set(self.sent)


@pytest.mark.slow
@given(STEPS, st.booleans())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_message_is_dealt_with_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], ordered: bool
) -> None:
    history = History(tmp_path_factory.mktemp("history"), ordered=ordered)
    asyncio.run(play(history, steps))
    assert history.done == set(history.sent)


async def play(history: History, steps: list[Step]) -> None:
    root, queue = history.root / "0", list(steps)
    while True:
        async with delivering(root) as at:
            if not history.runs:
                config = GroupConfig(GROUP, retry_max_times=-1, consume_message_orderly=history.ordered)
                await at.delivery.groups.add([config])
                await send(at, "a0")
                history.sent.append("a0")
            history.runs += 1
            after = root
            while queue:
                what, number = queue.pop(0)
                if what == "stop":
                    break
                if what == "kill":
                    after = await killed(at, history.root / str(history.runs))
                    break
                await history.step(at, what, number)
            else:
                await history.finish(at)
                return
        root = after
