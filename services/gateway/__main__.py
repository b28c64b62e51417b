"""The gateway service: `python -m tandemmq.gateway [--config broker.conf]`.

It answers from the first moment, with the brokers that it reaches; one that is down costs its queues only.
"""

import secrets
import sys
from collections.abc import Callable
from functools import partial

import tandemmq.common.server_packages  # noqa: F401 - first: it says what is missing
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.grpc_transport import Limits
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.processes.command import run_command
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.node_access import RULES as NODE_RULES
from tandemmq.common.serving.node_service import NodeServicer
from tandemmq.common.serving.server import ServiceHost, run
from tandemmq.common.timers import LoopTimers
from tandemmq.gateway.cluster import BrokerCluster
from tandemmq.gateway.metrics import GatewayMetrics
from tandemmq.gateway.passed_acknowledgements import PassedAcknowledgements
from tandemmq.gateway.passed_receives import PassedReceives
from tandemmq.gateway.passed_sends import PassedSends
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.gateway.settings import PROFILES, GatewaySettings, load_settings
from tandemmq.node.v1.node_pb2_grpc import add_NodeServicer_to_server
from tandemmq.store.compiled_core import check_core, consumer_core, core_problem
from tandemmq.store.fronts.rocketmq5.direct_ack import PATH as ACK_MESSAGE_PATH
from tandemmq.store.fronts.rocketmq5.direct_receive import PATH as RECEIVE_MESSAGE_PATH
from tandemmq.store.fronts.rocketmq5.direct_send import PATH as DIRECT_SEND_MESSAGE
from tandemmq.store.fronts.rocketmq5.front import RocketMQ5Front
from tandemmq.store.fronts.rocketmq5.identity import signing_secrets
from tandemmq.store.settings import CoreChoice

log = get_log("tandemmq.gateway")

_LINK_LIMITS = Limits(
    keepalive_seconds=3.0,
    keepalive_timeout_seconds=3.0,
    handshake_seconds=3.0,
    stream_window=16 << 20,
    connection_window=32 << 20,
    max_receive_message_length=64 << 20,
)
"""Of links to stores: a machine that is gone is noticed within seconds, and an answer may be large."""

Announce = Callable[[ServiceHost, BrokerCluster], None]
"""Told once, when the gateway answers."""


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    return run_command("gateway", "The TandemMQ gateway.", PROFILES, load_settings, run_gateway, arguments)


def run_gateway(settings: GatewaySettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the gateway cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


def make_cluster(settings: GatewaySettings) -> BrokerCluster:
    """The brokers of the settings. Raises UnreadableCertificate, UnreadableSecret."""
    trusted = settings.broker_tls_trust_cert_path
    dialer = Dialer(settings, trusted, "brokerTlsTrustCertPath", limits=_LINK_LIMITS)
    name = f"{settings.gateway_name}-{secrets.token_hex(8)}"
    timers = LoopTimers()
    brokers = {
        broker: RemoteBroker(broker, addresses, dialer.channel, name, settings.broker_credit_bytes, timers)
        for broker, addresses in settings.named().items()
    }
    return BrokerCluster(brokers, timers, fill=settings.auto_create_topic_enable)


def pass_calls(
    settings: GatewaySettings,
    host: ServiceHost,
    cluster: BrokerCluster,
    front: RocketMQ5Front,
    metrics: GatewayMetrics,
) -> str:
    """Have plain calls take the short way, where the compiled core is used: gives `compiled`, or `python` and why."""
    if settings.compiled_core is CoreChoice.NEVER:
        return "python: compiledCore is never"
    if not host.takes_direct:
        return "python: grpcTransport is grpcio, which has no short way"
    if host.guard.gate is not None:
        return "python: callers are recognized message by message"
    if problem := core_problem():
        return f"python: {problem}"
    sends = PassedSends(cluster, settings.max_message_size, metrics)
    host.use_lanes()
    host.add_direct_foreign(DIRECT_SEND_MESSAGE, sends.core.answer)
    consumers = consumer_core(settings.compiled_core)
    if consumers is not None:
        acknowledgements = PassedAcknowledgements(cluster, front.receipts, metrics, consumers.acks)
        host.add_direct_foreign(RECEIVE_MESSAGE_PATH, PassedReceives(cluster, front.receiving, metrics))
        host.add_direct_foreign(ACK_MESSAGE_PATH, acknowledgements)
    return "compiled"


async def serve(settings: GatewaySettings, announce: Announce | None = None) -> None:
    """The start-up, step by step, and the service's life."""
    for name in settings.ignored:
        log.warning("setting has no effect", name=name, reason=settings.without_effect.get(name, ""))
    check_core(settings.compiled_core)
    cluster = make_cluster(settings)
    metrics = GatewayMetrics(
        settings.broker_cluster_name, settings.gateway_name, cluster.brokers, cluster.sessions.count
    )
    host = ServiceHost(settings, metrics.registry())
    front = RocketMQ5Front(settings.front_rules(), host.guard, metrics, signing_secrets(settings.access_file))
    for service, methods in front.services().items():
        host.add_foreign(service, methods)
    host.add(add_NodeServicer_to_server, NodeServicer("gateway", settings), NODE_RULES)
    metrics.watch_access(host.guard)
    metrics.watch_peers(*(broker.peer for broker in cluster.brokers.values()))
    metrics.watch_load(client=lambda: host.load)
    front.attach(cluster, lambda: f"{settings.grpc_host}:{host.port}", core=consumer_core(settings.compiled_core))
    log.info("plain messages", core=pass_calls(settings, host, cluster, front, metrics))
    await host.start()
    cluster.start()
    host.on_drain(cluster.drain)
    host.on_drain(front.drain)
    host.on_close(cluster.stop)
    await host.run_until_stopped(partial(announce, host, cluster) if announce is not None else None)


if __name__ == "__main__":
    sys.exit(main())
