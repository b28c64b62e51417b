"""What the fuzzer feeds: a Connection with calls of gRPC on it, all in one thread and without a loop, and its rules.

`Target.run` gives one input to a new connection and raises BrokenRule, or whatever escapes, when a rule does not hold:

1. nothing is raised; what is written are legal frames of a server; 2. a connection that fails says GOAWAY with its
code, last; 3. nothing that is counted is negative, or over its limit, or other than what the streams say; 4. when the
socket is gone, every stream was told its end, once, and nothing is held any more.
"""

import random
from functools import lru_cache

from hpack import Decoder

from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.http2.headers import HeadCache
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.request import RequestHead
from tandemmq.common.grpc_transport.http2.stream import Stream
from tandemmq.common.grpc_transport.rpc import answers
from tandemmq.common.grpc_transport.rpc.call_head import OK, CallHead
from tandemmq.common.grpc_transport.rpc.messages import PREFIX_SIZE, MessageReader, pack_prefix
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status
from tests.unit.grpc_transport.reading import IllegalOutput, Reading, frames
from tests.unit.grpc_transport.wire import Fields, Type

WINDOW_MAX = (1 << 31) - 1
MESSAGES = 1000
"""More answers than this to one request are not given."""

LIMITS = (
    Limits(),
    Limits(
        max_concurrent_streams=3,
        stream_window=65_535,
        connection_window=65_535,
        max_frame_size=16_384,
        max_header_list_size=600,
        max_buffered=2000,
        max_pending=500,
        max_receive_message_length=1000,
        overhead_per_second=12,
        settings_per_second=4,
        resets_burst=3,
        resets_per_second=1,
        handshake_seconds=3,
        frame_seconds=3,
        keepalive_seconds=4,
        keepalive_timeout_seconds=3,
        idle_seconds=6,
        drain_seconds=2,
    ),
    Limits(max_receive_message_length=20_000, max_buffered=20_000, max_pending=4000, connection_window=70_000),
)


class BrokenRule(AssertionError):
    """A promise of the transport did not hold."""


def must(right: bool, otherwise: str) -> None:
    if not right:
        raise BrokenRule(otherwise)


@lru_cache(maxsize=4096)
def decode(block: bytes) -> Fields:
    """A server's header block; it may not depend on any other one."""
    decoder = Decoder()
    decoder.header_table_size = decoder.max_allowed_table_size = 0
    return [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]


class FuzzedCall(Stream):
    """A call as a handler without a loop would serve it. It also notes whether it is told things in order."""

    def __init__(self, connection: Connection, stream_id: int, head: RequestHead) -> None:
        super().__init__(connection, stream_id)
        view = head.view = head.view or CallHead(head)
        self.head: CallHead = view
        self.method = view.path.rpartition("/")[2]
        self.reader = MessageReader(view.encoding, connection.limits.max_receive_message_length)
        self.messages: list[bytes] = []
        self.answering = False
        """The head of an answer has been sent."""
        self.over = False
        self.whole = False
        self.was_reset = False

    # -- what the connection tells ------------------------------------------------------------------------------------

    def opened(self) -> None:
        must(not self.whole and not self.was_reset, "opened late")
        failure = self.head.refusal
        if self.head.http_status != OK:
            self._end_plain()
        elif failure is not None:
            self.end(failure.status, failure.details)
        elif self.method not in METHODS:
            self.end(Status.UNIMPLEMENTED, "Method not found!")
        else:
            self._metadata()

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        must(not self.whole, "data behind the end")
        must(not self.was_reset, "data behind a reset")
        must(not self.closed, "data of a closed stream")
        must(0 <= start <= stop <= len(buffer), "bounds")
        if not self.over:
            before = self.reader.size
            try:
                found = self.reader.feed(buffer, start, stop)
            except CallFailure as failure:
                self.connection.buffered += self.reader.size - before
                self.end(failure.status, failure.details)
                found = []
            else:
                self.connection.buffered += self.reader.size - before
            self._take(found)
        if ended and not self.was_reset:
            self.ended()

    def ended(self) -> None:
        must(not self.whole, "ended twice")
        must(not self.was_reset, "ended behind a reset")
        self.whole = True
        if self.head.http_status != OK and not self.over:
            self._end_plain()
        elif not self.over and not self.answering:
            self.opened_late()
        if not self.over and self.method not in ("Wait", "Keep"):
            self._answer_at_the_end()

    def opened_late(self) -> None:
        """A request without a body: `opened` was not called."""
        failure = self.head.refusal
        if failure is not None:
            self.end(failure.status, failure.details)
        elif self.method not in METHODS:
            self.end(Status.UNIMPLEMENTED, "Method not found!")

    def reset(self, code: int) -> None:
        must(not self.was_reset, "reset twice")
        must(0 <= code < 1 << 32, "a code of 32 bits")
        self.was_reset = self.over = True
        self._drop()

    def writable(self) -> None:
        must(not self.was_reset, "writable behind a reset")

    # -- what the handler does ----------------------------------------------------------------------------------------

    def _metadata(self) -> None:
        try:
            must(all(isinstance(key, str) for key, _value in self.head.metadata), "keys are text")
        except CallFailure as failure:
            self.end(failure.status, failure.details)

    def _take(self, found: list[bytes]) -> None:
        for body in found:
            if self.over:
                return
            try:
                body = self.reader.plain(body)
            except CallFailure as failure:
                self.end(failure.status, failure.details)
                return
            self.messages.append(body)
            if self.method == "Keep":
                self.connection.hold(self, len(body) + PREFIX_SIZE)
            elif self.method == "Converse":
                self.send(body.upper())

    def _answer_at_the_end(self) -> None:
        if self.reader.incomplete:
            self.end(Status.INTERNAL, "the request ended inside a message")
        elif self.method == "Echo" and len(self.messages) == 1:
            self._whole(self.messages[0])
        elif self.method == "Collect":
            self._whole(b"|".join(self.messages))
        elif self.method == "Repeat":
            count, _, size = b"".join(self.messages)[:9].partition(b":")
            for _ in range(min(int(count), MESSAGES) if count.isdigit() else 1):
                self.send(bytes(min(int(size), 5000)) if size.isdigit() else b"")
            self.end(Status.OK, "")
        elif self.method == "Converse":
            self.end(Status.OK, "")
        else:
            self.end(Status.INTERNAL, "the request ended without a whole message")

    def read(self) -> None:
        """The handler of Keep reads what is there."""
        if not self.over and self.method == "Keep":
            self.connection.release(self, self.held)
            self.messages = []

    def send(self, body: bytes) -> None:
        """One answer of a stream."""
        sender = self.connection.sender
        if self.over or self.closed:
            return
        if sender.over_budget:
            self.end(Status.RESOURCE_EXHAUSTED, "the peer takes too little")
            return
        if not self.answering:
            self.answering = True
            sender.headers(self, answers.HEAD)
        sender.message(self, pack_prefix(0, len(body)), body)

    def end(self, status: Status, details: str) -> None:
        """The trailers, alone or after what was sent."""
        if self.over or self.closed:
            return
        self.over = True
        self._drop()
        block = answers.trailers(status, details) if status else answers.TRAILERS_OK
        self.connection.sender.trailers(self, block if self.answering else answers.HEAD + block)

    def _whole(self, body: bytes) -> None:
        if self.answering:
            self.send(body)
            self.end(Status.OK, "")
            return
        self.over = True
        self._drop()
        self.connection.sender.answer(self, answers.OK, pack_prefix(0, len(body)), body)

    def _end_plain(self) -> None:
        self.over = True
        self._drop()
        self.connection.sender.end(self, *answers.plain(self.head.http_status, "this is a gRPC server"))

    def _drop(self) -> None:
        """Messages that nobody will read are no longer held."""
        self.connection.buffered -= self.reader.size
        self.reader = MessageReader(b"identity", 0)
        if self.method == "Keep" and not self.closed:
            self.connection.release(self, self.held)


METHODS = ("Echo", "Collect", "Repeat", "Converse", "Wait", "Keep")


class Target:
    """One input's server; also its Sink."""

    cache = HeadCache()

    def __init__(self, chance: random.Random) -> None:
        """``chance`` decides what happens between the parts of an input."""
        self.chance = chance
        self.limits = LIMITS[int(chance.random() * len(LIMITS))]
        self.now = 100.0
        self.calls: list[FuzzedCall] = []
        self.written: list[bytes] = []
        self.connection = Connection(self.limits, self, self.cache, self.now)

    def request(self, connection: Connection, stream_id: int, head: RequestHead) -> FuzzedCall:
        """See Sink."""
        call = FuzzedCall(connection, stream_id, head)
        self.calls.append(call)
        return call

    def output_ready(self) -> None:
        """See Sink."""

    def run(self, parts: list[bytes]) -> None:
        """Feeds an input and checks the rules."""
        connection = self.connection
        connection.initiate()
        received = 0
        for part in parts:
            connection.receive(part)
            received += len(part)
            if len(parts) > 1:
                self._collect()
                self._check_counters()
                self._something_else()
        self._collect()
        self._check_output(received)
        self._check_counters()
        connection.lost()
        self._check_end()

    def _collect(self) -> None:
        sender = self.connection.sender
        if sender.output:
            self.written += map(bytes, sender.output)
            sender.output.clear()
            sender.size = 0

    def _something_else(self) -> None:
        """What happens beside the client's bytes: time, a full socket, a handler that reads, cancels or answers."""
        connection, which = self.connection, self.chance.random()
        if which < 0.3:
            self.now += which * 10
            connection.tick(self.now)
        elif which < 0.5:
            connection.sender.congested = not connection.sender.congested
            if not connection.sender.congested:
                connection.sender.flush_all()
        elif which < 0.53:
            connection.drain(self.now)
        elif self.calls and connection.failed is None:
            call = self.chance.choice(self.calls)
            if which < 0.7:
                call.read()
            elif which < 0.8:
                call.send(b"from afar")
            elif which < 0.9:
                call.end(Status.ABORTED, "enough \u00e9 ")
            elif not call.closed:
                connection.cancel(call, ErrorCode.CANCEL)
                call.reset(ErrorCode.CANCEL)

    # -- rules --------------------------------------------------------------------------------------------------------

    def _check_output(self, received: int) -> None:
        connection = self.connection
        written = b"".join(self.written)
        found = frames(written)
        reading = Reading(1 << 24, decode)
        reading.read(found)
        must(all(stream & 1 for stream in reading.answers), "an answer on a stream of ours")
        if connection.failed is not None:
            must(found[-1].type == Type.GOAWAY and reading.codes[-1] == connection.failed, "GOAWAY must be last")
        else:
            must(not any(reading.codes), "a GOAWAY with an error, and no failure")
        sent = sum(len(answer.body) for answer in reading.answers.values())
        must(len(written) - sent < 2000 + 40 * received, "much output for little input")

    def _check_counters(self) -> None:
        connection = self.connection
        sender, limits, streams = connection.sender, connection.limits, connection.streams
        must(connection.held == sum(stream.held for stream in streams.values()), "held is not what streams hold")
        must(
            0 <= connection.held <= limits.max_buffered + limits.connection_window,
            f"held over its bound: {connection.held}",
        )
        must(connection.buffered >= 0, "buffered is negative")
        must(len(streams) <= limits.max_concurrent_streams, "too many streams")
        must(all(not stream.closed and stream.held >= 0 for stream in streams.values()), "a closed stream is kept")
        must(0 <= sender.window <= WINDOW_MAX, "the connection's send window")
        must(all(stream.send_window <= WINDOW_MAX for stream in streams.values()), "a stream's send window")
        pending = sum(sum(map(len, stream.pending)) for stream in streams.values() if stream.pending)
        must(sender.pending_bytes == pending, "pending is not what streams have pending")
        must(sender.ready.keys() <= streams.keys(), "a stream that is gone has its turn")
        kept = connection.reader.unread
        must(kept <= 10 * limits.max_header_list_size + (64 << 10), "too much kept of what is not whole")
        must(connection.failed is None or not streams, "streams of a connection that failed")

    def _check_end(self) -> None:
        connection = self.connection
        must(not connection.streams, "streams are left")
        must(connection.held == 0, "something is held for nobody")
        must(connection.buffered == 0, "something is buffered for nobody")
        must(connection.sender.pending_bytes == 0, "something is pending for nobody")
        must(not connection.sender.ready, "somebody has a turn who is gone")
        must(all(call.closed for call in self.calls), "a stream that was not told its end")


def replay(parts: list[bytes], chance: random.Random) -> BaseException | None:
    """One input, with a cache of its own; what goes wrong."""
    kept, Target.cache = Target.cache, HeadCache()
    try:
        Target(chance).run(parts)
    except (IllegalOutput, BrokenRule, Exception) as error:  # noqa: BLE001 - anything that escapes is what is looked for
        return error
    finally:
        Target.cache = kept
    return None
