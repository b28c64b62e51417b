"""Where a message stands in the groups that have not dealt with it, in words."""

from typing import TYPE_CHECKING

from tandemmq.cli.nouns.calls import enum_name
from tandemmq.cli.talk.moments import show_moment, show_seconds
from tandemmq.cli.talk.output import printable

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import FailingMessage, FoundMessage
    from tandemmq.cli.talk.output import Output
    from tandemmq.delivery.v1.operations_pb2 import MessageStanding


def say_standings(output: "Output", found: "FoundMessage") -> None:
    """Lines under a message that was found; none where every group has dealt with it."""
    if found.is_waiting:
        when = f"at {show_moment(found.due_ms)}" if found.due_ms else "after its delay"
        output.say(f"  waits: it is put into its topic {when}")
    for one in found.standings:
        output.say(printable(f"  group {one.group}: {_times(one)}{in_words(one)}"))


def in_words(one: "MessageStanding") -> str:
    """Who has it, or when it comes."""
    from tandemmq.delivery.v1.operations_pb2 import HELD, PUT_OFF

    state = enum_name(one, "state")
    if one.state not in (HELD, PUT_OFF):
        return state
    holder = f" by {one.client_id}" if one.client_id else ""
    return f"{state}{holder}, comes again in {show_seconds(one.due_in_ms / 1000)}"


def say_failing(output: "Output", failing: "list[FailingMessage]") -> None:
    """The table of the messages that a group fails on."""
    rows = [
        (one.standing.place.topic, one.broker, f"{one.standing.place.queue_id}:{one.standing.place.queue_offset}",
         one.standing.deliveries, in_words(one.standing))
        for one in failing
    ]  # fmt: skip
    output.table(("fails on", "broker", "at", "attempts", "now"), rows, drop=("broker",))


def _times(one: "MessageStanding") -> str:
    return f"came {one.deliveries} time{'s' if one.deliveries > 1 else ''}, " if one.deliveries else ""
