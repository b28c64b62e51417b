"""Bodies that a classic producer has compressed, as clients of version 5 get them: bounded, and not all on the loop."""

import random
import threading
import zlib

import pytest

from tandemmq.rocketmq5.v2 import message_pb2
from tandemmq.store.format import sysflag
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.format.record_encoder import encode_record
from tandemmq.store.fronts.rocketmq5 import inflating
from tandemmq.store.fronts.rocketmq5.inflating import AT_ONCE, readable_body

MOST = 4 << 20
SMALL, LARGE = b"body " * 1_000, b"body " * 200_000


def record(stored: bytes, flag: int = sysflag.COMPRESSED) -> Record:
    return decode_record(encode_record(Message(topic="T", queue_id=0, body=stored, sys_flag=flag), 0, 0, 1))


@pytest.mark.parametrize("size", [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, MOST - 1, MOST])
async def test_what_a_body_may_have_comes_whole(size: int) -> None:
    body = random.Random(size).randbytes(min(size, 70_000)).ljust(size, b"x")
    given = record(zlib.compress(body))
    assert await readable_body(given, MOST) == (body, message_pb2.IDENTITY)


@pytest.mark.parametrize("most", [1_000, AT_ONCE, MOST])
async def test_what_would_be_larger_is_given_as_it_is_stored(most: int) -> None:
    """Some kilobytes that would become 64 MiB take no more memory than a body may."""
    bomb = zlib.compress(bytes(64 << 20))
    assert len(bomb) < 70_000
    assert await readable_body(record(bomb), most) == (bomb, message_pb2.IDENTITY)
    inflated = inflating._Inflating(bomb, most)
    inflated.go_on(AT_ONCE)
    inflated.go_on(most)
    assert inflated._size <= most + 1


async def test_large_ones_are_inflated_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[tuple[bool, int]] = []
    go_on = inflating._Inflating.go_on

    def watched(self: inflating._Inflating, until: int) -> None:
        where.append((threading.current_thread() is threading.main_thread(), until))
        go_on(self, until)

    monkeypatch.setattr(inflating._Inflating, "go_on", watched)
    assert (await readable_body(record(zlib.compress(SMALL)), MOST))[0] == SMALL
    assert where == [(True, AT_ONCE)]
    assert (await readable_body(record(zlib.compress(LARGE)), MOST))[0] == LARGE
    assert where[1:] == [(True, AT_ONCE), (False, MOST)]


@pytest.mark.parametrize("stored", [b"", b"no zlib", zlib.compress(LARGE)[:-5], b"\x1f\x8b and the rest"])
async def test_what_is_no_zlib_is_given_as_it_is_stored(stored: bytes) -> None:
    encoding = message_pb2.GZIP if stored.startswith(b"\x1f\x8b") else message_pb2.IDENTITY
    assert await readable_body(record(stored), MOST) == (stored, encoding)
    assert await readable_body(record(stored, 0), MOST) == (stored, message_pb2.IDENTITY)
