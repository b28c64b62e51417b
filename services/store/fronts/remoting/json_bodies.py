"""Bodies that are JSON: read with care, written as fastjson writes them."""

import json
from typing import Any

from tandemmq.common.documents import java_json
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

MOST_BODY = 4 << 20
"""Bytes of a body that is JSON."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def read(body: bytes) -> dict[str, Any]:
    """The object that a body says. Raises ProtocolRefusal."""
    if len(body) > MOST_BODY:
        raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The body has {len(body):,} bytes: that is too much.")
    try:
        return java_json.loads(body, finite=True)
    except ValueError as error:
        raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The body is no JSON object: {error}") from None


def write(document: dict[str, Any]) -> bytes:
    """The object as a body."""
    return _encode(document).encode("utf-8", "replace")


def text(document: dict[str, Any], name: str) -> str:
    """A text that must be there. Raises ProtocolRefusal."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise _wrong(name, "a text")
    return value


def text_or(document: dict[str, Any], name: str, default: str) -> str:
    """A text, or what stands for a missing one. Raises ProtocolRefusal."""
    return default if document.get(name) in (None, "") else text(document, name)


def number_or(document: dict[str, Any], name: str, default: int) -> int:
    """A number, or what stands for a missing one. Raises ProtocolRefusal."""
    value = document.get(name)
    if value is None:
        return default
    if type(value) is not int:
        raise _wrong(name, "a number")
    return value


def objects(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects; none where it is missing. Raises ProtocolRefusal."""
    value = document.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _wrong(name, "a list of objects")
    return value


def _wrong(name: str, what: str) -> RemotingRefusal:
    return RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The body's {name} is missing, or not {what}.")
