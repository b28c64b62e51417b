"""Messages that are sent again within the window: stored once, and every sender hears where."""

from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.broker.duplicates import DuplicateWindow, FirstCopy
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewBatch, NewMessage
from tandemmq.store.format.batch import ClientMessage, encode_client_batch
from tandemmq.store.format.message import Message
from tandemmq.store.log.errors import RecordTooLarge
from tandemmq.store.log.segments.commit_log import Appended
from tests.unit.broker.broker_kit import HOST, Kit, SetClock, bodies, broker

WINDOW = 120_000


def message(key: str, body: bytes = b"x", topic: str = "T", **more: object) -> NewMessage:
    return NewMessage(topic, HOST, body, {"UNIQ_KEY": key} if key else {}, **more)  # type: ignore[arg-type]


async def stored(kit: Kit, topic: str = "T") -> list[bytes]:
    await kit.dispatched()
    return [body for queue in range(4) for body in bodies(kit.pull(topic, queue))]


async def test_a_copy_is_not_stored_and_its_receipt_names_the_first(tmp_path: Path) -> None:
    async with broker(tmp_path, window=WINDOW) as kit:
        first = await kit.broker.send(message("k"))
        await kit.broker.send(message("other"))
        copy = await kit.broker.send(message("k", b"whatever it holds now"))
        assert (copy.place, copy.status) == (first.place, PutStatus.PUT_OK)
        assert copy.ready.message.queue_id == first.ready.message.queue_id
        assert (first.ready.copy, copy.ready.copy) == (False, True)
        assert sorted(await stored(kit)) == [b"x", b"x"]
        assert kit.sender.duplicates is not None
        assert kit.sender.duplicates.recognized == 1


async def test_without_a_window_every_message_is_stored(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        assert (await kit.broker.send(message("k"))).place != (await kit.broker.send(message("k"))).place


async def test_messages_that_are_meant_to_come_again_are_stored(tmp_path: Path) -> None:
    """Without a key, of another topic, consumed again, and after the window."""
    async with broker(tmp_path, window=WINDOW) as kit:
        wanted: list[dict[str, Any]] = [
            {"key": ""},
            {"key": "k", "topic": "%RETRY%group"},
            {"key": "k", "reconsume_times": 1},
        ]
        for given in wanted:
            one, two = [(await kit.broker.send(message(**given))).place for _ in range(2)]
            assert one != two
        first = (await kit.broker.send(message("k"))).place
        assert (await kit.broker.send(message("k", topic="V"))).place != first
        kit.clock.now += WINDOW
        assert (await kit.broker.send(message("k"))).place == first
        kit.clock.now += 1
        later = (await kit.broker.send(message("k"))).place
        assert later != first
        assert (await kit.broker.send(message("k"))).place == later


async def test_copies_are_recognized_after_a_restart(tmp_path: Path) -> None:
    """Nothing is remembered then: the index says what was stored."""
    async with broker(tmp_path, window=WINDOW) as kit:
        first = await kit.broker.send(message("k"))
        now = kit.clock.now
    async with broker(tmp_path, window=WINDOW) as kit:
        kit.clock.now = now + WINDOW - 1_000
        copy = await kit.broker.send(message("k"))
        assert (copy.place, copy.ready.message.queue_id) == (first.place, first.ready.message.queue_id)
        assert (await kit.broker.send(message("new"))).place != first.place
        kit.clock.now = now + WINDOW + 1_000
        assert (await kit.broker.send(message("k"))).place != first.place


async def test_a_copy_waits_for_what_the_first_waits_for(tmp_path: Path) -> None:
    """An answer of OK while the first is not durable would say more than is true."""
    async with broker(tmp_path, window=WINDOW, flush_disk_type="SYNC_FLUSH") as kit:
        await topic_made(kit, "T")
        calls = [kit.broker.send(message("k")) for _ in range(2)]
        steps = [call.send(None) for call in calls]
        assert all(step is not None for step in steps), "both wait"
        for call in calls:
            call.close()


async def topic_made(kit: Kit, topic: str) -> None:
    await kit.broker.send(message("", topic=topic))


async def test_copies_within_one_request(tmp_path: Path) -> None:
    async with broker(tmp_path, window=WINDOW) as kit:
        await kit.broker.send(message("a", b"a"))
        sent = await kit.broker.append([message(key, key.encode()) for key in ("b", "a", "b", "c", "a")], [])
        places = [one.place for one in sent.messages]
        assert places[0] == places[2]
        assert places[1] == places[4]
        assert [one.ready.copy for one in sent.messages] == [False, True, True, False, True]
        assert sorted(await stored(kit)) == [b"a", b"b", b"c"]


async def test_an_encoded_batch_that_comes_again(tmp_path: Path) -> None:
    def batch(*keys: str) -> NewBatch:
        inner = [ClientMessage(0, key.encode(), f"UNIQ_KEY\x01{key}\x02".encode()) for key in keys]
        return NewBatch("T", HOST, encode_client_batch(inner))

    async with broker(tmp_path, window=WINDOW) as kit:
        first = (await kit.broker.append([], [batch("a", "b", "c")])).batches[0]
        copy = (await kit.broker.append([], [batch("a", "b", "c")])).batches[0]
        assert first.place is not None
        assert copy.place is not None
        assert list(copy.place.physical_offsets) == list(first.place.physical_offsets)
        assert (copy.place.first_queue_offset, copy.place.end_offset) == (0, first.place.end_offset)
        assert copy.batch.queue_id == first.batch.queue_id
    async with broker(tmp_path, window=WINDOW) as kit:
        again = (await kit.broker.append([], [batch("a", "b", "c")])).batches[0]
        assert again.copy
        assert again.place is not None
        assert list(again.place.physical_offsets) == list(first.place.physical_offsets)
        partly = (await kit.broker.append([], [batch("c", "d")])).batches[0]
        assert not partly.copy, "a batch is stored whole, or not at all"
        assert sorted(await stored(kit)) == [b"a", b"b", b"c", b"c", b"d"]


def test_what_is_remembered_is_bounded() -> None:
    clock = SetClock()
    window = DuplicateWindow(WINDOW, clock, lambda *_: None, most=100)
    for number in range(1_000):
        window.add("T", f"{number}", FirstCopy(0, Appended(number, 1, number, clock.now, number + 1)))
    assert len(window) == 100
    assert window.find("T", "899") is None
    assert window.find("T", "900") is not None
    window.begin_anew()
    assert (len(window), window.find("T", "999")) == (0, None)


def test_the_index_is_asked_only_while_the_window_reaches_back_to_what_was_there() -> None:
    asked: list[object] = []
    for newest, times in ((0, 0), (SetClock().now - 10, 2), (None, 3)):
        asked.clear()
        clock = SetClock()
        window = DuplicateWindow(WINDOW, clock, lambda *what: asked.append(what), newest=newest)
        for later in (0, WINDOW - 10, 1):
            clock.now += later
            assert window.find("T", "k") is None
        assert len(asked) == times


async def test_a_look_for_what_was_there_before_dispatches_nothing(tmp_path: Path) -> None:
    """Each send would have its own turn of dispatch, for as long as the window reaches back to the start."""
    async with broker(tmp_path, window=WINDOW) as kit:
        first = (await kit.broker.send(message("k"))).place
    async with broker(tmp_path, window=WINDOW) as kit:
        window = kit.sender.duplicates
        assert window is not None
        kit.store.append(Message("T", 0, b"new", b"UNIQ_KEY\x01new\x02", born_host=HOST, store_host=HOST))
        assert kit.store.dispatched_offset < kit.store.commit_log.max_offset
        assert window.find("T", "unknown") is None
        assert kit.store.dispatched_offset < kit.store.commit_log.max_offset
        known = window.find("T", "k")
        assert known is not None
        assert known.place == first
        assert kit.finder.newest("T", "new", 0) is not None, "who looks for all finds what was stored just now"


async def test_a_send_that_failed_may_be_tried_again(tmp_path: Path) -> None:
    async with broker(tmp_path, window=WINDOW, rules={"max_message_size": 1 << 20}) as kit:
        await topic_made(kit, "T")
        with pytest.raises(RecordTooLarge):
            await kit.broker.send(message("k", bytes(100_000)))
        assert not (await kit.broker.send(message("k", b"less"))).ready.copy
        assert b"less" in await stored(kit)
