"""`tandem pull`: reading a topic, as far as it goes or as it grows."""

import heapq
import queue as thread_queue
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.messaging.messages import as_json, say_message
from tandemmq.cli.talk.connection import connect
from tandemmq.cli.talk.failures import INTERRUPTED, WrongUsage
from tandemmq.cli.talk.moments import FORMS, BadMoment, parse_moment
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json, Topic, WithBody
from tandemmq.cli.talk.output import Output
from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.client import Pulled, QueueOffsets, Record, StoreClient

_CHUNK = 1000
_CHUNK_BYTES = 4 << 20
"""Messages asked for at a time, and bytes."""

_WAIT_SECONDS = 20.0
"""How long a pull of `--follow` waits for something new."""

_DEFAULT_MAX = 32


def pull(
    topic: Topic,
    queue: Annotated[str, typer.Option("--queue", "-q", metavar="N|all", help="One queue, or all of them.")] = "all",
    offset: Annotated[
        str,
        typer.Option(
            "--offset",
            "-o",
            metavar="N|min|max|TIME",
            help=f"Where to begin: a queue offset, an end, or a time: {FORMS}.",
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            "--max",
            "-n",
            min=0,
            metavar="N",
            help="Stop after N messages; 0: at the end. [default: 32; none with --follow]",
        ),
    ] = None,
    tags: Annotated[
        str, typer.Option("--tag", "-t", metavar="'A || B'", help="Only messages with one of these tags.")
    ] = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="At the end, wait for new messages, until Ctrl-C.")
    ] = False,
    with_body: WithBody = True,
    address: Address = DEFAULT_ADDRESS,
    as_json_lines: Json = False,
) -> None:
    """Read messages of a topic. Nothing is taken away: every reader keeps its own offsets.

    Begins at the first message; with --follow at the end, unless --offset says otherwise. Messages of several queues
    come in the order in which the store received them. With --follow a store that is away is waited for. A number as
    --offset is a queue offset; a time in milliseconds has 13 digits.

    With --json: one JSON line a message, {"topic", "queue_id", "queue_offset", "message_id", "tag", "keys",
    "properties", ..., "body"}; a body that is not UTF-8 is in "body_base64" instead.
    """
    output = Output(as_json=as_json_lines)
    begin = offset or ("max" if follow else "min")
    most = limit if limit is not None else (0 if follow else _DEFAULT_MAX)
    with connect(address) as client:
        starts = _starts(client, topic, queue, begin)
        reader = _Reader(client, output, topic, tags, most)
        arriving = reader.follow(starts) if follow else reader.merged(starts)
        shown = 0
        try:
            for record in islice(arriving, most or None):
                shown += 1
                if as_json_lines:
                    output.line(as_json(record, with_body=with_body))
                else:
                    say_message(output, record, with_body=with_body)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        finally:
            reader.end()
        more = not follow and next(arriving, None) is not None
    left_out = f"; {reader.damaged:,} left out, which are damaged" if reader.damaged else ""
    output.remark(counted(shown, "message") + left_out + ("; there are more: see --max and --offset" if more else ""))


def _starts(client: "StoreClient", topic: str, queue: str, begin: str) -> dict[int, int]:
    """Queue id -> first offset to read."""
    if queue != "all" and not queue.isdecimal():
        raise typer.BadParameter(f"{queue!r} is neither a number nor `all`", param_hint="--queue")
    is_time = begin not in ("min", "max") and not (begin.isdecimal() and len(begin) < len("1000000000000"))
    try:
        moment = parse_moment(begin) if is_time else None
    except BadMoment:
        said = f"{begin!r} is no place in a queue; write a queue offset (0, 1, ...), min, max, or a time: {FORMS}"
        raise WrongUsage(said) from None
    queues = client.offsets(topic, None if queue == "all" else int(queue), timestamp_ms=moment)

    def start(one: "QueueOffsets") -> int:
        if one.at_time is not None:
            return one.at_time
        return one.min_offset if begin == "min" else one.max_offset if begin == "max" else int(begin)

    return {one.queue_id: start(one) for one in queues}


class _Reader:
    """Reads the queues of one topic."""

    def __init__(self, client: "StoreClient", output: Output, topic: str, tags: str, most: int) -> None:
        """`most`: no more messages than these are wanted; 0: any number."""
        self._client, self._output, self._topic, self._tags = client, output, topic, tags
        self._chunk = min(most + 1, _CHUNK) if most else _CHUNK
        self.damaged = 0
        """Messages that were left out, since they are damaged."""
        self._without_answer: set[int] = set()  # queues, while --follow waits for a store that is away
        self._saying = threading.Lock()
        self._ended = False

    def merged(self, starts: dict[int, int]) -> Iterator["Record"]:
        """What is there now, in the order of the log."""
        queues = (self._to_the_end(queue_id, offset) for queue_id, offset in starts.items())
        return heapq.merge(*queues, key=lambda record: record.physical_offset)

    def follow(self, starts: dict[int, int]) -> Iterator["Record"]:
        """What is there and what comes, as it arrives: one waiting pull a queue."""
        arrived: thread_queue.Queue[Record | BaseException] = thread_queue.Queue(10 * _CHUNK)
        for queue_id, offset in starts.items():
            threading.Thread(target=self._feed, args=(arrived, queue_id, offset), daemon=True).start()
        while True:
            one = arrived.get()
            if isinstance(one, BaseException):
                raise one
            yield one

    def _feed(self, arrived: "thread_queue.Queue[Record | BaseException]", queue_id: int, offset: int) -> None:
        try:
            while True:
                answer = self._pull_in_time(queue_id, offset)
                for record in answer.records:
                    arrived.put(record)
                offset = answer.next_offset
        except Exception as error:  # noqa: BLE001 - raised again where it is seen, in the main thread
            arrived.put(error)

    def _pull_in_time(self, queue_id: int, offset: int) -> "Pulled":
        """The answer of a store that may be started anew meanwhile. Raises what will not pass."""
        from tandemmq.client.cluster import PAUSES
        from tandemmq.client.errors import ClientError

        backoff = Backoff(*PAUSES)
        while True:
            try:
                answer = self._pull(queue_id, offset, _WAIT_SECONDS)
            except ClientError as error:
                if not error.retriable:
                    raise
                self._say_away(queue_id, error.message)
                time.sleep(backoff.pause())
                continue
            self._without_answer.discard(queue_id)
            return answer

    def end(self) -> None:
        """No more is wanted of `follow`: what its threads hear from here on, that the client is closed, is not told."""
        with self._saying:
            self._ended = True

    def _say_away(self, queue_id: int, reason: str) -> None:
        """Once, whatever the number of queues."""
        with self._saying:
            if not self._without_answer and not self._ended:
                self._output.remark(f"no answer, trying again: {reason}")
            self._without_answer.add(queue_id)

    def _to_the_end(self, queue_id: int, offset: int) -> Iterator["Record"]:
        end: int | None = None
        while end is None or offset < end:
            answer = self._pull(queue_id, offset, 0)
            end = answer.max_offset if end is None else end
            yield from answer.records
            self._say_jump(queue_id, offset, answer)
            if answer.next_offset <= offset:
                return
            offset = answer.next_offset

    def _pull(self, queue_id: int, offset: int, wait_seconds: float) -> "Pulled":
        answer = self._client.pull(
            self._topic,
            queue_id,
            offset,
            max_messages=self._chunk,
            max_bytes=_CHUNK_BYTES,
            tags=self._tags,
            wait_seconds=wait_seconds,
            group="tandem-cli",
        )
        self.damaged += len(answer.damaged)
        return answer

    def _say_jump(self, queue_id: int, offset: int, answer: "Pulled") -> None:
        if answer.status == "OFFSET_TOO_SMALL":
            self._output.remark(f"queue {queue_id}: offset {offset} has expired; the first is {answer.min_offset}")
        elif answer.status == "OFFSET_OVERFLOW_BADLY":
            self._output.remark(f"queue {queue_id}: offset {offset} is beyond the end, {answer.max_offset}")
        elif answer.status in ("MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL"):
            self._output.remark(f"queue {queue_id}: offsets {offset} to {answer.next_offset} cannot be read")
