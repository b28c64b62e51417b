"""Digests of bodies: of large ones they are made and compared in a thread."""

import hashlib
import threading
import zlib
from collections.abc import Callable

import pytest

from tandemmq.rocketmq5.v2 import message_pb2
from tandemmq.store.fronts.rocketmq5 import body_digest
from tandemmq.store.fronts.rocketmq5.body_digest import AT_ONCE, CRC_AT_ONCE, check, made
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

KINDS: dict[int, tuple[int, Callable[[bytes], str]]] = {
    message_pb2.MD5: (AT_ONCE, lambda body: hashlib.md5(body).hexdigest()),
    message_pb2.SHA1: (AT_ONCE, lambda body: hashlib.sha1(body).hexdigest()),
    message_pb2.CRC32: (CRC_AT_ONCE, lambda body: f"{zlib.crc32(body):08X}"),
}


@pytest.fixture(name="on_loop")
def watched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each digest that is made: whether it was on the thread of the loop."""
    where: list[bool] = []
    for name in ("_md5", "_forms"):
        make = getattr(body_digest, name)

        def watching(*arguments: object, make: object = make) -> object:
            where.append(threading.current_thread() is threading.main_thread())
            return make(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(body_digest, name, watching)
    return where


@pytest.mark.parametrize("size", [0, 1, AT_ONCE, AT_ONCE + 1])
async def test_what_is_given_has_its_md5(size: int, on_loop: list[bool]) -> None:
    body = b"x" * size
    digest = await made(body)
    assert (digest.type, digest.checksum) == (message_pb2.MD5, hashlib.md5(body).hexdigest().upper())
    assert on_loop == [size <= AT_ONCE]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [0, 1])
async def test_what_is_sent_is_compared(kind: message_pb2.DigestType.ValueType, more: int, on_loop: list[bool]) -> None:
    most, make = KINDS[kind]
    body = b"x" * (most + more)
    await check(message_pb2.Digest(type=kind, checksum=make(body)), body)
    assert on_loop[0] is not bool(more)
    with pytest.raises(ProtocolRefusal, match="does not fit"):
        await check(message_pb2.Digest(type=kind, checksum="00"), body)


async def test_a_body_without_digest_goes_nowhere(on_loop: list[bool]) -> None:
    await check(message_pb2.Digest(), b"x" * (CRC_AT_ONCE + 1))
    assert on_loop == []
