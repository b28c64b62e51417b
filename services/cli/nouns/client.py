"""`tandem client`: what one consumer is asked, by the store that it is connected to."""

from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns import names
from tandemmq.cli.nouns.calls import document, noun
from tandemmq.cli.nouns.lone_store import operations_at
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.delivery.v1.operations_pb2 import MemberAnswer

app = noun("client", "Consumers: their threads; try a message on one.")

OfGroup = Annotated[str, typer.Argument(metavar="GROUP", help="Its group.", autocompletion=names.groups)]
Client = Annotated[str, typer.Argument(metavar="CLIENT", help="Its client id, as `tandem group members` shows it.")]


@app.command()
def threads(group: OfGroup, client: Client, address: Address = DEFAULT_ADDRESS, as_json: Json = False) -> None:
    """Show where the threads of a consumer are.

    Clients of RocketMQ 5 are asked over their telemetry stream, through a gateway too: that of Java shows its stacks,
    those of Python and Rust do not answer. The store that is asked must be the master.

    With --json: one document, {"code", "text"}.
    """
    from tandemmq.delivery.v1.operations_pb2 import ShowThreadsRequest

    with operations_at(address) as operations:
        answer = operations.ShowThreads(ShowThreadsRequest(group=group, client_id=client))
    _say(answer, as_json)


@app.command("try")
def try_message(
    group: OfGroup,
    client: Client,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="Offset id, as `tandem message find` shows it.")],
    address: Address = DEFAULT_ADDRESS,
    as_json: Json = False,
) -> None:
    """Have a push consumer consume a message once more.

    Says what came of it: OK, or why not.

    Nothing of the group changes by it. Of RocketMQ 5 that of Java does that; others say that they do not, or nothing.

    With --json: one document, {"code", "text"}.
    """
    from tandemmq.delivery.v1.operations_pb2 import TryMessageRequest

    with operations_at(address) as operations:
        answer = operations.TryMessage(TryMessageRequest(group=group, client_id=client, message_id=message))
    _say(answer, as_json)
    if answer.code != "OK":
        raise typer.Exit(1)


def _say(answer: "MemberAnswer", as_json: bool) -> None:
    output = Output(as_json=as_json)
    if as_json:
        output.document(document(answer))
        return
    if answer.code != "OK":
        output.say(answer.code)
    if answer.text or answer.code == "OK":
        output.say(answer.text or "OK")
