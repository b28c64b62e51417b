"""Digests of bodies: checked where a producer sends one, made for consumers.

Consumers get MD5: it is the one that all clients compute alike. CRC32 they write in three ways, each of which is taken.
MD5 takes 1.6 µs for a KiB: of a large body it is made in a thread, which leaves the interpreter lock alone meanwhile.
"""

import hashlib
import zlib

from tandemmq.common.processes.started_pool import COMPUTING
from tandemmq.rocketmq5.v2 import message_pb2, resources_pb2
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

AT_ONCE = 64 << 10
"""Bytes of a body whose digest is made on the loop."""
CRC_AT_ONCE = 1 << 20
"""The same of CRC32, which is faster."""


async def made(body: bytes) -> message_pb2.Digest:
    """The digest of a body that is delivered."""
    checksum = await COMPUTING.do(_md5, body) if len(body) > AT_ONCE else _md5(body)
    return message_pb2.Digest(type=message_pb2.MD5, checksum=checksum)


async def check(digest: message_pb2.Digest, body: bytes) -> None:
    """Whether a body is the one that was sent; nothing where there is no digest. Raises ProtocolRefusal."""
    most = CRC_AT_ONCE if digest.type == message_pb2.CRC32 else AT_ONCE
    if digest.checksum and len(body) > most:
        await COMPUTING.do(check_at_once, digest, body)
    else:
        check_at_once(digest, body)


def check_at_once(digest: message_pb2.Digest, body: bytes) -> None:
    """As `check`, of a body of any size."""
    given = digest.checksum.strip().upper()
    if not given or digest.type == message_pb2.DIGEST_TYPE_UNSPECIFIED:
        return
    if given not in _forms(digest.type, body):
        raise ProtocolRefusal(
            resources_pb2.MESSAGE_CORRUPTED,
            f"The body does not fit its digest {given[:64]}.",
            remedy="It was damaged on its way, or the digest is that of another body: send again.",
        )


def _forms(kind: message_pb2.DigestType.ValueType, body: bytes) -> tuple[str, ...]:
    if kind == message_pb2.CRC32:
        number = zlib.crc32(body)
        return f"{number:08X}", f"{number:X}", str(number)
    if kind == message_pb2.MD5:
        return (_md5(body),)
    if kind == message_pb2.SHA1:
        return (hashlib.sha1(body, usedforsecurity=False).hexdigest().upper(),)
    raise ProtocolRefusal(resources_pb2.BAD_REQUEST, f"Digest type {int(kind)} is none: known are CRC32, MD5 and SHA1.")


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest().upper()
