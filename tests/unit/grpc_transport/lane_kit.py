"""One server without a socket, with or without a lane: bytes and events in, and all that can be compared out."""

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import grpc

from tandemmq.common.grpc_transport import HELD, DirectCall, Limits, Server
from tandemmq.common.grpc_transport.aio.protocol import Protocol
from tandemmq.common.grpc_transport.rpc import answers
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status
from tests.unit.grpc_transport.wire import PROBE

T = TypeVar("T")

LARGE = 20_000
"""Bytes of an answer that is not sent in one piece."""


_EXPIRED = answers.HEAD + answers.trailers_with(Status.DEADLINE_EXCEEDED, "Deadline Exceeded", ())
_ENDS = re.compile(
    rb"(?:" + re.escape(len(_EXPIRED).to_bytes(3, "big") + b"\x01\x05") + rb".{4}" + re.escape(_EXPIRED) + rb")+", re.S
)
"""Frames, one after the other, that end calls whose deadlines have passed."""


def in_order(output: bytes) -> bytes:
    """Output with the ends of calls whose deadlines pass in the same turn in the order of their streams.

    Theirs is free: a lane has one timer for all of its calls, and each of Python's has its own.
    """
    size = 9 + len(_EXPIRED)

    def ordered(found: re.Match[bytes]) -> bytes:
        ends = found.group()
        return b"".join(sorted(ends[at : at + size] for at in range(0, len(ends), size)))

    return _ENDS.sub(ordered, output)


def _never() -> bool:
    return False


class HandMovedLoop(asyncio.SelectorEventLoop):
    """Time goes on when the test says so: two runs see the same one."""

    now = 1000.0

    def time(self) -> float:
        return self.now


class NoSocket(asyncio.Transport):
    """Keeps what it is given."""

    def __init__(self, plain: socket.socket) -> None:
        super().__init__({"socket": plain, "peername": ("10.0.0.1", 5)})
        self.written = b""
        self.said: list[str] = []
        self.broken = False

    def write(self, data: Any) -> None:
        if self.broken:
            raise RuntimeError("it is closed, and nobody was told")
        self.written += bytes(data)

    def writelines(self, list_of_data: Any) -> None:
        self.written += b"".join(list_of_data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return "close" in self.said

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.said.append("close")

    def abort(self) -> None:
        self.said.append("close")

    def pause_reading(self) -> None:
        self.said.append("pause")

    def resume_reading(self) -> None:
        self.said.append("resume")


class Short:
    """The short way of Echo: what it does with a message, the message says."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, str]] = []
        self.told: list[object] = []
        """What came along with each call, or why that cannot be read."""
        self.held: list[tuple[bytes, DirectCall]] = []

    def __call__(self, message: bytes, call: DirectCall) -> Any:
        self.asked.append((message, call.peer()))
        self.told.append(self._metadata(call))
        if message.startswith(b"broken"):
            raise ValueError("it broke")
        if message.startswith(b"later"):
            self.held.append((message, call))
            return HELD
        if message.startswith(b"others"):
            self.answer_one()
            self.answer_one()
        if message.startswith(b"large"):
            return bytes(LARGE)
        if message.startswith(b"odd"):
            return "no bytes"
        return None if message.startswith(b"none") else b"short " + message

    def _metadata(self, call: DirectCall) -> object:
        try:
            return call.invocation_metadata()
        except CallFailure as failure:
            return failure.details

    def answer_one(self) -> None:
        if self.held:
            message, call = self.held.pop(0)
            call.answer_later(b"at last " + message)


class One:
    """A connection of a server."""

    def __init__(self, limits: Limits, *, lane: bool, enough: Callable[[], bool] = _never) -> None:
        self.server = Server((), limits, None, None, False)
        self.server.incident = lambda: "number"  # type: ignore[method-assign]
        self.handled: list[bytes] = []
        self.short = Short()
        handlers: dict[str, Any] = {
            "Echo": grpc.unary_unary_rpc_method_handler(self._echo),
            "Wait": grpc.unary_unary_rpc_method_handler(self._wait),
            "Repeat": grpc.unary_stream_rpc_method_handler(self._repeat),
        }
        self.server.add_registered_method_handlers(PROBE.strip("/"), handlers)
        self.server.add_direct_method(PROBE + "Echo", self.short)
        if lane:
            self.server.use_lanes()
        self.protocol = Protocol(self.server)
        self.protocol._slice_over = _never  # type: ignore[method-assign]  # by a clock that is not moved by hand
        with closing(socket.socket()) as plain:
            self.transport = NoSocket(plain)
            self.protocol.connection_made(self.transport)
        self.connection = self.protocol.connection
        self.connection.reader.enough = enough

    def _echo(self, request: bytes, _context: Any) -> bytes:
        self.handled.append(request)
        return b"handled " + request

    async def _wait(self, request: bytes, _context: Any) -> bytes:
        self.handled.append(request)
        await asyncio.sleep(0)
        return b"waited"

    async def _repeat(self, request: bytes, context: Any) -> None:
        for _ in range(3):
            await context.write(request)

    @property
    def taken(self) -> int:
        """Calls that the lane took."""
        lane: Any = self.connection.reader.lane
        return 0 if lane is None else int(lane.taken)

    def state(self) -> dict[str, object]:
        """All that the two ways may not differ in."""
        connection, reader = self.connection, self.connection.reader
        sender, server = connection.sender, self.server
        own = (
            "last_stream_id", "_received", "_granted", "held", "buffered", "heads_size", "acknowledged", "failed",
            "reason", "heard", "draining", "draining_finally", "_reset_by_us", "_skipped", "_last_tick", "_promised",
            "_pinged",
        )  # fmt: skip
        reads = ("prefaced", "_progressed", "_block_since", "_data_left", "behind", "_expected", "_block")
        sends = ("size", "window", "initial_window", "max_frame_size", "block_prefix", "congested", "pending_bytes")
        streams = {
            key: (stream.received, stream.granted, stream.send_window, stream.remote_ended, stream.head_size)
            for key, stream in connection.streams.items()
        }
        return {
            **{name: copy(getattr(connection, name)) for name in own},
            **{name: copy(getattr(reader, name)) for name in reads},
            **{name: getattr(sender, name) for name in sends},
            "frames": sender.data_frames,
            "ready": list(sender.ready),
            "streams": streams,
            "rest": reader._rest[reader._begins :],
            "floods": {key: value for key, value in vars(connection.floods).items() if key != "_limits"},
            "written": in_order(self.transport.written),
            "queued": in_order(b"".join(map(bytes, sender.output))),
            "given": self.protocol.written,
            "said": list(self.transport.said),
            "parked": list(self.protocol.parked),
            "account": (
                *(self.protocol.account.used, self.protocol.account.owner.used),
                *(server.budget.used, server.budget.accounts, server.budget.tight, len(server.budget.waiting)),
            ),
            "server": (server.active, dict(vars(server.told))),
            "asked": list(self.short.asked),
            "told": list(self.short.told),
            "handled": list(self.handled),
        }

    def tick(self) -> None:
        """A second has passed."""
        loop: Any = self.server.loop
        loop.now += 1.0
        self.protocol.tick(loop.now)

    def break_socket(self) -> None:
        self.transport.broken = True

    def congest(self, full: bool) -> None:
        if full:
            self.protocol.pause_writing()
        else:
            self.protocol.resume_writing()

    def tighten(self, tight: bool) -> None:
        """Another connection holds half of what there is, or gives it back."""
        budget = self.server.budget
        if tight != (budget.used > budget.total // 2):
            budget.add(budget.total if tight else -budget.total)


Event = bytes | Callable[[One], None] | None
"""What happens to a connection; None: a turn of the event loop."""


async def outside_of_tasks(do: Callable[[], None]) -> None:
    """Call it as the event loop calls protocols: in a task no handler can begin, and all calls would fail alike."""
    raised: list[Exception] = []

    def call() -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 - it is the caller's
            raised.append(error)

    asyncio.get_running_loop().call_soon(call)
    await asyncio.sleep(0)
    for error in raised:
        raise error


def run_by_hand(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives in a loop of its own."""
    with asyncio.Runner(loop_factory=HandMovedLoop) as runner:
        return runner.run(work)


def run(events: Sequence[Event], limits: Limits, *, lane: bool) -> tuple[list[dict[str, object]], int]:
    """The states after each event, and how many calls the lane took."""
    logging.disable(logging.CRITICAL)  # faults of handlers are part of the game

    async def go() -> tuple[list[dict[str, object]], int]:
        one = One(limits, lane=lane)
        states: list[dict[str, object]] = []

        def happen(together: Sequence[Event]) -> None:
            for event in together:
                if callable(event):
                    event(one)
                elif event and one.protocol._transport is not None and not one.transport.is_closing():
                    one.protocol.data_received(event)
                states.append(one.state())

        for is_turn, together in groupby(events, lambda event: event is None):
            if not is_turn:
                await outside_of_tasks(partial(happen, list(together)))
                continue
            for _ in together:
                await asyncio.sleep(0)
                states.append(one.state())
        await outside_of_tasks(partial(one.congest, False))
        for _ in range(4):
            await asyncio.sleep(0)
        states.append(one.state())
        await outside_of_tasks(partial(one.protocol.connection_lost, None))
        states.append(one.state())
        if one.server.tasks:
            await asyncio.wait(one.server.tasks)
        return states, one.taken

    try:
        return run_by_hand(go())
    finally:
        logging.disable(logging.NOTSET)


def compare(events: Sequence[Event], limits: Limits) -> int:
    """The same through both ways; how many calls the lane took."""
    theirs, _ = run(events, limits, lane=False)
    ours, taken = run(events, limits, lane=True)
    for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        differs = {name: (one[name], other[name]) for name in other if one[name] != other[name]}
        assert not differs, f"with a lane and without, after event {at}: {differs}"
    return taken
