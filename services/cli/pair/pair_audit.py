"""`tandem data audit --pair`: the logs of two nodes, compared with each other by their replicators."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.talk.connection import REPLICATOR, connect_to
from tandemmq.cli.talk.failures import FAILED
from tandemmq.cli.talk.output import Output, Row
from tandemmq.cli.talk.phases import phase_bars

if TYPE_CHECKING:
    from tandemmq.replication.v1.healing_pb2 import Difference

_SHOWN = 30
_WORDS = {
    ("VALID", "DAMAGED"): "damaged there",
    ("DAMAGED", "VALID"): "damaged here",
    ("DAMAGED", "DAMAGED"): "damaged on both",
    ("VALID", "VALID"): "valid on both, but different where no checksum looks",
}

Repair = Annotated[
    bool, typer.Option("--repair", help="With --pair: have damaged records fetched again from the other node.")
]
Peers = Annotated[
    list[str] | None,
    typer.Option(
        "--peer",
        metavar="HOST:PORT",
        help="With --pair: replicator of a node to compare with; without it those that the node knows. Repeatable.",
    ),
]
Rate = Annotated[
    int,
    typer.Option("--rate", metavar="MIB", help="With --pair: read at most this many MiB a second; 0: no limit.", min=0),
]


def compare(output: Output, address: str, peers: list[str], *, repair: bool, rate: int, progress: bool) -> None:
    """Compare, tell, and end with exit code 1 if there is a difference."""
    from tandemmq.replication.v1.healing_pb2 import AuditRequest
    from tandemmq.replication.v1.healing_pb2_grpc import HealingStub
    from tandemmq.spark.running.progress import Progress

    told: dict[str, dict[str, Any]] = {}
    request = AuditRequest(repair=repair, bytes_per_second=rate << 20, peers=peers)
    with (
        connect_to(REPLICATOR, address) as channel,
        phase_bars(output, {"pair": "comparing the logs"}, as_lines=progress) as tell,
    ):
        for part in HealingStub(channel).Audit(request):
            one = told.setdefault(part.peer, {"peer": part.peer, "differences": []})
            one |= {"begin_offset": part.begin, "end_offset": part.end}
            one["differences"] += [_difference(difference) for difference in part.differences]
            tell(Progress("pair", part.done - part.begin, part.end - part.begin))
    if output.as_json:
        output.document({"peers": list(told.values())})
    else:
        for one in told.values():
            _say(output, one, repair=repair)
    if any(one["differences"] for one in told.values()):
        raise typer.Exit(FAILED)


def _difference(one: "Difference") -> dict[str, Any]:
    from tandemmq.replication.v1.healing_pb2 import RecordState

    return {
        "begin_offset": one.begin,
        "end_offset": one.end,
        "here": RecordState.Name(one.here),
        "there": RecordState.Name(one.there),
        "topic": one.topic,
        "queue_id": one.queue_id,
        "queue_offset": one.queue_offset,
    }


def _say(output: Output, told: dict[str, Any], *, repair: bool) -> None:
    found = told["differences"]
    what = f"{len(found):,} differences" if found else "no difference"
    output.say(f"{told['peer']}: {what} in log offsets {told['begin_offset']:,} to {told['end_offset']:,}.")
    if not found:
        return
    rows: list[Row] = [
        (
            one["begin_offset"],
            one["end_offset"] - one["begin_offset"],
            one["topic"] or "?",
            one["queue_id"],
            one["queue_offset"],
            _WORDS[one["here"], one["there"]],
        )
        for one in found[:_SHOWN]
    ]
    output.table(("log offset", "bytes", "topic", "queue", "offset", "record"), rows)
    if len(found) > len(rows):
        output.say(f"and {len(found) - len(rows):,} more; --json has all")
    if repair:
        output.say(
            'What is damaged on one node is fetched again from the other: its store says "Healed the commit log".'
        )
    else:
        output.say("With --repair what is damaged on one node is fetched again from the other.")
