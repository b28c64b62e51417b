"""The metrics of a node's services, as their endpoints show them: for the support bundle, where they can be reached."""

import asyncio
from collections.abc import Mapping

from tandemmq.common.calling.addresses import is_loopback
from tandemmq.common.timers import Timers, time_limit

_PAGE_MAX = 16 << 20
_EVERYWHERE = ("0.0.0.0", "::", "[::]")


class NoPage(Exception):
    """There is no page; the text says why."""


def metrics_address(service_address: str, settings: Mapping[str, str]) -> tuple[str, int]:
    """Where a service shows its metrics: host and port. `settings`: by name. Raises NoPage."""
    if settings.get("metricsEnable", "true").lower() != "true":
        raise NoPage("metricsEnable is false")
    port = int(settings.get("metricsPort", "0"))
    if not port:
        raise NoPage("metricsPort is 0: which port it got, only its log says")
    host = service_address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    own = settings.get("metricsHost", host)
    if own in _EVERYWHERE:
        return host, port
    if is_loopback(own) and not is_loopback(host):
        raise NoPage(f"it is shown on the service's own machine only (metricsHost={own})")
    return own.removeprefix("[").removesuffix("]"), port


async def read_page(host: str, port: int, seconds: float, timers: Timers) -> bytes:
    """`/metrics` of a server. Raises NoPage."""
    try:
        async with time_limit(timers, seconds):
            return await _read(host, port)
    except (OSError, TimeoutError) as error:
        raise NoPage(f"no answer from {host}:{port}: {str(error) or 'not in time'}") from None


async def _read(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET /metrics HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())  # 1.0: no chunks come back
        data = b""
        while part := await reader.read(64 << 10):
            data += part
            if len(data) > _PAGE_MAX:
                raise NoPage(f"more than {_PAGE_MAX:,} bytes")
    finally:
        writer.close()
    head, _, body = data.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if " 200 " not in f"{status} ":
        raise NoPage(f"{host}:{port} answers {status}")
    return body
