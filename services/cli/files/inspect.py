"""`tandem data inspect`: what lies in a store directory, without opening it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.messaging.messages import as_json as message_as_json
from tandemmq.cli.talk.failures import FAILED
from tandemmq.cli.talk.moments import show_bytes, show_moment
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output, Row

if TYPE_CHECKING:
    from tandemmq.store.format.record import Record
    from tandemmq.store.format.walker import Walker
    from tandemmq.store.log.inspect import StoreInspection

_WORTH_COMPILING = 48 << 20
"""Bytes of log from which on the compiled walker saves more time than loading it takes."""


def inspect(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A store directory: the one with commitlog/ in it.")],
    as_json: Json = False,
) -> None:
    """Read a store directory offline: files, messages, damage.

    Every record is read and its checksum compared; consume queues are compared with the log. Nothing is changed or
    locked, so it can be used on a store that runs (the picture is then of one moment) and on stores that RocketMQ
    wrote. Exit code 1 if there is damage.

    With --json: one document, {"directory", "files", "min_offset", "max_offset", "records", "topics", "index",
    "checkpoint", "damage", "problems", ...}.
    """
    from tandemmq.store.log.inspect import inspect_store

    output = Output(as_json=as_json)
    used = _log_size(directory)
    with output.progress("reading the log", wanted=used >= _WORTH_COMPILING) as update:
        found = inspect_store(directory, _walker(used), update)
    if as_json:
        output.document(_document(found))
    else:
        _say(output, found)
    if found.damage or (found.problems and not found.in_use):
        raise typer.Exit(FAILED)


def _log_size(directory: Path) -> int:
    """Bytes of log, allocated ones included; 0 where there is no log."""
    logs = directory / "commitlog"
    return sum(path.stat().st_blocks * 512 for path in logs.iterdir()) if logs.is_dir() else 0


def _walker(used: int) -> "Walker":
    """The compiled walker where there is much to read and it can be had, else the one in plain Python."""
    from tandemmq.store.format.walker import compiled_walker, python_walker

    if used < _WORTH_COMPILING:
        return python_walker()
    try:
        return compiled_walker()
    except ImportError:
        return python_walker()


def _document(found: "StoreInspection") -> dict[str, Any]:
    checkpoint = found.checkpoint
    return {
        "directory": str(found.root),
        "in_use": found.in_use,
        "clean_exit": found.clean_exit,
        "file_size": found.file_size,
        "files": [{"name": name, "bytes_on_disk": size} for name, size in found.files],
        "min_offset": found.min_offset,
        "max_offset": found.max_offset,
        "records": found.records,
        "first_record": message_as_json(found.first_record, with_body=False) if found.first_record else None,
        "last_record": message_as_json(found.last_record, with_body=False) if found.last_record else None,
        "topics": _topics(found),
        "index": [
            {"name": one.name, "entries": one.entries, "begin": one.begin_timestamp, "end": one.end_timestamp}
            for one in found.index
        ],
        "checkpoint": {"log": checkpoint.physic, "queues": checkpoint.logics, "index": checkpoint.index}
        if checkpoint
        else None,
        "damage": [
            {"begin_offset": one.begin, "end_offset": one.end, "kind": one.kind, "reason": one.reason}
            for one in found.damage
        ],
        "problems": found.problems,
    }


def _topics(found: "StoreInspection") -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, queue_id), one in sorted(found.queues.items()):
        topics.setdefault(topic, []).append(
            {
                "queue_id": queue_id,
                "messages": one.messages,
                "bytes": one.log_bytes,
                "first_offset": one.first_offset,
                "next_offset": one.next_offset,
                "missing_units": one.missing_units,
                "wrong_units": one.wrong_units,
            }
        )
    return [{"topic": topic, "queues": queues} for topic, queues in topics.items()]


def _say(output: Output, found: "StoreInspection") -> None:
    on_disk = sum(size for _, size in found.files)
    state = (
        "in use by a running store" if found.in_use else "closed cleanly" if found.clean_exit else "not closed cleanly"
    )
    output.pairs(
        [
            ("directory", f"{found.root}   ({state})"),
            ("log", f"{found.min_offset:,} to {found.max_offset:,}: {found.records:,} records"),
            ("files", f"{len(found.files)} of {show_bytes(found.file_size)}, {show_bytes(on_disk)} on disk"),
            ("first record", _record(found.first_record)),
            ("last record", _record(found.last_record)),
            ("checkpoint", _checkpoint(found)),
        ]
    )
    rows: list[Row] = [
        (one.topic, one.queue_id, one.first_offset, one.next_offset, one.messages, one.log_bytes)
        for _, one in sorted(found.queues.items())
    ]
    output.say()
    output.table(("topic", "queue", "first", "next", "messages", "bytes"), rows)
    output.say()
    for one in found.index:
        span = f"{show_moment(one.begin_timestamp)} to {show_moment(one.end_timestamp)}"
        output.say(f"index {one.name}: {one.entries:,} entries, {span}")
    for damage in found.damage:
        output.say(f"damage: {damage}")
    for problem in found.problems:
        output.say(f"{'at this moment' if found.in_use else 'problem'}: {problem}")
    if not found.damage and not found.problems:
        output.say("No damage: every record has the checksum it was written with, and every queue entry is right.")


def _record(record: "Record | None") -> str:
    if record is None:
        return "none"
    return f"{show_moment(record.store_timestamp)}  {record.topic} queue {record.queue_id} offset {record.queue_offset}"


def _checkpoint(found: "StoreInspection") -> str:
    if found.checkpoint is None:
        return "none"
    return f"log {show_moment(found.checkpoint.physic)}, queues {show_moment(found.checkpoint.logics)}"
