"""Requests that nobody sends by mistake: bytes that are no message, and messages whose every value is an edge."""

import os
import random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

FIXED = settings(
    max_examples=int(os.environ.get("TANDEM_TEST_HOSTILE_EXAMPLES", "8")),
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""The same few examples each time. A failure is shown as it is: the services remember what was done to them."""

_TYPES = FieldDescriptor

_INT32 = [0, 1, -1, 2, 1000, 1 << 16, (1 << 31) - 1, -(1 << 31)]
_INT64 = [*_INT32, 1 << 40, (1 << 63) - 1, -(1 << 63)]
_UNSIGNED = [0, 1, (1 << 32) - 1]
_FLOATS = [0.0, -1.0, 1e308, float("nan"), float("inf"), float("-inf")]
_ENUM = [0, 1, 2, 3, 99, -1, (1 << 31) - 1, -(1 << 31)]
_TEXTS = [
    "", " ", "a", "a b", "x" * 127, "x" * 256, "x" * 70_000, "\x00", "line\nbreak", "tab\tend", "\x1b[31mred",
    "\x7f", "\u202eright to left", "zero\u200bwidth", "😀" * 40, "ünïcödé", "\U0010ffff", "../../etc/passwd",
    "/", ".", "..", "*", "?", "%", "%s%n", "%RETRY%", "%RETRY%x", "%DLQ%", "%DLQ%" + "y" * 250, "@", "a@b",
    "TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "{", '{"a": 1}', "[" * 2_000, "null", "-1",
    "1e999", "0" * 32, "F" * 32, "G" * 32, "A || B", "||", "a\x01b\x02c", "localhost", "127.0.0.1",
    "127.0.0.1:1", "[::1]:1", "host:99999", "local[2]", "$(id)", "'; --", "tandem.rebuild",
    "tandem.rebuild.../..", "tandem.rebuild.none", "tandem.staging", "admin", "order", "attributes",
]  # fmt: skip
_BYTES = [b"", b"\x00", b"\xff" * 9, b"{}", bytes(70_000), b"\x00\x00\x00\x00\xda\xa3\x20\xa7" + bytes(100)]

_DEEPEST = 4
_SCALARS: dict[int, list[Any]] = {
    _TYPES.CPPTYPE_INT32: _INT32,
    _TYPES.CPPTYPE_INT64: _INT64,
    _TYPES.CPPTYPE_UINT32: _UNSIGNED,
    _TYPES.CPPTYPE_UINT64: [*_UNSIGNED, (1 << 64) - 1],
    _TYPES.CPPTYPE_DOUBLE: _FLOATS,
    _TYPES.CPPTYPE_FLOAT: [0.0, -1.0, float("nan"), float("inf")],
    _TYPES.CPPTYPE_BOOL: [False, True],
    _TYPES.CPPTYPE_ENUM: _ENUM,
}


def garbage() -> list[bytes]:
    """What stands where a message should: most of it is none of any type. The first is the empty request."""
    dice = random.Random(6)
    return [
        b"",
        b"\x00",
        b"\xff" * 16,
        b"\x0a\xff\xff\xff\xff\x0f",  # a field that is longer than the message
        b"\x0a\x02\xff\xfe",  # a text that is not UTF-8, where field 1 is one
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a number where field 1 is something else
        b"\x0b" * 300,  # groups in groups
        b"\x0a\x00" * 5_000,
        *(dice.randbytes(size) for size in (7, 64, 900)),
    ]


def messages(kind: Descriptor, depth: int = 0) -> st.SearchStrategy[Message]:
    """Messages of a type, each field left out or filled with edges; of a oneof at most one, and often none."""
    fields = [
        field for field in kind.fields if field.containing_oneof is None or len(field.containing_oneof.fields) == 1
    ]
    choices = [oneof for oneof in kind.oneofs if len(oneof.fields) > 1]

    @st.composite
    def built(draw: st.DrawFn) -> Message:
        message = GetMessageClass(kind)()
        picked = list(fields)
        for oneof in choices:
            chosen = draw(st.sampled_from([None, *oneof.fields]))
            if chosen is not None:
                picked.append(chosen)
        for field in picked:
            if draw(st.booleans()):
                _fill(draw, message, field, depth)
        return message

    return built()


def _fill(draw: st.DrawFn, message: Message, field: FieldDescriptor, depth: int) -> None:
    """Gives one field a value, or many."""
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        for at in range(draw(st.sampled_from([0, 1, 30]))):
            name = (
                f"key{at}" if at > 2 and key.cpp_type == _TYPES.CPPTYPE_STRING else at if at > 2 else draw(_values(key))
            )
            if value.message_type is None:
                target[name] = draw(_values(value))
    elif field.message_type is not None:
        if depth >= _DEEPEST:
            return
        inner = messages(field.message_type, depth + 1)
        if field.is_repeated:
            target.extend(draw(st.lists(inner, max_size=3)))
        else:
            target.MergeFrom(draw(inner))
    elif field.is_repeated:
        target.extend(draw(st.lists(_values(field), max_size=3)) * draw(st.sampled_from([1, 1, 400])))
    else:
        setattr(message, field.name, draw(_values(field)))


def _values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type == _TYPES.CPPTYPE_STRING:
        return st.sampled_from(_BYTES) if field.type == _TYPES.TYPE_BYTES else st.sampled_from(_TEXTS)
    return st.sampled_from(_SCALARS[field.cpp_type])
