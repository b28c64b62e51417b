"""The settings that every TandemMQ service has, whatever it does."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from tandemmq.common.identity.credentials import check_user_name
from tandemmq.common.settings.service_settings import KNOWN_TO_A_SERVICE, SERVICE_SETTINGS
from tandemmq.common.settings.settings import Settings, setting


class LogFormat(StrEnum):
    """How log lines look."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class GrpcTransport(StrEnum):
    """Which implementation of gRPC serves a port."""

    FAST = "fast"
    GRPCIO = "grpcio"


@dataclass(frozen=True, kw_only=True)
class ServerSettings(Settings):
    """Addresses, TLS, metrics, log output and shutdown of one gRPC server.

    A service overrides `grpc_port` and `metrics_port` with its own defaults.
    """

    of_other_services: ClassVar[frozenset[str]] = KNOWN_TO_A_SERVICE

    meant: ClassVar[Mapping[str, str]] = {"port": "grpcPort is the port on which gRPC is served"}
    """What was meant by names that people give, and that no service has, or another one."""

    grpc_host: str = setting("127.0.0.1", "Address on which gRPC is served; 0.0.0.0 or [::] for all interfaces.")
    grpc_port: int = setting(0, "Port on which gRPC is served; 0 takes any free one.", low=0, high=65535)
    grpc_max_message_size: int = setting(
        8 << 20,
        "Largest gRPC message received or sent; must leave room for a whole batch.",
        unit="bytes",
        low=64 << 10,
        high=(1 << 31) - 1,
    )
    grpc_transport: GrpcTransport = setting(
        GrpcTransport.FAST, "What serves the port: FAST is our own (docs/grpc-transport.md), GRPCIO Google's library."
    )
    grpc_max_connection_idle_ms: int = setting(
        0, "Connections without a call for this long are closed; 0 keeps them.", unit="ms", low=0
    )
    grpc_keepalive_time_ms: int = setting(
        60_000, "A connection that was silent this long is asked whether it lives; 0 never asks.", unit="ms", low=0
    )
    grpc_keepalive_timeout_ms: int = setting(
        20_000, "And is closed when it answers nothing for this long.", unit="ms", low=1
    )
    grpc_max_concurrent_streams: int = setting(
        10_000, "Calls in flight on one connection; clients hold further ones back.", low=1, high=(1 << 31) - 1
    )
    grpc_max_connections: int = setting(
        10_000, "Connections at a time; more are turned away (grpcTransport=fast only).", low=1
    )
    grpc_memory_budget: int = setting(
        0,
        "What a port holds for all its callers together: answers not taken, requests not complete or not handled; 0: a "
        "32nd of the memory that the machine or the container has, at least 64 MiB (grpcTransport=fast only).",
        unit="bytes",
        low=0,
    )
    grpc_slow_peer_timeout_ms: int = setting(
        60_000,
        "Callers who take nothing of an answer or go on with no request for this long are told RESOURCE_EXHAUSTED, or "
        "their connection is closed; sooner while the budget is short (grpcTransport=fast only).",
        unit="ms",
        low=1,
    )
    tls_server_cert_path: Path | None = setting(None, "Certificate chain (PEM) of the server; with the key: TLS is on.")
    tls_server_key_path: Path | None = setting(None, "Private key (PEM) of the server.")
    tls_server_trust_cert_path: Path | None = setting(
        None, "Certificates (PEM) of those who sign clients; when set, clients must show a certificate (mTLS)."
    )
    access_file: Path | None = setting(
        None, "Users, roles and what they may do (docs/security.md). Empty: everybody may do everything."
    )
    access_open: bool = setting(
        False, "Without an accessFile, let admin and its console be reached from other machines all the same."
    )
    service_user: str | None = setting(
        None,
        "Who this service says it is when it calls others; a user of their accessFile. Empty: it does not say.",
        check=check_user_name,
    )
    service_secret_file: Path | None = setting(
        None, "File with that user's secret, and nothing else. Read again when it changes."
    )
    metrics_enable: bool = setting(True, "Serve Prometheus metrics over HTTP.")
    metrics_host: str = setting("127.0.0.1", "Address of the metrics endpoint.")
    metrics_port: int = setting(0, "Port of the metrics endpoint (/metrics); 0 takes any free one.", low=0, high=65535)
    shutdown_grace_ms: int = setting(
        5000, "How long calls in flight may go on after SIGTERM before they are cancelled.", unit="ms", low=0
    )
    log_level: LogLevel = setting(LogLevel.INFO, "The least important lines that are written.")
    log_format: LogFormat = setting(LogFormat.AUTO, "TEXT for people, JSON for machines, AUTO: TEXT on a terminal.")

    @classmethod
    def hint(cls, name: str) -> str | None:
        """See `Settings.hint`: what was meant, or whose setting it is."""
        if name in cls.meant:
            return cls.meant[name]
        owners = sorted(service for service, names in SERVICE_SETTINGS.items() if name in names)
        return f"it is a setting of: {', '.join(owners)}" if owners else None

    def check(self) -> None:
        """TLS is certificate and key together; client certificates need TLS."""
        super().check()
        if (self.tls_server_cert_path is None) != (self.tls_server_key_path is None):
            missing = "tls_server_key_path" if self.tls_server_key_path is None else "tls_server_cert_path"
            raise self.bad(missing, "certificate and key together, or neither")
        if self.tls_server_trust_cert_path and not self.tls_server_cert_path:
            raise self.bad("tls_server_cert_path", "a certificate, as tlsServerTrustCertPath is set")
        if (self.service_user is None) != (self.service_secret_file is None):
            missing = "service_secret_file" if self.service_secret_file is None else "service_user"
            raise self.bad(missing, "user and secret file together, or neither")

    @property
    def tls_and_plain(self) -> bool:
        """Whether the port takes both, by the first byte of each connection (grpcTransport=fast only)."""
        return False

    @property
    def grpc_address(self) -> str:
        """`host:port` as gRPC wants it."""
        return f"{self.grpc_host}:{self.grpc_port}"
