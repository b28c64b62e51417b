"""A stored message, as text for people and as JSON for programs."""

import base64
from typing import TYPE_CHECKING, Any

from tandemmq.cli.talk.moments import show_bytes, show_moment
from tandemmq.cli.talk.output import Output, printable

if TYPE_CHECKING:
    from tandemmq.store.format.record import Record

_BODY_LINES_MAX = 20
_BODY_CHARS_MAX = 2000
"""What a person sees of a body in a list; `tandem message view` and --json show all of it."""


def message_id(record: "Record") -> str:
    """The offset id of a record."""
    from tandemmq.store.format.message_id import encode_offset_id

    return encode_offset_id(record.store_host, record.physical_offset)


def as_json(record: "Record", *, with_body: bool) -> dict[str, Any]:
    """All fields; the body as text in `body` if it is UTF-8, else in `body_base64`."""
    told: dict[str, Any] = {
        "topic": record.topic,
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "message_id": message_id(record),
        "unique_key": record.unique_key,
        "tag": record.tags,
        "keys": record.keys,
        "properties": dict(record.properties),
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "born_timestamp": record.born_timestamp,
        "born_host": str(record.born_host),
        "store_timestamp": record.store_timestamp,
        "store_host": str(record.store_host),
        "reconsume_times": record.reconsume_times,
        "physical_offset": record.physical_offset,
        "record_size": record.size,
        "body_size": len(record.body),
        "body_crc": record.body_crc,
    }
    if with_body:
        text = _text(record.body)
        if text is not None:
            told["body"] = text
        else:
            told["body_base64"] = base64.b64encode(record.body).decode()
    return told


def say_message(output: Output, record: "Record", *, with_body: bool, whole: bool = False) -> None:
    """A line that says where and when and which, and the body under it."""
    head = [f"queue {record.queue_id} offset {record.queue_offset}", show_moment(record.store_timestamp)]
    head += [f"tag {record.tags}"] if record.tags else []
    head += [f"keys {' '.join(record.keys)}"] if record.keys else []
    head += [show_bytes(len(record.body)), message_id(record)]
    output.say(printable("  ".join(head)))
    if with_body:
        output.say(shown_body(record.body, whole=whole))
        output.say()


def say_details(output: Output, record: "Record", *, with_body: bool) -> None:
    """Every field of one message, a line each, then the whole body."""
    properties = [(f"property {name}", printable(value)) for name, value in record.properties.items()]
    output.pairs(
        [
            ("topic", record.topic),
            ("queue, offset", f"{record.queue_id}, {record.queue_offset}"),
            ("message id", message_id(record)),
            ("stored", f"{show_moment(record.store_timestamp)} at {record.store_host}"),
            ("born time", f"{show_moment(record.born_timestamp)} at {record.born_host}"),
            ("in the log", f"{record.size:,} bytes at {record.physical_offset:,}"),
            (
                "flags",
                f"flag {record.flag}, system flags {record.sys_flag:#x}, given back {record.reconsume_times} times",
            ),
            *properties,
            ("body", f"{len(record.body):,} bytes, CRC {record.body_crc:08X}"),
        ]
    )
    if with_body:
        output.say()
        output.say(shown_body(record.body, whole=True))


def row(record: "Record") -> list[str | int]:
    """A line of a table with `ROW_COLUMNS`."""
    return [
        show_moment(record.store_timestamp).partition(".")[0],
        record.queue_id,
        record.queue_offset,
        record.tags or "",
        " ".join(record.keys),
        len(record.body),
        message_id(record),
    ]


ROW_COLUMNS = ("stored", "queue", "offset", "tag", "keys", "bytes", "message id")


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def shown_body(body: bytes, *, whole: bool) -> str:
    """A body as a person sees it: text, or bytes in hex; cut unless `whole`."""
    text = _text(body)
    if text is None:
        shown = body if whole else body[:64]
        return f"(not text) {shown.hex(' ')}" + ("" if len(shown) == len(body) else f" ... {len(body):,} bytes in all")
    if whole:
        return printable(text)
    lines = text[:_BODY_CHARS_MAX].splitlines()
    shown_text = "\n".join(lines[:_BODY_LINES_MAX])
    is_cut = len(lines) > _BODY_LINES_MAX or len(text) > _BODY_CHARS_MAX
    return printable(shown_text) + ("\n... (`tandem message view` shows all of it)" if is_cut else "")
