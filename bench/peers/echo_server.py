"""A gRPC server in Python that answers with constant bytes and does nothing else: what its library costs.

    python -m bench.peers.echo_server fast|aio|sync PORT SMALL LARGE

SMALL and LARGE are lengths of answers. The methods, all with raw bytes, are the same as in load/grpc_echo.c:

    Get     unary, a small answer       Large   unary, a large answer      Upload  client stream, a small answer
    Each    a small answer to every request of a stream                    Stream  large answers until cancelled
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import grpc
import uvloop

SERVICE = "bench.Echo"
_SYNC_THREADS = 4
"""More make grpcio's synchronous server slower."""
_PENDING = 100_000
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # By default grpcio cancels, by chance, calls that come while more than 1,000 wait; 8 x 256 in flight is more.
    ("grpc.server.max_pending_requests", _PENDING),
    ("grpc.server.max_pending_requests_hard_limit", _PENDING),
]


def _handlers(get: Any, large: Any, upload: Any, each: Any, stream: Any) -> grpc.GenericRpcHandler:
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Get": grpc.unary_unary_rpc_method_handler(get),
        "Large": grpc.unary_unary_rpc_method_handler(large),
        "Upload": grpc.stream_unary_rpc_method_handler(upload),
        "Each": grpc.stream_stream_rpc_method_handler(each),
        "Stream": grpc.stream_stream_rpc_method_handler(stream),
    }
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


def _async_handlers(small_answer: bytes, large_answer: bytes) -> grpc.GenericRpcHandler:
    async def get(request: bytes, context: object) -> bytes:
        return small_answer

    async def large(request: bytes, context: object) -> bytes:
        return large_answer

    async def upload(requests: AsyncIterator[bytes], context: object) -> bytes:
        async for _ in requests:
            pass
        return small_answer

    async def each(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        async for _ in requests:
            yield small_answer

    async def stream(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        while True:
            yield large_answer

    return _handlers(get, large, upload, each, stream)


def _sync_handlers(small_answer: bytes, large_answer: bytes) -> grpc.GenericRpcHandler:
    def get(request: bytes, context: object) -> bytes:
        return small_answer

    def large(request: bytes, context: object) -> bytes:
        return large_answer

    def upload(requests: Iterator[bytes], context: object) -> bytes:
        for _ in requests:
            pass
        return small_answer

    def each(requests: Iterator[bytes], context: object) -> Iterator[bytes]:
        for _ in requests:
            yield small_answer

    def stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        while context.is_active():
            yield large_answer

    return _handlers(get, large, upload, each, stream)


def _fast() -> grpc.aio.Server:
    """Our own, loaded only here: the others are to be measured without it."""
    try:
        made: grpc.aio.Server = import_module("tandemmq.common.grpc_transport").server()
    except (ImportError, AttributeError) as error:
        sys.exit(f"there is no fast transport: {error}")
    return made


async def _serve(kind: str, address: str, answers: tuple[bytes, bytes]) -> None:
    server = _fast() if kind == "fast" else grpc.aio.server(options=_OPTIONS)
    server.add_generic_rpc_handlers((_async_handlers(*answers),))
    server.add_insecure_port(address)
    await server.start()
    await asyncio.Event().wait()


def _serve_sync(address: str, answers: tuple[bytes, bytes]) -> None:
    server = grpc.server(ThreadPoolExecutor(_SYNC_THREADS), options=_OPTIONS)
    server.add_generic_rpc_handlers((_sync_handlers(*answers),))
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


def main() -> None:
    """Serve until killed."""
    kind, port, small, large = sys.argv[1], *map(int, sys.argv[2:])
    address, answers = f"127.0.0.1:{port}", (bytes(small), bytes(large))
    if kind == "sync":
        _serve_sync(address, answers)
    else:
        uvloop.run(_serve(kind, address, answers))


if __name__ == "__main__":
    main()
