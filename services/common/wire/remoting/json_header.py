"""A command's header as JSON, in the form and the order in which fastjson writes it.

``{"code":103,"extFields":{"brokerName":"b1"},"flag":0,"language":"JAVA","opaque":0,"remark":"…",
"serializeTypeCurrentRPC":"JSON","version":409}``. Absent: `extFields` and `remark` that are null. What we read may have
any order and more keys; only `code` must be there. Values of extFields that are no texts become texts.
"""

import json
from json.encoder import encode_basestring as _quoted
from typing import Any

from tandemmq.common.wire.remoting.command import Body, Command
from tandemmq.common.wire.remoting.errors import BadHeader

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HEADER = '{"code":%d,%s"flag":%d,"language":%s,"opaque":%d,%s"serializeTypeCurrentRPC":"JSON","version":%d}'
_FIELDS = '"extFields":{%s},'
_REMARK = '"remark":%s,'
_INT32 = range(-(2**31), 2**31)


def encode(command: Command) -> bytes:
    """The header's bytes. Half a surrogate pair, which UTF-8 cannot say, becomes a question mark, as in Java."""
    fields, remark = command.fields, command.remark
    said = "" if fields is None else _FIELDS % ",".join([f"{_quoted(name)}:{_quoted(fields[name])}" for name in fields])
    language, why = _quoted(command.language), "" if remark is None else _REMARK % _quoted(remark)
    header = _HEADER % (command.code, said, command.flag, language, command.opaque, why, command.version)
    return header.encode("utf-8", "replace")


def decode(header: bytes, body: Body) -> Command:
    """The command of a header and its body. Raises BadHeader."""
    try:
        said = json.loads(header)
        if b"\\u" in header:
            _to_json(said).encode()
    except (ValueError, RecursionError) as error:
        raise BadHeader(f"the header is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise BadHeader("the header is no JSON object")
    fields = said.get("extFields")
    if fields is not None:
        fields = _texts(fields)
    return Command(
        _int32(said, "code", None),
        _int32(said, "opaque", 0),
        _int32(said, "flag", 0),
        fields,
        body,
        _text(said, "remark"),
        _text(said, "language") or "OTHER",
        _int32(said, "version", 0),
    )


def _int32(said: dict[str, Any], name: str, default: int | None) -> int:
    value = said.get(name, default)
    if type(value) is not int or value not in _INT32:
        raise BadHeader(f"the header's {name} is no 32-bit integer")
    return value


def _text(said: dict[str, Any], name: str) -> str | None:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise BadHeader(f"the header's {name} is no text")
    return value


def _texts(fields: Any) -> dict[str, str]:
    """The fields with their values as texts; a null is as if it were not there. Raises BadHeader."""
    if not isinstance(fields, dict):
        raise BadHeader("the header's extFields are no object")
    for value in fields.values():
        if type(value) is not str:
            break
    else:
        return fields
    return {
        name: value if isinstance(value, str) else _to_json(value)
        for name, value in fields.items()
        if value is not None
    }
