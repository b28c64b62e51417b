"""The gRPC server that the settings choose: our own transport, or grpcio's. The same servicers run on either."""

from collections.abc import Callable

import grpc

from tandemmq.common import grpc_transport
from tandemmq.common.identity.made_certificate import FoundContext
from tandemmq.common.identity.tls import server_credentials, tls_context
from tandemmq.common.processes.memory import usable_memory
from tandemmq.common.settings.server_settings import GrpcTransport, ServerSettings

_GRPCIO_PENDING = 100_000
"""Calls that wait for grpcio to begin them: it cancels more, and by default that is a thousand."""
_BUDGET_SHARE = 32
_LEAST_BUDGET = 64 << 20
_PENDING_MESSAGES = 8
"""Messages of the largest size that a connection may hold in each direction."""


def make_server(settings: ServerSettings) -> grpc.aio.Server:
    """A server that listens nowhere yet. Make it inside a running event loop."""
    if settings.grpc_transport is GrpcTransport.GRPCIO:
        return _grpcio_server(settings)
    return grpc_transport.server(limits=_limits(settings))


def _grpcio_server(settings: ServerSettings) -> grpc.aio.Server:
    """grpcio's, with methods found by their names only.

    For each method that is registered besides, grpcio keeps a request waiting, and looks at all of these futures for
    each call: with fifty methods at a port that is a third of the call's time. Generated code names every method twice.
    """
    server = grpc.aio.server(options=_grpcio_options(settings))
    server.add_registered_method_handlers = _found_by_name  # type: ignore[method-assign]
    return server


def _found_by_name(service_name: str, method_handlers: object) -> None:
    """`add_generic_rpc_handlers` has them."""


def bind(server: grpc.aio.Server, settings: ServerSettings) -> int:
    """Binds `settings.grpc_address`, with TLS if the settings say so; gives the port.

    Raises RuntimeError when the address cannot be had, UnreadableCertificate.
    """
    address = settings.grpc_address
    if isinstance(server, grpc_transport.Server):
        if settings.tls_and_plain:
            return server.add_mixed_port(address, FoundContext(settings).get)
        context = tls_context(settings)
        return server.add_insecure_port(address) if context is None else server.add_secure_port(address, context)
    credentials = server_credentials(settings)
    return server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)


def memory_budget(settings: ServerSettings, memory: Callable[[], int] = usable_memory) -> int:
    """Bytes that a port may hold for all its callers; at least four messages of the largest size."""
    given = settings.grpc_memory_budget or max(memory() // _BUDGET_SHARE, _LEAST_BUDGET)
    return max(given, 4 * settings.grpc_max_message_size)


def load_of(server: grpc.aio.Server) -> grpc_transport.Load | None:
    """What a server holds for its callers; None for grpcio's, which does not tell."""
    return server.load if isinstance(server, grpc_transport.Server) else None


def _limits(settings: ServerSettings) -> grpc_transport.Limits:
    size = settings.grpc_max_message_size
    budget = max(grpc_transport.Limits.max_buffered, _PENDING_MESSAGES * size)
    return grpc_transport.Limits(
        max_receive_message_length=size,
        max_send_message_length=size,
        max_buffered=budget,
        max_pending=budget,
        max_concurrent_streams=settings.grpc_max_concurrent_streams,
        max_connections=settings.grpc_max_connections,
        memory_budget=memory_budget(settings),
        slow_peer_seconds=settings.grpc_slow_peer_timeout_ms / 1000,
        idle_seconds=settings.grpc_max_connection_idle_ms / 1000,
        keepalive_seconds=settings.grpc_keepalive_time_ms / 1000,
        keepalive_timeout_seconds=settings.grpc_keepalive_timeout_ms / 1000,
    )


def _grpcio_options(settings: ServerSettings) -> list[tuple[str, int]]:
    """Channel arguments of the server (names from grpc's channel_arg_names)."""
    options = [
        ("grpc.max_receive_message_length", settings.grpc_max_message_size),
        ("grpc.max_send_message_length", settings.grpc_max_message_size),
        ("grpc.max_concurrent_streams", settings.grpc_max_concurrent_streams),
        ("grpc.server.max_pending_requests", _GRPCIO_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", _GRPCIO_PENDING),
        ("grpc.http2.max_ping_strikes", 0),  # some clients ping without calls
        ("grpc.so_reuseport", 0),  # a second server on the port must fail, not share it
    ]
    if settings.grpc_max_connection_idle_ms:
        options.append(("grpc.max_connection_idle_ms", settings.grpc_max_connection_idle_ms))
    if settings.grpc_keepalive_time_ms:
        options.append(("grpc.keepalive_time_ms", settings.grpc_keepalive_time_ms))
        options.append(("grpc.keepalive_timeout_ms", settings.grpc_keepalive_timeout_ms))
    return options
