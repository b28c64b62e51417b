"""Probe: a service of raw bytes that shows what a gRPC server does, hosted on grpcio or on our own transport.

As a process it prints `READY <port>` and serves until SIGTERM::

    python -m tests.grpc_probe --transport fast --address 127.0.0.1:0
"""

import argparse
import asyncio
import json
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import uvloop

SERVICE = "tandemmq.test.Probe"
TRANSPORTS = ("grpcio", "fast")
MESSAGE_LIMIT = 8 << 20
"""Longest message that a probe server receives unless told otherwise, bytes."""
DETAILS = "said so é%"
FAILURE_METADATA = (("x-failed", "yes"), ("x-failed-bin", b"\x00\x01\xff"))
DRIP_SIZE = 1024


class Probe:
    """The servicer. Wait and Drip go on until the caller, a deadline or the server ends them."""

    def __init__(self) -> None:
        self.active = 0
        """Calls (but Count) that have begun and not ended."""
        self.cancelled = 0
        """Calls that were cancelled while their handlers ran."""
        self.dripped = 0
        """Answers of all Drip calls that the server took."""

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.active += 1
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):  # a generator that waits in its yield is closed
            self.cancelled += 1
            raise
        finally:
            self.active -= 1

    async def echo(self, request: bytes, _context: Any) -> bytes:
        """Answers the request."""
        with self._counted():
            return request

    async def collect(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        """Answers all requests joined with `|`."""
        with self._counted():
            return b"|".join([request async for request in requests])

    async def repeat(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        """`N:SIZE` -> N answers of SIZE bytes."""
        count, _, size = request.partition(b":")
        answer = b"r" * int(size or 0)
        with self._counted():
            for _ in range(int(count)):
                yield answer

    async def converse(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        """Answers each request in upper case."""
        with self._counted():
            async for request in requests:
                yield request.upper()

    async def wait(self, request: bytes, _context: Any) -> bytes:
        """Answers never: for cancellations, deadlines and the end of a server."""
        with self._counted():
            await asyncio.Event().wait()
        return request

    async def fail(self, request: bytes, context: Any) -> bytes:
        """Ends with the status that the request names (`NOT_FOUND`), DETAILS and FAILURE_METADATA."""
        with self._counted():
            await context.abort(grpc.StatusCode[request.decode()], DETAILS, FAILURE_METADATA)
        return b""

    async def crash(self, _request: bytes, _context: Any) -> bytes:
        """Raises what the caller must not get to see."""
        with self._counted():
            raise KeyError("secret")

    async def mirror(self, _request: bytes, context: Any) -> bytes:
        """Answers `peer()`; the caller's metadata with keys that start with `x-` come back in the trailers."""
        with self._counted():
            await context.send_initial_metadata((("x-initial", "first"), ("x-initial-bin", b"\x00\xfe")))
            own = [(key, value) for key, value in context.invocation_metadata() or () if key.startswith("x-")]
            context.set_trailing_metadata(tuple(own))
            return str(context.peer()).encode()

    async def drip(self, _request: bytes, _context: Any) -> AsyncIterator[bytes]:
        """Answers of DRIP_SIZE bytes until cancelled."""
        answer = b"d" * DRIP_SIZE
        with self._counted():
            while True:
                yield answer
                self.dripped += 1

    async def count(self, _request: bytes, _context: Any) -> bytes:
        """The counters as JSON."""
        counters = {"active": self.active, "cancelled": self.cancelled, "dripped": self.dripped}
        return json.dumps(counters).encode()


def add_probe(probe: Probe, server: Any) -> None:
    """Registers the probe as generated code would."""
    one, into, out, both = (
        grpc.unary_unary_rpc_method_handler,
        grpc.stream_unary_rpc_method_handler,
        grpc.unary_stream_rpc_method_handler,
        grpc.stream_stream_rpc_method_handler,
    )
    kinds: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "Echo": (one, probe.echo),
        "Collect": (into, probe.collect),
        "Repeat": (out, probe.repeat),
        "Converse": (both, probe.converse),
        "Wait": (one, probe.wait),
        "Fail": (one, probe.fail),
        "Crash": (one, probe.crash),
        "Mirror": (one, probe.mirror),
        "Drip": (out, probe.drip),
        "Count": (one, probe.count),
    }
    handlers = {name: kind(behavior) for name, (kind, behavior) in kinds.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_registered_method_handlers(SERVICE, handlers)


def make_server(
    transport: str,
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    *,
    receive_limit: int = MESSAGE_LIMIT,
    send_limit: int | None = None,
    compression: grpc.Compression | None = None,
    maximum_concurrent_rpcs: int | None = None,
    reuse_port: bool = False,
    memory_budget: int | None = None,
) -> grpc.aio.Server:
    """A server of either kind, made alike. Limits are in bytes. Make it inside a running event loop.

    grpcio has no `memory_budget`.
    """
    if transport == "grpcio":
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", receive_limit),
            ("grpc.max_send_message_length", -1 if send_limit is None else send_limit),
            ("grpc.so_reuseport", int(reuse_port)),
        ]
        return grpc.aio.server(
            interceptors=list(interceptors),
            options=options,
            compression=compression,
            maximum_concurrent_rpcs=maximum_concurrent_rpcs,
        )
    from tandemmq.common import grpc_transport as fast

    limits: dict[str, int] = {"max_receive_message_length": receive_limit}
    if memory_budget is not None:
        limits["memory_budget"] = memory_budget
    if send_limit is not None:
        limits["max_send_message_length"] = send_limit
    made: grpc.aio.Server = fast.server(
        interceptors,
        limits=fast.Limits(**limits),
        compression=compression,
        maximum_concurrent_rpcs=maximum_concurrent_rpcs,
        reuse_port=reuse_port,
    )
    return made


def server_tls(transport: str, certificate: Path, key: Path, trust: Path | None = None) -> Any:
    """What `add_secure_port` takes; with `trust` (PEM of who signs clients) callers must show a certificate."""
    if transport == "grpcio":
        return grpc.ssl_server_credentials(
            [(key.read_bytes(), certificate.read_bytes())],
            root_certificates=None if trust is None else trust.read_bytes(),
            require_client_auth=trust is not None,
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    if trust is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trust)
    return context


async def _serve(options: argparse.Namespace) -> None:
    server = make_server(options.transport, receive_limit=options.message_limit, reuse_port=options.reuse_port)
    add_probe(Probe(), server)
    if options.tls_cert is None:
        port = server.add_insecure_port(options.address)
    else:
        tls = server_tls(options.transport, options.tls_cert, options.tls_key, options.tls_trust)
        port = server.add_secure_port(options.address, tls)
    await server.start()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    sys.stdout.write(f"READY {port}\n")
    sys.stdout.flush()
    await stopped.wait()
    await server.stop(options.grace)


def main() -> None:
    """The probe as a process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", choices=TRANSPORTS, default="fast")
    parser.add_argument("--address", default="127.0.0.1:0")
    parser.add_argument("--tls-cert", type=Path, help="certificate chain (PEM); with --tls-key: TLS")
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--tls-trust", type=Path, help="who signs clients (PEM): they must show certificates")
    parser.add_argument("--message-limit", type=int, default=MESSAGE_LIMIT, help="longest request message, bytes")
    parser.add_argument("--reuse-port", action="store_true")
    parser.add_argument("--grace", type=float, default=0.5, help="seconds for calls in flight at SIGTERM")
    uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
