"""Calling other services of ours: with which TLS, with which certificate of our own, and as whom."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import grpc

from tandemmq.common.grpc_transport import Limits, channel
from tandemmq.common.identity.file_credentials import FileCredentials
from tandemmq.common.identity.tls import client_context
from tandemmq.common.settings.server_settings import ServerSettings

LIMITS = Limits(keepalive_seconds=10.0, keepalive_timeout_seconds=10.0, handshake_seconds=3.0)
"""Of channels, unless a service has reasons for others."""


class Dialer:
    """Makes channels to one kind of service. Make it at the start of a service: it reads the files that it needs."""

    def __init__(
        self,
        settings: ServerSettings,
        trusted: Path | None,
        setting: str,
        *,
        tls: bool | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        """`trusted`: who signs certificates there, from the setting of that name.

        `tls`: whether to speak TLS; None: if `trusted` is given. Without that the machine's own certificates count.

        To who asks for a certificate, `tlsServerCertPath` of our own `settings` is shown. `serviceUser` of them is who
        we say we are; without it calls go without credentials.

        Raises:
            UnreadableCertificate, UnreadableSecret, BadUserName: as they say.
        """
        speaks_tls = trusted is not None if tls is None else tls
        self._tls = client_context(settings, trusted, setting) if speaks_tls else None
        self._credentials = _credentials(settings)
        self._limits = limits

    def channel(self, address: str) -> grpc.aio.Channel:
        """A channel to the gRPC server at `host:port`; it connects when it is used. Close it at the end.

        To be called inside the running event loop. Its bidirectional calls are good for
        `tandemmq.common.grpc_transport.duplex`. Raises ValueError for what is no address.
        """
        own = None if self._credentials is None else self._credentials.metadata
        return channel(address, tls=self._tls, limits=self._limits, metadata=own)

    def attempts(
        self, address: str, step: Callable[[grpc.aio.Channel], AsyncGenerator[None, None]]
    ) -> Callable[[], AsyncGenerator[None, None]]:
        """What `FollowedPeer.follow` is to make: each attempt is the step over a channel of its own."""

        async def attempt() -> AsyncGenerator[None, None]:
            async with self.channel(address) as opened, aclosing(step(opened)) as successes:
                async for _ in successes:
                    yield

        return attempt


def child_environment(settings: ServerSettings, trusted: Path | None) -> dict[str, str]:
    """Variables by which a `tandem` command that we start calls as we do; `trusted` as for a `Dialer`.

    A context of the user whose process we are is nothing to it.
    """
    own = (settings.tls_server_cert_path, settings.tls_server_key_path) if trusted is not None else (None, None)
    found = {
        "TANDEM_USER": settings.service_user,
        "TANDEM_SECRET_FILE": settings.service_secret_file,
        "TANDEM_TLS_CA": trusted,
        "TANDEM_TLS_CERT": own[0],
        "TANDEM_TLS_KEY": own[1],
    }
    return {"TANDEM_CONTEXT": ""} | {name: str(value) for name, value in found.items() if value is not None}


def _credentials(settings: ServerSettings) -> FileCredentials | None:
    user, path = settings.service_user, settings.service_secret_file
    return None if user is None or path is None else FileCredentials(user, path, "serviceSecretFile")
