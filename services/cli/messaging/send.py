"""`tandem send`: one message, a repeated one, or a file of them."""

import shlex
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.messaging.special import remark_on_times, send_transaction, special_properties
from tandemmq.cli.talk.connection import connect
from tandemmq.cli.talk.failures import CallFailed, CommandFailed, Failure, WrongUsage
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json, Topic
from tandemmq.cli.talk.output import Output
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.client import Outgoing, StoreClient
    from tandemmq.store.v1.store_pb2 import Refusal, SendBatchRequest, SendReceipt, SendStreamResponse


def send(
    topic: Topic,
    body: Annotated[
        str | None, typer.Argument(metavar="BODY|-", help="The message; `-` or nothing: read it from standard input.")
    ] = None,
    tag: Annotated[str, typer.Option("--tag", "-t", metavar="TAG", help="The tag that consumers filter by.")] = "",
    keys: Annotated[
        list[str] | None, typer.Option("--key", "-k", metavar="KEY", help="A key to find the message by. Repeatable.")
    ] = None,
    queue: Annotated[
        int | None,
        typer.Option("--queue", "-q", min=0, metavar="N", help="The queue to append to; without it, they take turns."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property of your own. Repeatable."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="LINES", help="Send each line of this file as a message; `-`: of standard input."
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-c", min=1, metavar="N", help="Send everything N times.")] = 1,
    batch: Annotated[
        int, typer.Option("--batch", "-b", min=1, metavar="N", help="Messages in one request, when there are many.")
    ] = 100,
    delay: Annotated[
        str, typer.Option("--delay", metavar="TIME", help="Consumers get it this much later: 10s, 5m, 1.5h, 2d.")
    ] = "",
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="TIME", help="Consumers get it at this time, as in 2026-01-31T12:00; a past one means now."
        ),
    ] = "",
    order_key: Annotated[
        str, typer.Option("--order-key", metavar="KEY", help="Groups made with --fifo get those of one key in order.")
    ] = "",
    transaction: Annotated[
        bool, typer.Option("--transaction", help="Store all of them first, then let consumers have them.")
    ] = False,
    address: Address = DEFAULT_ADDRESS,
    as_json: Json = False,
) -> None:
    """Send a message, or many, and show where they lie.

    The receipt says what is true when it comes: see `flushDiskType` in `tandem settings`. Many messages go as a
    stream of batches. With --transaction nobody gets any of them before all are stored; if one is refused, nobody
    gets any.

    With --json: one JSON line a message, {"status", "message_id", "unique_key", "queue_id", "queue_offset",
    "physical_offset", "store_timestamp"}, and "recall_handle" of one that waits for its time (`tandem recall`).
    """
    if body is not None and file is not None:
        raise typer.BadParameter("give a body or --file, not both", param_hint="BODY")
    if transaction and (delay or at):
        raise typer.BadParameter(
            "messages of a transaction cannot be delayed: give --transaction, or --delay or --at",
            param_hint="--transaction",
        )
    from tandemmq.client import Outgoing

    special = special_properties(delay, at, order_key)
    named = dict(map(_split, properties or ())) | special
    output = Output(as_json=as_json)
    remark_on_times(output, special)
    bodies = _lines(file, count) if file is not None else _repeat(_body(body), count)
    messages = (Outgoing(topic, one, tag, keys or (), named, queue) for one in bodies)
    with connect(address) as client:
        if transaction:
            send_transaction(client, output, messages, batch)
        elif file is None and count == 1:
            _send_one(client, output, next(messages))
        else:
            _send_many(client, output, messages, batch, file if count == 1 else None)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--property")
    return name, value


def _body(given: str | None) -> bytes:
    """The body of the command line, or all of standard input."""
    if given is not None and given != "-":
        return given.encode("utf-8", "surrogateescape")
    if given is None and sys.stdin.isatty():
        raise typer.BadParameter("there is no body: give one, or `-` to type it", param_hint="BODY")
    return sys.stdin.buffer.read()


def _repeat(body: bytes, count: int) -> Iterator[bytes]:
    return (body for _ in range(count))


def _lines(file: Path, count: int) -> Iterator[bytes]:
    """The lines of a file without their ends, `count` times over. Opened now: a wrong name is told at once."""
    opened: IO[bytes] = sys.stdin.buffer if str(file) == "-" else _open(file)
    if count > 1:
        lines = [line.rstrip(b"\r\n") for line in opened]
        return (line for _ in range(count) for line in lines)
    return (line.rstrip(b"\r\n") for line in opened)


def _open(file: Path) -> IO[bytes]:
    """Raises WrongUsage."""
    try:
        return file.open("rb")
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}") from error


def _send_one(client: "StoreClient", output: Output, message: "Outgoing") -> None:
    receipt = client.send_batch([message])[0]
    told = told_receipt(receipt)
    if output.as_json:
        output.line(told)
    else:
        place = f"queue {receipt.queue_id} offset {receipt.queue_offset}"
        output.say(
            f"{told['status']}  {message.topic}  {place}  id {receipt.message_id}  unique key {receipt.unique_key}"
            + (f"  recall handle {receipt.recall_handle}" if receipt.recall_handle else "")
        )
    _check_status([told])


def told_receipt(receipt: "SendReceipt") -> dict[str, Any]:
    """A receipt as JSON."""
    from tandemmq.store.v1 import store_pb2

    told: dict[str, Any] = {
        "status": store_pb2.SendStatus.Name(receipt.status),
        "message_id": receipt.message_id,
        "unique_key": receipt.unique_key,
        "queue_id": receipt.queue_id,
        "queue_offset": receipt.queue_offset,
        "physical_offset": receipt.physical_offset,
        "store_timestamp": receipt.store_timestamp,
    }
    handles = {"recall_handle": receipt.recall_handle, "transaction_handle": receipt.transaction_handle}
    return told | {name: text for name, text in {**handles, "reason": receipt.reason}.items() if text}


def _send_many(
    client: "StoreClient", output: Output, messages: Iterable["Outgoing"], batch: int, file: Path | None
) -> None:
    """Stream batches, and count what became of them; refused batches are told at the end, the others are stored.

    `file`: whose lines they are, each once; None: others.
    """
    begun = time.perf_counter()
    sent = _Sent()
    try:
        for answer in client.stub.SendStream(_requests(messages, batch, sent)):
            for told in sent.take(answer):
                if output.as_json:
                    output.line(told)
    except BaseException:
        _say_how_far(output, sent, file)
        raise
    seconds = time.perf_counter() - begun
    rate = f"{sent.stored / seconds:,.0f} a second, {show_bytes(int(sent.bytes / seconds))} a second"
    took = f"in {show_seconds(seconds)} ({rate})"
    if sent.stored or not sent.refused:
        output.say(f"PUT_OK  {sent.stored:,} messages, {show_bytes(sent.bytes)}, to {len(sent.queues)} queues {took}")
    if sent.refused:
        first = sent.refused[0]
        missing = sent.messages - sent.stored - len(sent.bad)
        led = f" (its master: --address {first.master_address})" if first.master_address else ""
        refusal = f"{first.message}{led} (so {missing:,} of {sent.messages:,} messages were not stored)"
        raise CallFailed(Failure(refusal, first.code, first.rocketmq_status))
    _check_status(sent.bad)


class _Sent:
    """What went into a stream, and what came of it. The store answers in the order of the requests."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.requests: deque[int] = deque()
        """How many messages those have that are not answered."""
        self.answered = 0
        self.stored = 0
        self.bad: list[dict[str, Any]] = []
        """Receipts that do not say PUT_OK."""
        self.refused: list[Refusal] = []
        self.queues: set[int] = set()

    def take(self, answer: "SendStreamResponse") -> list[dict[str, Any]]:
        """Count an answer; gives its receipts as JSON."""
        self.answered += self.requests.popleft()
        if answer.HasField("refusal"):
            self.refused.append(answer.refusal)
            return []
        told = [told_receipt(receipt) for receipt in answer.receipts.receipts]
        good = [one for one in told if one["status"] == "PUT_OK"]
        self.bad += [one for one in told if one["status"] != "PUT_OK"]
        self.stored += len(good)
        self.queues.update(one["queue_id"] for one in good)
        return told


def _say_how_far(output: Output, sent: _Sent, file: Path | None) -> None:
    """What is known of a stream that ended too soon, and how to go on."""
    if not sent.answered:
        output.remark("No message was acknowledged.")
        return
    others = sent.answered - sent.stored
    output.remark(
        f"{sent.stored:,} messages were acknowledged{f', {others:,} were not safe or refused' if others else ''}; "
        f"those after them may be stored or not."
    )
    if file is not None and str(file) != "-":
        line = sent.answered + 1
        rest = f"tail -n +{line} {shlex.quote(str(file))} | tandem send ... --file -"
        output.remark(f"Go on at line {line:,} of {file}: {rest}")
    elif file is not None:
        output.remark(f"Go on at line {sent.answered + 1:,}.")


def _requests(messages: Iterable["Outgoing"], batch: int, sent: _Sent) -> Iterator["SendBatchRequest"]:
    from tandemmq.store.v1 import store_pb2

    left = iter(messages)
    while piece := list(islice(left, batch)):
        sent.messages += len(piece)
        sent.bytes += sum(len(message.body) for message in piece)
        sent.requests.append(len(piece))
        yield store_pb2.SendBatchRequest(messages=[message.to_proto() for message in piece])


_LESS_SAFE = {
    "FLUSH_DISK_TIMEOUT": "stored, but the disk did not say in time that it has them",
    "FLUSH_SLAVE_TIMEOUT": "stored, but no slave said in time that it has them; see `tandem replica list`",
    "SLAVE_NOT_AVAILABLE": "stored, but on this node only: too few slaves follow it; see `tandem replica list`",
}


def _check_status(receipts: list[dict[str, Any]]) -> None:
    """Raise CommandFailed if a message is not as safe as the store was set up to make it."""
    bad = [one for one in receipts if one["status"] != "PUT_OK"]
    if bad:
        status = str(bad[0]["status"])
        reason = bad[0].get("reason") or _LESS_SAFE.get(status, "stored, but not known to be as safe as it should be")
        raise CommandFailed(f"{counted(len(bad), 'message')} ended with {status}: {reason}")
