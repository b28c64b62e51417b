"""`tandem recall`: a message that waits for its time is not delivered."""

from typing import Annotated

import typer

from tandemmq.cli.talk.connection import connect
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json, Topic
from tandemmq.cli.talk.output import Output


def recall(
    topic: Topic,
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="The recall handle that its receipt has.")],
    address: Address = DEFAULT_ADDRESS,
    as_json: Json = False,
) -> None:
    """Take back a message that waits for its time.

    That is one that was sent with --delay or --at. What was delivered meanwhile is not taken back: the error says so.

    With --json: one document, {"topic", "unique_key"}.
    """
    from tandemmq.delivery.v1 import delivery_pb2

    output = Output(as_json=as_json)
    with connect(address) as client:
        request = delivery_pb2.RecallRequest(topic=topic, handle=handle)
        recalled = client.delivery.Recall(request, timeout=client.timeout)
    if as_json:
        output.document({"topic": topic, "unique_key": recalled.unique_key})
    else:
        output.say(f"RECALLED  {topic}  unique key {recalled.unique_key}")
