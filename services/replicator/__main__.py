"""The replicator service: `python -m tandemmq.replicator [--config broker.conf] [--profile embedded|server]`.

Health and metrics answer from the first moment. It serves when it has a link to its store and does what the store's
role asks for: a master's accepts slaves, a slave's follows its master.
"""

import sys
from collections.abc import Callable

import tandemmq.common.server_packages  # noqa: F401 - first: it says what is missing
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.processes.command import run_command
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.node_access import RULES as NODE_RULES
from tandemmq.common.serving.node_service import NodeServicer
from tandemmq.common.serving.server import ServiceHost, run
from tandemmq.common.serving.shutdown import StopRequest
from tandemmq.node.v1.node_pb2_grpc import add_NodeServicer_to_server
from tandemmq.replication.v1.healing_pb2_grpc import add_HealingServicer_to_server
from tandemmq.replication.v1.replication_pb2_grpc import add_ReplicationServicer_to_server
from tandemmq.replicator.access import HEALING_RULES, RULES
from tandemmq.replicator.healing.healing_service import HealingService
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.replicator.node import ReplicatorNode
from tandemmq.replicator.service import ReplicationService
from tandemmq.replicator.settings import PROFILES, ReplicatorSettings, load_settings

log = get_log("tandemmq.replicator")


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    return run_command("replicator", "The TandemMQ replicator.", PROFILES, load_settings, run_replicator, arguments)


Announce = Callable[[ServiceHost, ReplicatorNode], None]
"""Told once, when gRPC and health answer. `ReplicatorNode.master` is None until the store has said it is a master."""


def run_replicator(settings: ReplicatorSettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the service cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


async def serve(
    settings: ReplicatorSettings, announce: Announce | None = None, stop: StopRequest | None = None
) -> None:
    """The start-up, step by step, and the service's life; `stop` ends it, else SIGTERM and SIGINT do."""
    for name in settings.ignored:
        log.warning("setting has no effect", name=name, reason=settings.without_effect.get(name, ""))
    metrics = ReplicatorMetrics(settings.broker_cluster_name, settings.broker_name)
    host = ServiceHost(settings, metrics.registry(), stop=stop)
    node = ReplicatorNode(settings, host, metrics)
    host.add(add_ReplicationServicer_to_server, ReplicationService(node), RULES)
    host.add(add_HealingServicer_to_server, HealingService(node), HEALING_RULES)
    described = NodeServicer("replicator", settings, settings.store_path_root_dir)
    host.add(add_NodeServicer_to_server, described, NODE_RULES)
    metrics.watch_access(host.guard)
    metrics.watch_load(client=lambda: host.load)
    await host.start()
    node.start()
    host.on_drain(node.stop)
    host.stop_signal.listen()
    if announce is not None:
        announce(host, node)
    reason = await host.stop_signal.wait()
    log.info("stopping", reason=reason, in_flight=host.guard.in_flight)
    await host.stop()


if __name__ == "__main__":
    sys.exit(main())
