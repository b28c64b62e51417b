"""The store service: `python -m tandemmq.store [--config broker.conf] [--profile embedded|server]`.

Health and metrics answer from the first moment, so that a long recovery can be watched; messages are taken and given
when it is over. Missing consume queues and index are rebuilt while the store serves.
"""

import asyncio
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
from tandemmq.delivery.v1.delivery_pb2_grpc import add_DeliveryServicer_to_server
from tandemmq.delivery.v1.operations_pb2_grpc import add_OperationsServicer_to_server
from tandemmq.node.v1.node_pb2_grpc import add_NodeServicer_to_server
from tandemmq.store.assembly import make_broker, make_delivery, open_tables
from tandemmq.store.audit_file import AuditFile
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.hook_calls import HookCalls
from tandemmq.store.classic_clients import ClassicClients
from tandemmq.store.compiled_core import (
    CompiledCore,
    check_core,
    compiled_core,
    consuming_ways,
    held_calls,
    reading_core,
    short_way,
)
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.figures.views import Views
from tandemmq.store.delivery.filters.sql import prepare as prepare_filters
from tandemmq.store.delivery.receiving.receiving import Receiving
from tandemmq.store.fronts.access import (
    BROKER_RULES,
    DELIVERY_RULES,
    DERIVED_FILES_RULES,
    LOG_REPAIR_RULES,
    OPERATIONS_RULES,
    REPLICA_LOG_RULES,
    RULES,
)
from tandemmq.store.fronts.acknowledgements_of_turn import AcknowledgementsOfTurn
from tandemmq.store.fronts.direct_port import DirectPort
from tandemmq.store.fronts.internal.broker_servicer import BrokerServicer, add_links_to_server
from tandemmq.store.fronts.internal.derived_files_servicer import DerivedFilesServicer
from tandemmq.store.fronts.internal.gateway_sends import LinkCore
from tandemmq.store.fronts.internal.log_repair_servicer import LogRepairServicer
from tandemmq.store.fronts.internal.replica_log_servicer import NodeName, ReplicaLogServicer
from tandemmq.store.fronts.native.delivery_servicer import DeliveryServicer
from tandemmq.store.fronts.native.direct_delivery import (
    ACKNOWLEDGE_PATH,
    RECEIVE_PATH,
    DirectAcknowledge,
    DirectReceive,
)
from tandemmq.store.fronts.native.direct_send import BATCH_PATH as DIRECT_SEND_BATCH
from tandemmq.store.fronts.native.direct_send import PATH as DIRECT_SEND
from tandemmq.store.fronts.native.direct_send import DirectSend, DirectSendBatch
from tandemmq.store.fronts.native.operations_servicer import OperationsServicer
from tandemmq.store.fronts.native.send_stream import PATH as SEND_STREAM
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.fronts.native.store_servicer import StoreServicer
from tandemmq.store.fronts.receives_of_turn import ReceivesOfTurn
from tandemmq.store.fronts.rocketmq5.direct_ack import PATH as ACK_MESSAGE_PATH
from tandemmq.store.fronts.rocketmq5.direct_ack import DirectAckMessage, refuse
from tandemmq.store.fronts.rocketmq5.direct_receive import PATH as RECEIVE_MESSAGE_PATH
from tandemmq.store.fronts.rocketmq5.direct_receive import DirectReceiveMessage
from tandemmq.store.fronts.rocketmq5.direct_send import PATH as DIRECT_SEND_MESSAGE
from tandemmq.store.fronts.rocketmq5.direct_send import DirectSendMessage
from tandemmq.store.fronts.rocketmq5.front import RocketMQ5Front
from tandemmq.store.fronts.rocketmq5.identity import SigningIdentity, signing_secrets
from tandemmq.store.fronts.rocketmq5.offsets import OffsetReads
from tandemmq.store.fronts.rocketmq5.signed_direct import of_acknowledge, of_receive, of_send, signed
from tandemmq.store.gauges import read_gauges, recovered
from tandemmq.store.hook_loading import load_hooks
from tandemmq.store.log.errors import DiskFull
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.loop_lag import LoopLag
from tandemmq.store.metasync_link import MetasyncLink
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import PROFILES, StoreSettings, load_settings
from tandemmq.store.v1.derived_files_pb2_grpc import add_DerivedFilesServicer_to_server
from tandemmq.store.v1.log_repair_pb2_grpc import add_LogRepairServicer_to_server
from tandemmq.store.v1.replica_log_pb2_grpc import add_ReplicaLogServicer_to_server
from tandemmq.store.v1.store_pb2_grpc import add_StoreServicer_to_server

log = get_log("tandemmq.store")


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    return run_command("store", "The TandemMQ store service.", PROFILES, load_settings, run_store, arguments)


Announce = Callable[[ServiceHost, MessageStore], None]
"""Told once, when the store answers; for commands that print where it listens and what recovery did."""


def run_store(settings: StoreSettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the store cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


async def serve(settings: StoreSettings, announce: Announce | None = None, stop: StopRequest | None = None) -> None:
    """The start-up, step by step, and the service's life; `stop` ends it, else SIGTERM and SIGINT do."""
    check_core(settings.compiled_core)
    for name in settings.ignored:
        log.warning("setting has no effect", name=name, reason=settings.without_effect.get(name, ""))
    metrics = StoreMetrics(settings.broker_cluster_name, settings.broker_name)
    hooks = watched_hooks(settings, metrics)
    servicer = StoreServicer(settings.service_limits(), metrics)
    host = ServiceHost(settings, metrics.registry(), STATUSES, stop)
    host.add(add_StoreServicer_to_server, servicer, RULES)
    consuming = DeliveryServicer(settings.service_limits(), metrics)
    host.add(add_DeliveryServicer_to_server, consuming, DELIVERY_RULES)
    operations = OperationsServicer(metrics)
    host.add(add_OperationsServicer_to_server, operations, OPERATIONS_RULES)
    secrets = signing_secrets(settings.access_file)
    rocketmq5 = RocketMQ5Front(settings.front_rules(), host.guard, metrics, secrets)
    for service, methods in rocketmq5.services().items():
        host.add_foreign(service, methods)
    described = NodeServicer("store", settings, settings.store_path_root_dir)
    host.add(add_NodeServicer_to_server, described, NODE_RULES)
    inner = Internal(settings, described, lambda: settings.client_address(host.port))
    internal = inner.host
    metrics.watch_access(host.guard, internal.guard)
    metrics.watch_load(client=lambda: host.load, internal=lambda: internal.load)
    await host.start()
    classic = None
    try:
        classic = ClassicClients(settings, host.guard, secrets, metrics)
        settings = classic.known_to(settings)
        await inner.start(settings.internal_host)
        store = await asyncio.to_thread(_opened, settings, metrics)
        host.on_close(store.close)
        topics, groups, metasync, edits = open_tables(settings)
        classic.read_modes(settings)
        broker = make_broker(settings, store, topics, metrics, hooks)
        delivery = make_delivery(settings, broker, groups)
    except BaseException:
        if classic is not None:
            await classic.stop()
        await internal.stop()
        await host.stop()
        raise
    store.start()
    delivery.start()
    host.on_drain(delivery.drain)
    host.on_close(delivery.stop)
    watch_loop(metrics, store, host)
    watch_store(metrics, settings, broker)
    watch_delivery(metrics, delivery)
    operations.attach(Views(delivery), broker, groups)
    core = attach_core(settings, host, broker, metrics, rocketmq5.identity)
    servicer.attach(broker, core.state, core.batch)
    consuming.attach(delivery, delivery.sessions, groups)
    port = DirectPort(settings.broker_name, delivery)
    rocketmq5.attach(port, lambda: f"{settings.own_ip()}:{host.port}", OffsetReads(broker, delivery), core.consumers)
    consume_directly(settings, host, delivery, rocketmq5, core, metrics)
    await classic.serve(settings, broker, delivery, edits, core.frames)
    host.on_drain(classic.leave)
    inner.attach(settings.broker_name, delivery, core.link)
    for front in (servicer, consuming, rocketmq5, inner.gateways):
        host.on_drain(front.drain)
    host.on_close(classic.stop)
    internal.on_drain(inner.replica_log.drain)
    host.on_close(internal.stop)
    follow_metasync(host, metrics, metasync)
    show_problems(metrics, described, classic, store)
    host.stop_signal.listen()  # before anything says SERVING: whoever hears that may stop us
    await internal.serving()
    log.info("store open", directory=str(settings.store_path_root_dir.absolute()), core=core.state, **recovered(store))
    prepare_in_background(host)
    await host.run_until_stopped(lambda: announce(host, store) if announce is not None else None)


def show_problems(metrics: StoreMetrics, described: NodeServicer, classic: ClassicClients, store: MessageStore) -> None:
    """What the node says of itself: why a name server is away, which the metrics show too, and what the disk lacks."""
    metrics.watch_peers(*classic.name_servers)
    described.problems = lambda: [*store.problems(), *classic.problems()]


def follow_metasync(host: ServiceHost, metrics: StoreMetrics, link: MetasyncLink | None) -> None:
    """Have the tables follow metasync's, if there is one; the metrics show whether it is there."""
    if link is not None:
        metrics.watch_peers(link.watched)
        link.start()
        host.on_close(link.close)


def prepare_in_background(host: ServiceHost) -> None:
    """Load the parser of SQL filters: the first filter would hold up the loop."""
    preparing = asyncio.create_task(asyncio.to_thread(prepare_filters))
    host.on_close(lambda: preparing)


def watched_hooks(settings: StoreSettings, metrics: StoreMetrics) -> HookCalls | None:
    """The hooks of the settings, if there are any; the metrics show what they do. Raises BadSetting."""
    hooks = load_hooks(settings.hooks)
    if hooks is not None:
        log.info("hooks are called", hooks=",".join(settings.hooks))
        metrics.watch_hooks(hooks.counts)
    return hooks


def attach_core(
    settings: StoreSettings, host: ServiceHost, broker: Broker, metrics: StoreMetrics, identity: SigningIdentity
) -> CompiledCore:
    """Have sends take the short way, and plain ones the compiled core. `identity`: of RocketMQ 5 clients."""
    soon, asks_who = broker.store.timers.call_soon, host.guard.gate is not None
    name = settings.broker_cluster_name
    core = compiled_core(broker, soon, settings.compiled_core, name, asks_who=asks_who)
    broker.store.use_core(reading_core(settings.compiled_core))
    send = DirectSend(broker, metrics, core.send)
    if core.send is not None:
        metrics.watch_core(core.taken)
        host.use_lanes()
    host.add_direct(DIRECT_SEND, send if core.send is None else short_way(send))
    if core.batch is not None:
        batches = DirectSendBatch(core.batch, broker.acknowledgement, metrics)
        host.add_direct(DIRECT_SEND_BATCH, short_way(batches))
        host.take_bytes(SEND_STREAM)
    if core.message is not None:
        messages = DirectSendMessage(core.message, broker.acknowledgement, metrics)
        host.add_direct_foreign(DIRECT_SEND_MESSAGE, signed(identity, of_send, short_way(messages)))
    return core


def consume_directly(
    settings: StoreSettings,
    host: ServiceHost,
    delivery: Delivery,
    rocketmq5: RocketMQ5Front,
    core: CompiledCore,
    metrics: StoreMetrics,
) -> None:
    """Have plain receives and acknowledgements take the short way."""
    if isinstance(delivery.receiving, Receiving):
        delivery.receiving.handles.core = core.handles
    delivery.journal.core = core.facts
    if delivery.follower is not None:
        delivery.follower.core = core.fact_reader
    ours = DirectReceive(delivery, settings.service_limits().pull, metrics), DirectAcknowledge(delivery, metrics)
    receive_ours, acknowledge_ours = ours if core.send is None else consuming_ways(*ours, metrics)
    host.add_direct(RECEIVE_PATH, receive_ours)
    host.add_direct(ACKNOWLEDGE_PATH, acknowledge_ours)
    journal = delivery.journal
    if core.consumers is not None:
        receives = ReceivesOfTurn("ReceiveMessage", delivery, journal, metrics)
        receives.use_core(held_calls("ReceiveMessage", metrics))
        receive = DirectReceiveMessage(rocketmq5.receiving, receives)
        host.add_direct_foreign(RECEIVE_MESSAGE_PATH, signed(rocketmq5.identity, of_receive, receive))
    acks = AcknowledgementsOfTurn("AckMessage", delivery, journal, delivery.acknowledgement, metrics, refuse)
    reads = None
    if core.consumers is not None:
        reads = core.consumers.acks
        acks.use_core(held_calls("AckMessage", metrics))
    acknowledge = DirectAckMessage(rocketmq5.receipts, acks, reads)
    host.add_direct_foreign(ACK_MESSAGE_PATH, signed(rocketmq5.identity, of_acknowledge, acknowledge))


def watch_store(metrics: StoreMetrics, settings: StoreSettings, broker: Broker) -> None:
    """Have the metrics show log, queues, and what the last audit found."""
    audit = AuditFile(settings.store_path_root_dir)
    metrics.watch(lambda: read_gauges(broker, audit))


def watch_loop(metrics: StoreMetrics, store: MessageStore, host: ServiceHost) -> None:
    """Have the metrics show how late the event loop is."""
    loop_lag = LoopLag(store.timers, metrics.loop_was_late)
    loop_lag.start()
    host.on_drain(loop_lag.stop)


def _opened(settings: StoreSettings, metrics: StoreMetrics) -> MessageStore:
    """The store, recovered. Raises StoreError, with cures for a store that does not go on by itself."""
    try:
        return MessageStore.open(settings.store_config(), observer=metrics)
    except DiskFull as error:
        error.remedy = "Free room on that disk, or name a storePathRootDir on another one; then start the store again."
        raise


class Internal:
    """The node's own port, and what answers there."""

    def __init__(self, settings: StoreSettings, described: NodeServicer, client_address: Callable[[], str]) -> None:
        """All but `described` refuses until `attach`. `client_address`: where clients find this store."""
        self.host = ServiceHost(settings.internal_server(), statuses=STATUSES, port_setting="internalPort")
        self.replica_log = ReplicaLogServicer(
            NodeName(settings.broker_cluster_name, settings.broker_name, settings.broker_id, client_address)
        )
        self._derived_files = DerivedFilesServicer()
        self._log_repair = LogRepairServicer()
        self.host.add(add_ReplicaLogServicer_to_server, self.replica_log, REPLICA_LOG_RULES)
        self.host.add(add_DerivedFilesServicer_to_server, self._derived_files, DERIVED_FILES_RULES)
        self.host.add(add_LogRepairServicer_to_server, self._log_repair, LOG_REPAIR_RULES)
        self.gateways = BrokerServicer(self.host.guard)
        self.host.add(add_links_to_server, self.gateways, BROKER_RULES)
        self.host.add(add_NodeServicer_to_server, described, NODE_RULES)

    async def start(self, address: str) -> None:
        """Listen. `address`: for the log alone."""
        await self.host.start()
        log.info("listening internally", internal=f"{address}:{self.host.port}")

    def attach(self, name: str, delivery: Delivery, core: LinkCore | None) -> None:
        """Answer from an open store from now on. `name`: the broker's; `core`: what stores gateways' plain messages."""
        broker = delivery.broker
        self.gateways.attach(name, delivery, core)
        self.replica_log.attach(broker.store, broker.acknowledgement.transfer)
        self._derived_files.attach(broker.store)
        self._log_repair.attach(broker.store)


def watch_delivery(metrics: StoreMetrics, delivery: Delivery) -> None:
    """Have the metrics show groups, members, what waits and half messages."""
    receiving, waiting = delivery.receiving, delivery.waiting
    if isinstance(receiving, Receiving):
        metrics.watch_groups(receiving.figures_now, receiving.dead_letters, receiving.expired, receiving.moved)
    if waiting is not None:
        metrics.watch_waiting(lambda: waiting.now, waiting.delay_counts)
    metrics.watch_members(delivery.sessions.all)


if __name__ == "__main__":
    sys.exit(main())
