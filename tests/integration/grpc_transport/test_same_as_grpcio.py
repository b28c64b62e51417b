"""Handlers that do random things, run on both servers: callers must not see a difference."""

import asyncio
import random
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import grpc
import pytest

from tests.grpc_probe import TRANSPORTS
from tests.integration.grpc_transport.hosting import Hosted, hosted
from tests.integration.grpc_transport.wire import INITIAL_WINDOW_SIZE, WIDE, Answer, Wire, message, wired

SEEDS = 4
SCRIPTS = 150
"""Handlers tried by each seed."""
AT_ONCE = 5
"""Calls at a time on one connection."""
SIZES = (0, 1, 5, 100, 16_379, 16_380, 70_000)
REQUEST_SIZES = (0, 1, 5, 100, 3000, 10_000)
"""Five of them fit into the window that a connection begins with."""
TEXTS = ("", "plain", "é%", "a\nb", "x" * 500)
CODES = [grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAUTHENTICATED]
ACCEPTS = (b"grpc-accept-encoding", b"identity,deflate,gzip")
BITS = {"gzip": 31, "deflate": 15}

Step = tuple[Any, ...]


@dataclass
class Script:
    """What a handler does, and what it is asked with."""

    kind: str
    generator: bool
    steps: list[Step]
    answer: int
    """Size of the answer of a call with one."""
    requests: list[int]
    """Sizes."""
    pieces: int
    """How many DATA frames the requests are cut into."""
    notes: list[Any] = field(default_factory=list)
    """What the handler saw."""


def script_of(chance: random.Random) -> Script:
    """A script by chance."""
    kind = chance.choice(["unary", "into", "out", "both"])
    makers: list[Any] = [
        lambda: ("turn",),
        lambda: ("wait",),
        lambda: ("trail", chance.choice(["1", "two"])),
        lambda: ("details", chance.choice(TEXTS)),
        lambda: ("look",),
    ]
    if chance.random() < 0.5:
        makers.append(lambda: ("initial", chance.choice(["1", "two"])))
    if chance.random() < 0.3:
        makers.append(lambda: ("code", chance.choice(CODES)))
    if chance.random() < 0.3:
        makers.append(lambda: ("compress", chance.choice([grpc.Compression.Gzip, grpc.Compression.Deflate])))
        makers.append(lambda: ("plain",))
    if chance.random() < 0.3:
        with_metadata = chance.random() < 0.5
        makers.append(lambda: ("abort", chance.choice(CODES[1:]), chance.choice(TEXTS), with_metadata))
    if chance.random() < 0.2:
        makers.append(lambda: ("raise",))
    if kind in ("out", "both"):
        makers += [lambda: ("write", chance.choice(SIZES))] * 4
    if kind in ("into", "both"):
        makers += [lambda: ("read",)] * 3
    requests = [chance.choice(REQUEST_SIZES) for _ in range(chance.randrange(6) if kind in ("into", "both") else 1)]
    steps = [chance.choice(makers)() for _ in range(chance.randrange(9))]
    return Script(kind, chance.random() < 0.5, steps, chance.choice(SIZES), requests, chance.choice([1, 1, 2, 7]))


async def played(script: Script, context: Any) -> AsyncIterator[bytes]:
    """Does the steps; gives what is to be written."""
    for step, *arguments in script.steps:
        if step == "turn":
            await asyncio.sleep(0)
        elif step == "wait":
            await asyncio.sleep(0.001)
        elif step == "trail":
            context.set_trailing_metadata((("x-trail", *arguments), ("x-trail-bin", b"\x00\xff")))
        elif step == "details":
            context.set_details(*arguments)
        elif step == "initial":
            await context.send_initial_metadata((("x-initial", *arguments),))
        elif step == "code":
            context.set_code(*arguments)
        elif step == "compress":
            context.set_compression(*arguments)
        elif step == "plain":
            context.disable_next_message_compression()
        elif step == "abort":
            code, details, with_metadata = arguments
            await context.abort(code, details, (("x-abort", "yes"),) if with_metadata else ())
        elif step == "raise":
            raise LookupError("by script")
        elif step == "look":
            script.notes.append((context.details(), tuple(context.trailing_metadata()), context.done()))
        elif step == "read":
            request = await context.read()
            script.notes.append("end" if request is grpc.aio.EOF else len(request))
        else:
            yield b"w" * arguments[0]


class Stage:
    """Handlers that play the script whose number the caller names."""

    def __init__(self) -> None:
        self.scripts: dict[int, Script] = {}

    def _script(self, context: Any) -> Script:
        return self.scripts[int(dict(context.invocation_metadata())["x-script"])]

    async def one(self, _request: Any, context: Any) -> bytes:
        script = self._script(context)
        async for _ in played(script, context):
            pass
        return b"a" * script.answer

    async def writing(self, _request: Any, context: Any) -> None:
        async for answer in played(self._script(context), context):
            await context.write(answer)

    async def yielding(self, _request: Any, context: Any) -> AsyncIterator[bytes]:
        async for answer in played(self._script(context), context):
            yield answer

    def prepare(self, server: grpc.aio.Server) -> None:
        """Registers both styles of streams."""
        handlers: dict[str, Any] = {
            "unary": grpc.unary_unary_rpc_method_handler(self.one),
            "into": grpc.stream_unary_rpc_method_handler(self.one),
            "out": grpc.unary_stream_rpc_method_handler(self.writing),
            "both": grpc.stream_stream_rpc_method_handler(self.writing),
            "out-generator": grpc.unary_stream_rpc_method_handler(self.yielding),
            "both-generator": grpc.stream_stream_rpc_method_handler(self.yielding),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("stage", handlers),))


def seen(answer: Answer, script: Script) -> dict[str, Any]:
    """What a caller makes of an answer. (grpcio puts an empty message before the error of a call with one answer.)"""
    head, last = dict(answer.head), dict(answer.trailers or answer.head)
    messages = []
    at = 0
    for body in answer.messages:
        packed = answer.data[at]
        at += 5 + len(body)
        messages.append(len(zlib.decompress(body, BITS[head["grpc-encoding"]]) if packed else body))
    if script.kind in ("unary", "into") and answer.status != "0":
        messages = []
    details = last.get("grpc-message", "")
    own_words = details.startswith(("Unexpected%20", "Unexpected <", "the handler failed"))
    return {
        "status": answer.status,
        "details": "(the server's)" if own_words else details,
        "messages": messages,
        "initial": head.get("x-initial"),
        "trailing": sorted(pair for pair in last.items() if pair[0].startswith(("x-trail", "x-abort"))),
        "notes": script.notes,
        "ended": answer.ended,
    }


async def outcome(stage: Stage, wire: Wire, script: Script, number: int) -> dict[str, Any]:
    """How one server plays a script."""
    own = stage.scripts[number] = replace(script, notes=[])
    name = f"/stage/{script.kind}" + ("-generator" if script.generator and script.kind in ("out", "both") else "")
    stream = wire.call(name, ended=False, more=[ACCEPTS, (b"x-script", b"%d" % number)])
    body = b"".join([message(b"r" * size) for size in script.requests])
    length = len(body) // script.pieces + 1
    for at in range(0, length * script.pieces, length):
        wire.send(stream, body[at : at + length], ended=at + length >= length * script.pieces)
        await asyncio.sleep(0)
    return seen(await wire.answer(stream), own)


class Passing(grpc.aio.ServerInterceptor):
    """Lets all calls pass."""

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        return await continuation(handler_call_details)


@pytest.mark.slow
@pytest.mark.parametrize("interceptors", [(), (Passing(),)])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_random_handlers(seed: int, interceptors: tuple[Passing, ...]) -> None:
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        stages = [Stage(), Stage()]
        wires: list[Wire] = []
        for transport, stage in zip(TRANSPORTS, stages, strict=True):
            options = {"interceptors": interceptors}
            host = hosted(transport, prepare=stage.prepare, server_options=options)
            server: Hosted = await stack.enter_async_context(host)
            wires.append(await stack.enter_async_context(wired(server.target, (INITIAL_WINDOW_SIZE, WIDE))))
        for first in range(0, SCRIPTS, AT_ONCE):
            scripts = {number: script_of(chance) for number in range(first, first + AT_ONCE)}
            of_each = [
                await asyncio.gather(*(outcome(stage, wire, script, number) for number, script in scripts.items()))
                for stage, wire in zip(stages, wires, strict=True)
            ]
            for (number, script), grpcio, fast in zip(scripts.items(), *of_each, strict=True):
                assert fast == grpcio, f"script {number} of seed {seed}: {script}"
