"""`Broker.submit`: messages of many senders, each with its own outcome, none of them with a future."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.errors import IllegalMessage, SendFailed
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage, Ready, Sender
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.log.errors import RecordTooLarge
from tests.manual_timers import turns
from tests.unit.broker.broker_kit import HOST, Kit, bodies, broker


class Outcomes(dict[int, "Receipt | TandemError"]):
    """What each was told; nobody is told twice."""

    def told(self, number: int, outcome: Receipt | TandemError) -> None:
        assert number not in self
        self[number] = outcome

    def statuses(self) -> dict[int, PutStatus]:
        return {number: one.status for number, one in self.items() if isinstance(one, Receipt)}


def message(topic: str, body: bytes = b"x", **properties: str) -> NewMessage:
    return NewMessage(topic, HOST, body, properties, queue_id=0)


async def with_topic(kit: Kit) -> None:
    await kit.broker.send(message("T", b"first"))


async def test_a_bad_message_fails_no_other(tmp_path: Path) -> None:
    outcomes = Outcomes()
    async with broker(tmp_path, rules={"max_message_size": 1 << 20}) as kit:
        await with_topic(kit)
        given = [message("T", b"1"), message("no/topic"), message("T", bytes(70_000)), message("T", b"2")]
        kit.broker.submit(given, outcomes.told)
        assert outcomes.statuses() == {0: PutStatus.PUT_OK, 3: PutStatus.PUT_OK}
        assert isinstance(outcomes[1], IllegalMessage)
        assert isinstance(outcomes[2], RecordTooLarge)
        await kit.dispatched()
        assert bodies(kit.pull("T")) == [b"first", b"1", b"2"]
    async with broker(tmp_path) as kit:
        assert bodies(kit.pull("T")) == [b"first", b"1", b"2"]


async def test_receipts_come_when_the_disk_has_them_and_no_task_is_made(tmp_path: Path) -> None:
    outcomes = Outcomes()
    async with broker(tmp_path, flush_disk_type="SYNC_FLUSH") as kit:
        await with_topic(kit)
        tasks = len(asyncio.all_tasks())
        kit.broker.submit([message("T", b"%d" % number) for number in range(50)], outcomes.told)
        kit.broker.submit([message("T", b"quick", WAIT="false")], lambda number, one: outcomes.told(100 + number, one))
        assert len(asyncio.all_tasks()) == tasks
        assert outcomes.statuses() == {100: PutStatus.PUT_OK}, "the others wait"
        assert await kit.store.wait_flushed(kit.store.commit_log.max_offset)
        assert outcomes.statuses() == dict.fromkeys([*range(50), 100], PutStatus.PUT_OK)
        places = [one.place.queue_offset for number, one in sorted(outcomes.items()) if isinstance(one, Receipt)]
        assert places == list(range(1, 52))


async def test_messages_of_new_topics_follow_when_these_are_made(tmp_path: Path) -> None:
    outcomes = Outcomes()
    async with broker(tmp_path) as kit:
        await with_topic(kit)
        kit.broker.submit([message("New", b"1"), message("T", b"2"), message("New", b"3")], outcomes.told)
        assert outcomes.statuses() == {1: PutStatus.PUT_OK}
        async with asyncio.timeout(60):
            while len(outcomes) < 3:
                await turns()
        await kit.dispatched()
        assert bodies(kit.pull("New")) == [b"1", b"3"]


async def test_a_store_that_takes_nothing_refuses_all(tmp_path: Path) -> None:
    outcomes = Outcomes()
    async with broker(tmp_path) as kit:
        await with_topic(kit)
        kit.store._on_flush_failed(OSError("the disk is gone"))
        kit.broker.submit([message("T"), message("T"), message("New")], outcomes.told)
        async with asyncio.timeout(60):
            while len(outcomes) < 3:
                await turns()
        assert outcomes.statuses() == {}
        assert all("No messages are taken" in str(one) or "takes no messages" in str(one) for one in outcomes.values())


async def test_whatever_goes_wrong_each_is_answered_and_nothing_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No send of that turn is left without an answer: its client would wait until its time is over."""

    def fault(*_: object, **__: object) -> None:
        raise KeyError("unforeseen")

    async with broker(tmp_path) as kit:
        await with_topic(kit)
        for owner, name in ((kit.sender, "check"), (kit.sender, "append"), (kit.broker.acknowledgement, "when_safe"),
                            (kit.sender, "create")):  # fmt: skip
            outcomes, topic = Outcomes(), "New" if name == "create" else "T"
            with monkeypatch.context() as patch:
                patch.setattr(type(owner), name, fault)
                kit.broker.submit([message(topic, b"1"), message(topic, b"2")], outcomes.told)
                async with asyncio.timeout(60):
                    while len(outcomes) < 2:
                        await turns()
            assert {type(one) for one in outcomes.values()} == {SendFailed}, name
            assert "KeyError" in str(outcomes[0])
        outcomes = Outcomes()
        with monkeypatch.context() as patch:
            patch.setattr(type(kit.traffic), "sent", fault)
            kit.broker.submit([message("T", b"counted by nobody")], outcomes.told)
        assert outcomes.statuses() == {0: PutStatus.PUT_OK}, "it is stored, whoever counts"
        outcomes = Outcomes()
        kit.broker.submit([message("T", b"after")], outcomes.told)
        assert outcomes.statuses() == {0: PutStatus.PUT_OK}


async def test_one_that_cannot_be_checked_fails_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = Outcomes()
    async with broker(tmp_path) as kit:
        await with_topic(kit)
        check_size = type(kit.sender).check_size

        def fault_at_bad(self: Sender, ready: Ready) -> None:
            if ready.message.body == b"bad":
                raise ZeroDivisionError
            check_size(self, ready)

        monkeypatch.setattr(type(kit.sender), "check_size", fault_at_bad)
        kit.broker.submit([message("T", b"1"), message("T", b"bad"), message("T", b"2")], outcomes.told)
        assert outcomes.statuses() == {0: PutStatus.PUT_OK, 2: PutStatus.PUT_OK}
        assert isinstance(outcomes[1], SendFailed)
        await kit.dispatched()
        assert bodies(kit.pull("T")) == [b"first", b"1", b"2"]
