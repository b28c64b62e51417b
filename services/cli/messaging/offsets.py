"""`tandem topic offsets`: what topics and queues there are, and where they begin and end."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.talk.connection import connect
from tandemmq.cli.talk.moments import FORMS, parse_moment, show_bytes
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.client import StoreClient
    from tandemmq.store.v1.store_pb2 import LogState, TopicQueues


def offsets(
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="One topic; without it, all of them.")] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="TIME", help=f"Also show the first offset stored at or after this time: {FORMS}."
        ),
    ] = None,
    address: Address = DEFAULT_ADDRESS,
    as_json: Json = False,
) -> None:
    """Show topics, queues, offsets, and the state of the log.

    `min` is the first offset a queue still has, `max` the next one it will give; `max - min` messages can be pulled.

    With --json: one document, {"topics": [{"topic", "queues": [{"queue_id", "min_offset", "max_offset", ...}]}],
    "log": {...}}.
    """
    moment = parse_moment(time) if time is not None else None
    output = Output(as_json=as_json)
    with connect(address) as client:
        listed = client.queues(topic or "")
        topics: list[dict[str, Any]] = [
            {
                "topic": one.topic,
                "read_queues": one.read_queues,
                "write_queues": one.write_queues,
                "perm": one.perm,
                "queues": _queues(client, one, moment),
            }
            for one in listed.topics
        ]
    log = _log(listed.log)
    if as_json:
        output.document({"topics": topics, "log": log})
        return
    columns = ["topic", "queue", "min", "max", "messages"] + (["at time"] if moment is not None else [])
    rows = [_row(one["topic"], queue) for one in topics for queue in one["queues"]]
    output.table(columns, rows)
    empty = [one["topic"] for one in topics if not one["queues"]]
    if empty:
        output.say(f"no messages yet: {', '.join(empty)}")
    if not topics:
        output.say("The store has no topics yet; `tandem send` makes one.")
    _say_log(output, log)


def _queues(client: "StoreClient", topic: "TopicQueues", moment: int | None) -> list[dict[str, Any]]:
    """The queues that were written to, with the offset at `moment` if there is one."""
    at_time: dict[int, int | None] = {}
    if moment is not None and topic.queues:
        at_time = {one.queue_id: one.at_time for one in client.offsets(topic.topic, timestamp_ms=moment)}
    told = []
    for queue in topic.queues:
        one: dict[str, Any] = {
            "queue_id": queue.queue_id,
            "min_offset": queue.min_offset,
            "max_offset": queue.max_offset,
            "messages": queue.max_offset - queue.min_offset,
            "rebuilding": queue.rebuilding,
        }
        told.append({**one, "offset_at_time": at_time.get(queue.queue_id)} if moment is not None else one)
    return told


def _row(topic: str, queue: dict[str, Any]) -> list[str | int]:
    row: list[str | int] = [topic, queue["queue_id"], queue["min_offset"], queue["max_offset"], queue["messages"]]
    return [*row, queue["offset_at_time"]] if "offset_at_time" in queue else row


def _log(state: "LogState") -> dict[str, Any]:
    return {
        "min_offset": state.min_offset,
        "max_offset": state.max_offset,
        "flushed_offset": state.flushed_offset,
        "writable": state.writable,
        "not_writable_reason": state.not_writable_reason,
        "damaged": [
            {"begin_offset": one.begin_offset, "end_offset": one.end_offset, "reason": one.reason}
            for one in state.damaged
        ],
    }


def _say_log(output: Output, log: dict[str, Any]) -> None:
    size, behind = log["max_offset"] - log["min_offset"], log["max_offset"] - log["flushed_offset"]
    output.say(
        f"log: {log['min_offset']:,} to {log['max_offset']:,} ({show_bytes(size)}), {behind:,} bytes not yet on disk"
    )
    if not log["writable"]:
        output.say(f"takes no messages: {log['not_writable_reason']}")
    for one in log["damaged"]:
        output.say(f"damaged: {one['begin_offset']:,} to {one['end_offset']:,}: {one['reason']}")
