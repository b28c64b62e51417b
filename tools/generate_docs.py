"""Writes docs/settings.md, docs/metrics.md and services/common/settings/setting_names.py from the code.

With ``--check`` it only says whether they are stale.
"""

import asyncio
import dataclasses
import os
import socket
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.core import Metric

from tandemmq.admin.history.collected import Collected, Lag
from tandemmq.admin.metrics import AdminMetrics
from tandemmq.admin.settings import AdminSettings
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.grpc_transport import channel
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import Described
from tandemmq.common.wire.remoting.registration import BrokerIdentity
from tandemmq.gateway.metrics import GatewayMetrics
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.gateway.settings import GatewaySettings
from tandemmq.metasync.channels import master_dialer
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.master_tables import ServiceLink
from tandemmq.metasync.metrics import MetasyncMetrics
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.settings import MetasyncSettings
from tandemmq.metasync.standing import NodeRole, Standing
from tandemmq.naming.metrics import NamingMetrics
from tandemmq.naming.settings import NamingSettings
from tandemmq.replicator.metrics import MasterNow, Now, ReplicaNow, ReplicatorMetrics, SlaveNow
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.broker.hook_calls import HookCounts
from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.delays.levels import LevelState
from tandemmq.store.delivery.figures.figures import GroupFigures
from tandemmq.store.delivery.figures.waiting_figures import WaitingFigures
from tandemmq.store.delivery.members.sessions import Member
from tandemmq.store.metrics import Gauges, StoreMetrics
from tandemmq.store.settings import PROFILES, StoreSettings, load_settings

REPOSITORY = Path(__file__).resolve().parent.parent

_SERVICES: dict[str, type[ServerSettings]] = {
    "store": StoreSettings,
    "replicator": ReplicatorSettings,
    "gateway": GatewaySettings,
    "metasync": MetasyncSettings,
    "admin": AdminSettings,
    "names": NamingSettings,
}
_OWN_PORTS = ("grpcPort", "metricsPort")
"""What every service has, each with a default of its own."""

_SETTINGS_HEAD = """# Settings

Names are RocketMQ's where RocketMQ has the setting. Each can be given as a line `name=value` in a properties file
(`tandem serve store --config broker.conf`), as the environment variable in the second column, or on the command line
(`tandem serve store --set name=value`); the later of these wins. `tandem settings --service SERVICE` shows what is in
force and where each value comes from; services are `store`, `replicator`, `metasync`, `admin`, `gateway`, `names`.

One file, and one environment, serve all services of a node: each takes the settings it has and passes over those of the
others. A name that no service knows is an error that names the nearest known one. Ports and other settings that every
service has (the last table) hold for all who read the file: leave `grpcPort` and `metricsPort` out of a shared one.
Where the default of one service is another, the setting is in that service's table too.

Without a file the profile `embedded` gives the defaults, with one the profile `server`, which is RocketMQ's own.
"""
_SETTINGS_TABLE = "| name | environment | default | allowed | effect |\n|---|---|---|---|---|\n"
_METRICS_HEAD = """# Metrics

Served under `/metrics` (`metricsPort`), in Prometheus' text format. Names beginning with `rocketmq_` are those of
RocketMQ 5, with its labels; `tandem_` are ours. All of these have the labels `cluster`, `node_type`, `node_id`.
`process_` and `python_`, in the last table, are about the process and have none of them. Dashboards and alerts over
all of this: [monitoring.md](monitoring.md).
"""
_METRICS_TABLE = "| metric | type | labels | meaning |\n|---|---|---|---|\n"


def settings_page() -> str:
    """The page of all settings."""
    shared = [one for one in ServerSettings().describe() if one.name not in _OWN_PORTS]
    sections = []
    for service, kind in _SERVICES.items():
        usual = {one.name: one.default for one in shared}
        rows = [one for one in _defaults(kind) if one.default != usual.get(one.name)]
        sections.append(f"\n## {service}\n\n" + _SETTINGS_TABLE + _rows(rows))
    sections.append("\n## Every service\n\n" + _SETTINGS_TABLE + _rows(shared))
    embedded = [f"| `{_known_name(name)}` | `{value}` |" for name, value in PROFILES["embedded"].items()]
    ignored = [f"| `{name}` | {_cell(why)} |" for name, why in sorted(StoreSettings.without_effect.items())]
    return (
        _SETTINGS_HEAD
        + "".join(sections)
        + "\n## What the profile `embedded` changes\n\n| name | default |\n|---|---|\n"
        + "\n".join(embedded)
        + "\n\n## Accepted without effect\n\nSettings of RocketMQ that an existing broker.conf may hold.\n\n"
        + "| name | why |\n|---|---|\n"
        + "\n".join(ignored)
        + "\n"
    )


def _defaults(kind: type[ServerSettings]) -> list[Described]:
    """The settings of a service as the profile `server` has them."""
    return load_settings(profile="server", environment={}).describe() if kind is StoreSettings else kind().describe()


def _rows(settings: Iterable[Described]) -> str:
    host = socket.gethostname()
    rows = []
    for one in settings:
        value = one.default.replace(str(Path.home()), "~")
        default = "*host name*" if value == host else f"`{value}`" if value else "*none*"
        rows.append(f"| `{one.name}` | `{one.environment}` | {default} | {_cell(one.allowed)} | {_cell(one.doc)} |\n")
    return "".join(rows)


def _known_name(attribute: str) -> str:
    return next(one.name for one in load_settings(environment={}).describe() if one.attribute == attribute)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def metrics_page() -> str:
    """The page of all metrics."""
    services = {
        "store, port 9101": _of_the_store(),
        "replicator, port 9102": _of_the_replicator(),
        "metasync, port 9103": asyncio.run(_of_metasync()),
        "admin, port 9104": _of_admin(),
        "gateway, port 9105": _of_the_gateway(),
        "names, port 9106": _of_the_names(),
        "Every service": _of_every_service(),
    }
    sections = [f"\n## {title}\n\n{_METRICS_TABLE}{_metric_rows(families)}" for title, families in services.items()]
    return _METRICS_HEAD + "".join(sections)


def _metric_rows(families: list[Metric]) -> str:
    rows = []
    for family in sorted(families, key=lambda one: one.name):
        labels = {label for sample in family.samples for label in sample.labels}
        own = ", ".join(f"`{label}`" for label in sorted(labels - {"cluster", "node_type", "node_id", "le"}))
        name = family.name + ("_total" if family.type == "counter" else "")
        rows.append(f"| `{name}` | {family.type} | {own} | {_cell(family.documentation)} |\n")
    return "".join(rows)


def _of_the_store() -> list[Metric]:
    metrics = StoreMetrics("cluster", "node")
    metrics.sent("topic", 1, 1)
    metrics.pulled("topic", "group", 1, 1)
    metrics.called("Send", "SUCCESS", 0.0)
    metrics.failed("flush")
    metrics.damaged("rot", 1)
    counts = {("group", "topic"): 1}
    metrics.watch_groups(lambda: [GroupFigures("group", "topic")], lambda: counts, lambda: counts, lambda: counts)
    metrics.transaction_ended("topic", "commit", 0.0)
    members = [Member("consumer", "group"), Member("producer", "topic", producer=True)]
    metrics.watch_members(lambda: members)
    waiting = WaitingFigures(levels=(LevelState(1, 1, 0),), halves=(("topic", 1, 0),))
    metrics.watch_waiting(lambda: waiting, DelayCounts(timers_in=Counter(topic=1)))
    metrics.watch_hooks(lambda: [("hook", "before_send", HookCounts())])
    metrics.watch(lambda: Gauges._make(0 for _ in Gauges._fields)._replace(audit=None))
    return list(metrics.collect())


def _of_the_replicator() -> list[Metric]:
    metrics = ReplicatorMetrics("cluster", "node")
    metrics.closed("ended")
    metrics.follower.ends["fork"] = 1
    replica = ReplicaNow._make(0 for _ in ReplicaNow._fields)
    master, slave = MasterNow([replica], 0, 0, True), SlaveNow("following", 0, 0, 0.0)
    metrics.watch(lambda: Now(True, True, "SYNC_MASTER", master, slave))
    return list(metrics.collect())


def _of_admin() -> list[Metric]:
    metrics = AdminMetrics("cluster")
    lag = Lag(1, "topic", "group", "broker", "cluster")
    collected = Collected(
        services=(("node", "store", True),),
        problems=(("node", 0),),
        groups=(("broker", "cluster", 1),),
        lags=(lag,),
        latencies={lag: 1},
    )
    metrics.watch(lambda: collected, lambda: 0, {("PutTopic", "OK"): 1})
    return list(metrics.collect())


def _of_the_names() -> list[Metric]:
    metrics = NamingMetrics("node", float)
    metrics.called("REGISTER_BROKER", "SUCCESS", 0.0, protocol="remoting")
    metrics.forgotten("silent", [BrokerIdentity("cluster", "broker", 0, "host:1")])
    return list(metrics.collect())


def _of_the_gateway() -> list[Metric]:
    broker = RemoteBroker("broker", [], channel, "gateway", 0)
    metrics = GatewayMetrics("cluster", "gateway", {"broker": broker}, lambda: 0)
    metrics.called("SendMessage", "SUCCESS", 0.0)
    return list(metrics.collect())


def _of_every_service() -> list[Metric]:
    metrics = StoreMetrics("cluster", "node")
    metrics.watch_peers(FollowedPeer("store", "host:1"))
    own = {family.name for family in metrics.collect()}
    return [family for family in metrics.registry().collect() if family.name not in own]


async def _of_metasync() -> list[Metric]:
    metrics = MetasyncMetrics("cluster", "node")
    with tempfile.TemporaryDirectory() as directory:
        keeper = Keeper(Path(directory))
        puller = TablePuller(keeper, ServiceLink(None, 1.0, master_dialer(MetasyncSettings())), frozenset())
        metrics.watch(keeper, puller, lambda: Standing(NodeRole.MASTER))
        families = list(metrics.collect())
        await keeper.close()
    return families


_NAMES_HEAD = '''"""The names of settings, by service; written by `make docs` from the settings classes, and not edited.

They stand here because this package may not import the services.
"""

'''


def setting_names() -> str:
    """The module of all names: what every service has is left out."""
    shared = {field.name for field in dataclasses.fields(ServerSettings)}
    lines = ["NAMES = {\n"]
    for service, kind in _SERVICES.items():
        own = sorted(one.name for one in kind().describe() if one.attribute not in shared)
        lines.append(f'    "{service}": """\n{_wrapped(own, 8)}\n    """,\n')
    lines.append('}\n"""What each service has of its own."""\n\n')
    lines.append(f'WITHOUT_EFFECT = """\n{_wrapped(sorted(StoreSettings.without_effect), 4)}\n"""\n')
    lines.append('"""What the store accepts of RocketMQ\'s settings without effect."""\n')
    return _NAMES_HEAD + "".join(lines)


def _wrapped(names: list[str], indent: int) -> str:
    space = " " * indent
    return textwrap.fill(" ".join(names), 119, initial_indent=space, subsequent_indent=space)


def main() -> int:
    """Write or check the files; gives the exit status."""
    os.chdir(REPOSITORY)
    stale = []
    texts = {
        "services/common/settings/setting_names.py": setting_names(),
        "docs/settings.md": settings_page(),
        "docs/metrics.md": metrics_page(),
    }
    for name, text in texts.items():
        path = REPOSITORY / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text)
    if stale and "--check" in sys.argv:
        print(f"{', '.join(stale)} stale: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
