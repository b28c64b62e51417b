"""The probe of container engines, as a process against real servers."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from tandemmq.common.serving.server import ServiceHost
from tandemmq.common.settings.server_settings import GrpcTransport, ServerSettings
from tests.certificates import Authority

_TLS = ("TANDEM_TLS_SERVER_CERT_PATH", "TANDEM_TLS_SERVER_KEY_PATH")


async def probe(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code, and what it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tandemmq.common.health_probe", *arguments),
        env={**os.environ, **environment},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    return process.returncode or 0, said.decode()


@pytest.mark.parametrize("transport", GrpcTransport)
async def test_tells_whether_a_service_serves(transport: GrpcTransport) -> None:
    host = ServiceHost(ServerSettings(grpc_transport=transport))
    await host.start()
    address = f"127.0.0.1:{host.port}"
    assert await probe(address) == (1, f"{address}: the server does not serve (status 2)\n")
    await host.serving()
    assert await probe(address) == (0, "")
    code, said = await probe(address, "no.such.Service")
    assert (code, "it knows no service no.such.Service" in said) == (1, True)
    await host.stop()
    code, said = await probe(address)
    assert (code, "refused" in said) == (1, True)


async def test_shows_the_services_own_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    own = authority.issue("node")
    settings = ServerSettings(
        tls_server_cert_path=own.certificate,
        tls_server_key_path=own.key,
        tls_server_trust_cert_path=authority.certificate,
    )
    host = ServiceHost(settings)
    await host.start()
    await host.serving()
    address = f"127.0.0.1:{host.port}"
    files = dict(zip(_TLS, map(str, (own.certificate, own.key)), strict=True))
    assert await probe(address, **files) == (0, "")
    assert (await probe(address))[0] == 1, "it speaks without TLS"
    await host.stop()


async def test_what_is_no_grpc_server_is_unhealthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        asking = asyncio.ensure_future(probe(address))
        peer, _ = await asyncio.to_thread(listener.accept)
        peer.recv(1024)
        peer.close()
        code, said = await asking
    assert (code, said.startswith(address)) == (1, True)
    assert (await probe())[0] == 2
