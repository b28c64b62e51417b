"""Metadata: the caller's and the handler's own header fields (PROTOCOL-HTTP2, "Custom-Metadata").

Keys are lower case. A key that ends in `-bin` has bytes for a value, base64 on the wire, with or without padding, and
several values of such a key may come joined by commas. All others have text.
"""

import binascii
import re
from collections.abc import Iterable
from typing import NamedTuple

from tandemmq.common.grpc_transport.http2.headers import literal
from tandemmq.common.grpc_transport.http2.request import Field
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status


class Metadatum(NamedTuple):
    """One entry."""

    key: str
    value: str | bytes


_RESERVED = frozenset(
    (b"content-type", b"te", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding", b"content-length")
)
"""Fields that are gRPC's own, not the application's."""
_RESERVED_IN_ANSWERS = _RESERVED | {b"grpc-status", b"grpc-message"}
_OURS = frozenset((*(name.decode() for name in _RESERVED), "grpc-status", "grpc-message"))
"""What an application cannot send; the rest of grpc-… it can: grpc-status-details-bin, grpc-retry-pushback-ms."""
_KEY = re.compile(r"[a-z0-9_.\-]+").fullmatch
_VALUE = re.compile(rb"[\x20-\x7e]*").fullmatch


def decode_metadata(fields: Iterable[Field], *, answer: bool = False) -> tuple[Metadatum, ...]:
    """The application's part of a header list (`answer`: of an answer's), in order. Raises CallFailure."""
    reserved = _RESERVED_IN_ANSWERS if answer else _RESERVED
    found: list[Metadatum] = []
    for name, value in fields:
        if name in reserved:
            continue
        key = name.decode("ascii")
        if name.endswith(b"-bin"):
            found += [Metadatum(key, _unbase64(part)) for part in value.split(b",")]
        else:
            found.append(Metadatum(key, value.strip().decode("utf-8", "replace")))
    return tuple(found)


def encode_metadata(metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
    """Header fields that carry it. Raises TypeError, ValueError for what cannot be sent."""
    return b"".join([_encode(key, value) for key, value in metadata])


def _encode(key: object, value: object) -> bytes:
    if not isinstance(key, str) or not isinstance(value, str | bytes):
        raise TypeError(f"metadata must be pairs of a str and a str or bytes, not ({key!r}, {value!r})")
    if not _KEY(key) or key in _OURS:
        raise ValueError(f"{key!r} is no metadata key: lower case letters, digits, '_', '-', '.', and not gRPC's own")
    raw = value.strip(" ").encode() if isinstance(value, str) else bytes(value)
    if key.endswith("-bin"):
        raw = binascii.b2a_base64(raw, newline=False).rstrip(b"=")
    elif not _VALUE(raw):
        raise ValueError(f"the value of metadata key {key!r} is not printable ASCII; use a key that ends in -bin")
    return literal(key.encode(), raw)


def _unbase64(text: bytes) -> bytes:
    try:
        text = text.strip()
        return binascii.a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=bool(text))
    except binascii.Error:
        raise CallFailure(Status.INTERNAL, "metadata of a -bin key is not base64") from None
