"""Dialling a master's HA port."""

import asyncio
import socket
import ssl
from typing import TypeVar

from tandemmq.common.calling.addresses import parse_host_port
from tandemmq.common.identity.tls import client_context
from tandemmq.common.timers import Timers, time_limit
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.slave.slave_errors import MasterUnreachable

Protocol = TypeVar("Protocol", bound=asyncio.BaseProtocol)


async def dial(settings: ReplicatorSettings, address: str, protocol: Protocol, timers: Timers) -> asyncio.Transport:
    """Connects `protocol` to `host:port` within haConnectTimeout. Raises MasterUnreachable, UnreadableCertificate."""
    host, port = parse_host_port(address)
    context = tls_context(settings)
    seconds = settings.ha_connect_timeout / 1000
    loop = asyncio.get_running_loop()
    try:
        async with time_limit(timers, seconds):
            transport, _ = await loop.create_connection(
                lambda: protocol, host, port, ssl=context, server_hostname=host if context else None
            )
    except TimeoutError:
        raise MasterUnreachable(f"the master at {address} does not answer within {seconds:g} seconds") from None
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise MasterUnreachable(f"cannot reach the master at {address}: {reason}") from error
    connected: socket.socket | None = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return transport


def local_port(transport: asyncio.Transport) -> int:
    """Our end's port, by which the master knows the connection."""
    name: tuple[str, int] = transport.get_extra_info("sockname")
    return name[1]


def tls_context(settings: ReplicatorSettings) -> ssl.SSLContext | None:
    """What a slave's TLS checks and shows; None without haTlsEnable. Raises UnreadableCertificate."""
    if not settings.ha_tls_enable:
        return None
    return client_context(settings, settings.ha_tls_trust_cert_path, "haTlsTrustCertPath")
