"""Hooks around a broker's sends and pulls: what they are told, what they can refuse, and what they cannot break."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.errors import TandemError
from tandemmq.hooks import ConsumeHook, DeliveryContext, HookContext, SendContext, SendHook
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import ForbiddenTopic
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.hook_calls import HookCalls, HookRefused
from tandemmq.store.broker.hooked_broker import HookedBroker
from tandemmq.store.broker.pulled import Wanted
from tandemmq.store.broker.send import NewBatch, NewMessage
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.format import properties
from tandemmq.store.format.batch import encode_client_batch
from tests.unit.broker.broker_kit import HOST, Kit, bodies, broker


class Witness:
    """Writes down what it is told; does what a test wants where the body or the topic says so."""

    def __init__(self, name: str = "witness", **does: Callable[[], Any]) -> None:
        self.name, self.does = name, does
        self.told: list[tuple[str, Any]] = []

    def before_send(self, context: SendContext) -> None:
        context.notes[self.name] = context.body
        self.hears("before_send", context)

    def after_send(self, context: SendContext) -> None:
        assert context.notes[self.name] == context.body
        self.hears("after_send", context)

    def before_delivery(self, context: DeliveryContext) -> None:
        self.hears("before_delivery", context)

    def after_delivery(self, context: DeliveryContext) -> None:
        self.hears("after_delivery", context)

    def before_acknowledgement(self, context: Any) -> None:
        self.hears("before_acknowledgement", context)

    def after_acknowledgement(self, context: Any) -> None:
        self.hears("after_acknowledgement", context)

    def hears(self, point: str, context: HookContext) -> None:
        self.told.append((point, context))
        if point in self.does and b"fine" not in getattr(context, "body", b""):
            self.does[point]()

    def points(self) -> list[str]:
        return [point for point, _ in self.told]


def raising(error: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


class Complaints(list[tuple[str, str, BaseException]]):
    """What is logged."""

    def __call__(self, hook: str, point: str, error: BaseException) -> None:
        self.append((hook, point, error))


@asynccontextmanager
async def hooked(root: Path, *hooks: object, **settings: Any) -> AsyncIterator[tuple[Kit, HookedBroker, Complaints]]:
    complaints = Complaints()
    calls = HookCalls([(f"hook{number}", hook) for number, hook in enumerate(hooks)], complaints)
    async with broker(root, **settings) as kit:
        parts = {field.name: getattr(kit.broker, field.name) for field in fields(Broker)}
        yield kit, HookedBroker(**parts, hooks=calls), complaints


def message(body: bytes, topic: str = "T", **given: str) -> NewMessage:
    return NewMessage(topic, HOST, body, given, queue_id=1)


def batch(*each: bytes) -> NewBatch:
    items = [(0, body, properties.encode({"UNIQ_KEY": body.decode()})) for body in each]
    return NewBatch("T", HOST, encode_client_batch(items), queue_id=1)


async def test_a_send_is_told_before_and_after(tmp_path: Path) -> None:
    witness = Witness()
    async with hooked(tmp_path, witness) as (_, port, complaints):
        given = await port.send(message(b"one", UNIQ_KEY="ID", KEYS="k"))
        assert witness.points() == ["before_send", "after_send"]
        context = witness.told[1][1]
        assert (context.topic, context.body, context.message_id, context.born_host) == ("T", b"one", "ID", str(HOST))
        assert dict(context.properties) == {"UNIQ_KEY": "ID", "KEYS": "k"}
        place = (context.queue_id, context.queue_offset, context.log_offset, context.status)
        assert place == (1, 0, given.place.physical_offset, "PUT_OK")
        with pytest.raises(TypeError):
            context.properties["KEYS"] = "another"
        assert complaints == []


@pytest.mark.parametrize("error", [ValueError("no key"), SystemExit(3), ForbiddenTopic("no key"), GeneratorExit()])
async def test_a_hook_that_raises_before_refuses_each_way_of_sending(tmp_path: Path, error: BaseException) -> None:
    first, second, third = Witness(), Witness(before_send=raising(error)), Witness()
    told: dict[int, Any] = {}
    async with hooked(tmp_path, first, second, third) as (kit, port, complaints):
        await port.send(message(b"fine 0"))
        end = kit.store.commit_log.max_offset
        for refused in (
            port.send(message(b"bad")),
            port.append([message(b"fine"), message(b"bad")], []),
            port.append([message(b"fine")], [batch(b"fine", b"bad")]),
        ):
            with pytest.raises(HookRefused, match=str(error) or type(error).__name__):
                await refused
        assert kit.store.commit_log.max_offset == end, "nothing was stored"
        assert len(complaints) == 1, "they are logged once in a while"
        port.submit([message(b"fine 1"), message(b"bad"), message(b"fine 2")], told.__setitem__)
        assert isinstance(told[1], HookRefused)
        assert [told[number].status for number in (0, 2)] == [PutStatus.PUT_OK] * 2
        for witness in (first, third):
            points = witness.points()
            assert points.count("before_send") == points.count("after_send")
        refusals = [context for point, context in first.told if point == "after_send" and context.failure]
        assert len(refusals) == 7, "three whole requests of 1, 2, and 3 messages, and one message"
        assert second.points().count("before_send") - second.points().count("after_send") == 4
        await kit.dispatched()
        assert bodies(kit.pull("T", 1)) == [b"fine 0", b"fine 1", b"fine 2"]
    async with broker(tmp_path) as kit:
        assert bodies(kit.pull("T", 1)) == [b"fine 0", b"fine 1", b"fine 2"]


async def test_a_hook_that_raises_after_changes_nothing(tmp_path: Path) -> None:
    witness, other = Witness(after_send=raising(SystemExit(1)), after_delivery=raising(KeyError("x"))), Witness()
    told: dict[int, Receipt | TandemError] = {}
    async with hooked(tmp_path, witness, other) as (kit, port, complaints):
        await port.send(message(b"1"))
        await port.acknowledged(await port.append([message(b"2")], [batch(b"3", b"4")]))
        port.submit([message(b"5")], told.__setitem__)
        assert isinstance(told[0], Receipt)
        await kit.dispatched()
        pulled = await port.pull(Wanted("T", 1, 0, 32, 1 << 20, group="g"))
        assert bodies(pulled) == [b"1", b"2", b"3", b"4", b"5"]
        assert [(hook, point) for hook, point, _ in complaints] == [
            ("hook0", "after_send"),
            ("hook0", "after_delivery"),
        ]
        assert other.points().count("after_send") == 5
        counts = {(hook, point): one for hook, point, one in port.hooks.counts()}
        assert counts["hook0", "after_send"].failures == 5
        assert counts["hook1", "after_send"].failures == 0
        assert sum(counts["hook1", "after_send"].times.counts) == 5
        assert counts["hook1", "before_send"].times.sum > 0
    async with broker(tmp_path) as kit:
        assert bodies(kit.pull("T", 1)) == [b"1", b"2", b"3", b"4", b"5"]


async def test_each_message_of_a_batch_is_told_with_its_place(tmp_path: Path) -> None:
    witness = Witness()
    async with hooked(tmp_path, witness) as (_, port, _):
        sent = await port.append([message(b"a")], [batch(b"b", b"c")])
        await port.acknowledged(sent)
        assert witness.points() == ["before_send"] * 3 + ["after_send"] * 3
        after = [context for point, context in witness.told if point == "after_send"]
        assert [(one.body, one.queue_offset, one.status) for one in after] == [
            (b"a", 0, "PUT_OK"),
            (b"b", 1, "PUT_OK"),
            (b"c", 2, "PUT_OK"),
        ]
        place = sent.batches[0].place
        assert place is not None
        assert [one.log_offset for one in after[1:]] == list(place.physical_offsets)
        assert [one.message_id for one in after[1:]] == ["b", "c"]


async def test_what_became_of_it_is_told_although_nobody_waits_for_the_answer(tmp_path: Path) -> None:
    """A client that goes away cancels its call; the message is stored all the same."""
    witness = Witness()
    async with hooked(tmp_path, witness, flush_disk_type="SYNC_FLUSH") as (kit, port, _):
        await port.send(message(b"makes the topic"))
        sending = asyncio.ensure_future(port.send(message(b"one")))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        assert sending.cancelled()
        sent = await port.append([message(b"two")], [batch(b"three")])  # and nobody asks for `acknowledged`
        await kit.store.wait_flushed(sent.end_offset)
        await asyncio.sleep(0)
        told = [(point, context.body, context.status, context.failure) for point, context in witness.told]
        assert told[2:] == [
            ("before_send", b"one", "PUT_OK", None),
            ("before_send", b"two", "PUT_OK", None),
            ("before_send", b"three", "PUT_OK", None),
            ("after_send", b"one", "PUT_OK", None),
            ("after_send", b"two", "PUT_OK", None),
            ("after_send", b"three", "PUT_OK", None),
        ]


async def test_a_send_that_the_broker_refuses_is_told_as_such(tmp_path: Path) -> None:
    witness, told = Witness(), {}  # type: ignore[var-annotated]
    async with hooked(tmp_path, witness) as (_, port, _):
        with pytest.raises(TandemError) as refused:
            await port.send(message(b"x", topic="no/topic"))
        port.submit([message(b"x", topic="no/topic")], told.__setitem__)
        failures = [context.failure for point, context in witness.told if point == "after_send"]
        assert failures == [refused.value, told[0]]


async def test_a_pull_is_told_with_what_it_finds_and_can_be_refused(tmp_path: Path) -> None:
    witness = Witness()
    wanted = Wanted("T", 1, 0, 32, 1 << 20, group="g")
    async with hooked(tmp_path, witness) as (kit, port, _):
        given = await port.send(message(b"one", UNIQ_KEY="ID"))
        await kit.dispatched()
        assert port.pull_at_once(wanted) is None, "nothing is given that no hook hears of"
        await port.pull(wanted)
        context = witness.told[-1][1]
        assert (context.group, context.topic, context.queue_id, context.pulls) == ("g", "T", 1, True)
        assert context.messages == [("T", 1, 0, given.place.physical_offset, "ID", 3, 0)]
        witness.does["before_delivery"] = raising(PermissionError("not for g"))
        with pytest.raises(HookRefused, match="not for g"):
            await port.pull(wanted)


def test_a_hook_is_told_by_its_methods() -> None:
    class Sends:
        def before_send(self, context: SendContext) -> None: ...
        def after_send(self, context: SendContext) -> None: ...

    assert isinstance(Sends(), SendHook)
    assert not isinstance(Sends(), ConsumeHook)
    assert isinstance(Witness(), ConsumeHook)
    calls = HookCalls([("sends", Sends())], Complaints())
    assert [point for _, point, _ in calls.counts()] == ["before_send", "after_send"]


def test_a_broker_without_hooks_has_nothing_of_them() -> None:
    assert "hooks" not in {field.name for field in fields(Broker)}
    assert not any("hook" in name for name in sys.modules[Broker.__module__].__dict__)
