"""The settings of a port to which official RocketMQ 5 clients come: a store's, or a gateway's."""

from dataclasses import dataclass
from enum import StrEnum

from tandemmq.common.calling.addresses import check_address
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import setting


class TlsMode(StrEnum):
    """Whether the client port takes plain text, TLS or both."""

    AUTO = "auto"
    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


@dataclass(frozen=True, kw_only=True)
class ClientPortSettings(ServerSettings):
    """What such a port takes, and where its clients are sent."""

    tls_mode: TlsMode = setting(
        TlsMode.AUTO,
        "Ours: what the client port takes. DISABLED: plain text only. ENFORCING: TLS only. PERMISSIVE: both, told by "
        "the first byte of a connection. AUTO: ENFORCING with tlsServerCertPath; else PERMISSIVE, with a certificate "
        "that is made for it, which clients must not want to verify (grpcTransport=fast only).",
    )
    advertised_address: str | None = setting(
        None,
        "Ours: host:port that RocketMQ 5 clients are sent to. Empty: the address that each has dialled, which is right "
        "behind mapped ports and proxies too.",
        check=check_address,
    )
    max_delay_time_mills: int = setting(
        86_400_000,
        "RocketMQ 5 clients: a delivery time may be so far ahead, as RocketMQ's proxy has it. The store's own limit, "
        "timerMaxDelaySec, counts too.",
        unit="ms",
        low=1_000,
        high=10 * 366 * 86_400_000,
    )
    min_invisible_time_mills_for_recv: int = setting(
        1_000,
        "RocketMQ 5 clients: the shortest invisible time of a receive. (RocketMQ: 10 s.)",
        unit="ms",
        low=1_000,
        high=43_200_000,
    )

    def check(self) -> None:
        """What the port takes must be possible with the certificates that there are."""
        super().check()
        if self.tls_mode is TlsMode.ENFORCING and self.tls_server_cert_path is None:
            raise self.bad("tls_mode", "permissive or disabled, as tlsServerCertPath is not set")
        if self.tls_mode is TlsMode.DISABLED and self.tls_server_cert_path is not None:
            raise self.bad("tls_mode", "another mode, as tlsServerCertPath is set")
        if self.tls_mode is TlsMode.PERMISSIVE and self.tls_server_trust_cert_path is not None:
            raise self.bad("tls_mode", "enforcing, as tlsServerTrustCertPath is set")

    @property
    def tls_and_plain(self) -> bool:
        """See `ServerSettings.tls_and_plain`."""
        certified = self.tls_server_cert_path is not None
        return self.tls_mode is TlsMode.PERMISSIVE or (self.tls_mode is TlsMode.AUTO and not certified)
