"""A body that has rotted since the start: whoever is shown the message finds the damage, and the store knows it."""

from pathlib import Path

import pytest

from tandemmq.store.broker.errors import MessageNotFound
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Message, decode_record, encode_record
from tests.unit.broker.broker_kit import HOST, Kit, bodies, broker


def rot(kit: Kit, at: int, body: bytes) -> None:
    """Changes the first byte of a body in the log."""
    file = kit.store._parts.files.find(at)
    assert file is not None
    file.map[file.map.find(body, at - file.start)] ^= 1


def known(kit: Kit) -> list[tuple[int, str]]:
    return [(one.begin, one.kind) for one in kit.store.damage]


async def test_view_notes_what_does_not_fit(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(20):
            kit.send("orders", b"body %d" % number)
        await kit.dispatched()
        rot(kit, kit.sent[7], b"body 7")
        assert len(bodies_as_they_lie(kit)) == 20, "a pull is not checked"
        for _ in range(2):
            with pytest.raises(MessageNotFound, match="is damaged"):
                kit.finder.view(encode_offset_id(HOST, kit.sent[7]))
        assert known(kit) == [(kit.sent[7], "rot")]
        assert kit.store.damage[0].end == kit.sent[8]
        assert bodies(kit.pull("orders")) == [b"body %d" % number for number in range(20) if number != 7]
    async with broker(tmp_path) as kit:
        assert [one.kind for one in kit.store.damage] == ["rot"], "the next start knows it"
        assert len(bodies(kit.pull("orders"))) == 19


def bodies_as_they_lie(kit: Kit) -> list[bytes]:
    data, found = kit.pull("orders").records, []
    while data:
        record = decode_record(data, verify=False)
        found.append(record.body)
        data = data[record.size :]
    return found


async def test_a_query_notes_it_and_gives_the_others(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(5):
            kit.send("orders", b"body %d" % number, KEYS="k")
        await kit.dispatched()
        rot(kit, kit.sent[4], b"body 4")
        for _ in range(2):
            found = kit.finder.by_key("orders", "k", 0, 0, 64, unique=False)
            assert [decode_record(data).body for data in found] == [b"body 3", b"body 2", b"body 1", b"body 0"]
        assert known(kit) == [(kit.sent[4], "rot")]
        assert not kit.store.rebuilding, "the index is not to blame"


async def test_a_body_that_looks_like_a_damaged_record_is_no_damage(tmp_path: Path) -> None:
    """Anybody may ask for any offset, and send any body: sound messages must not be lost by it."""
    async with broker(tmp_path) as kit:
        first = kit.send("orders", b"first")
        probe = kit.send("orders", b"P" * 200)
        file = kit.store._parts.files.find(probe)
        assert file is not None
        head = file.map.find(b"P", probe) - probe
        at = kit.store.commit_log.max_offset + head
        forged = bytearray(
            encode_record(
                Message("orders", 0, b"forged", b"KEYS\x01k\x02", born_host=HOST, store_host=HOST),
                queue_offset=2,
                physical_offset=at,
                store_timestamp=kit.clock.now,
            )
        )
        forged[forged.index(b"forged")] ^= 1
        kit.send("orders", bytes(forged))
        await kit.dispatched()
        assert kit.store.read_record(at) == bytes(forged)
        with pytest.raises(MessageNotFound):
            kit.finder.view(encode_offset_id(HOST, at))
        assert known(kit) == []
        assert len(bodies(kit.pull("orders"))) == 3
        assert decode_record(kit.finder.view(encode_offset_id(HOST, first))).body == b"first"


async def test_the_last_record_of_the_log_may_be_the_one(tmp_path: Path) -> None:
    """Noted damage at the very end of the log is there after a clean stop, and numbers go on behind it."""
    async with broker(tmp_path) as kit:
        for number in range(3):
            kit.send("orders", b"body %d" % number)
        await kit.dispatched()
        rot(kit, kit.sent[2], b"body 2")
        with pytest.raises(MessageNotFound):
            kit.finder.view(encode_offset_id(HOST, kit.sent[2]))
    async with broker(tmp_path) as kit:
        kit.send("orders", b"body 3")
        await kit.dispatched()
        assert bodies(kit.pull("orders")) == [b"body 0", b"body 1", b"body 3"]
        assert kit.pull("orders").next_offset == 4
