"""The settings of the admin service."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.admin.cluster.node_addresses import NodeAddresses, check_nodes, parse_nodes
from tandemmq.common.calling.addresses import is_loopback
from tandemmq.common.settings import default_ports
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import setting
from tandemmq.common.settings.settings_profiles import Profiles, load_profiled


@dataclass(frozen=True, kw_only=True)
class AdminSettings(ServerSettings):
    """All settings of the admin service."""

    admin_nodes: str = setting(
        "local=127.0.0.1",
        "Ours: the nodes to look after, separated by commas: NAME=HOST, or NAME=HOST:PORT of the store and, each where "
        "it is not HOST with the usual port, ;metasync=HOST:PORT ;replicator=HOST:PORT. ;files=DIR says where the "
        "node's directory is on admin's machine, for jobs.",
        check=check_nodes,
    )
    broker_cluster_name: str = setting("DefaultCluster", "Cluster that admin looks after; a label of the metrics.")
    grpc_port: int = setting(
        default_ports.ADMIN, "Port on which gRPC is served; 0 takes any free one.", low=0, high=65535
    )
    metrics_port: int = setting(
        default_ports.ADMIN_METRICS, "Port of the metrics endpoint (/metrics); 0 takes any free one.", low=0, high=65535
    )
    console_enable: bool = setting(True, "Ours: serve the web console.")
    console_host: str = setting("127.0.0.1", "Ours: address of the web console.")
    console_port: int = setting(
        default_ports.CONSOLE, "Ours: port of the web console; 0 takes any free one.", low=0, high=65535
    )
    console_names: tuple[str, ...] = setting(
        (),
        "Ours: names under which browsers reach the console, beside consoleHost, localhost and addresses: a page of "
        "another site cannot use the console in a visitor's name.",
    )
    console_session_minutes: int = setting(
        480, "Ours: a session of the console ends after this long without a click.", unit="minutes", low=1
    )
    store_tls_trust_cert_path: Path | None = setting(
        None, "Ours: certificates (PEM) of those who sign the stores'; when set, they are spoken to with TLS."
    )
    replicator_tls_trust_cert_path: Path | None = setting(None, "Ours: the same for the replicators.")
    metasync_tls_trust_cert_path: Path | None = setting(None, "Ours: the same for the metasyncs.")
    admin_timeout: int = setting(
        3_000, "Ours: how long another service may take for an answer, or is told as silent.", unit="ms", low=10
    )
    admin_collect_interval: int = setting(
        15_000, "Ours: how often lag and state are collected for the metrics.", unit="ms", low=100
    )
    admin_directory: Path = setting(
        Path("~/tandem-admin").expanduser(),
        "Ours: where the log of actions (actions.log) and the reports of jobs are kept.",
    )
    jobs_kept: int = setting(50, "Ours: this many ended jobs are remembered.", low=1)

    def check(self) -> None:
        """Whoever reaches an admin without an accessFile may do everything: so only this machine reaches it."""
        super().check()
        for attribute, host in (("grpc_host", self.grpc_host), ("console_host", self.console_host)):
            if not (self.access_file or self.access_open or is_loopback(host)):
                raise self.bad(attribute, "an address of this machine alone, unless accessFile or accessOpen is set")

    @property
    def nodes(self) -> tuple[NodeAddresses, ...]:
        """The nodes, in their order."""
        return parse_nodes(self.admin_nodes)


PROFILES: Profiles = {"server": {}, "embedded": {"admin_directory": Path("data/admin")}}
"""Sets of defaults by name, as the store has them."""


def load_settings(
    file: Path | str | None = None,
    profile: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> AdminSettings:
    """The settings: profile < file < environment < overrides.

    Raises:
        SettingsError: an unknown name, a bad value, or an unreadable file.
    """
    return load_profiled(AdminSettings, PROFILES, file, profile, environment, overrides)
