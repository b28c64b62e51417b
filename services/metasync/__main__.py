"""The metadata service: `python -m tandemmq.metasync [--config broker.conf] [--profile embedded|server]`."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import tandemmq.common.server_packages  # noqa: F401 - first: it says what is missing
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.processes.command import run_command
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.node_access import RULES as NODE_RULES
from tandemmq.common.serving.node_service import NodeServicer
from tandemmq.common.serving.server import ServiceHost, run
from tandemmq.common.serving.shutdown import StopRequest
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import LoopTimers, Timers
from tandemmq.metadata.v1.metadata_pb2_grpc import add_MetadataServicer_to_server
from tandemmq.metasync.access import RULES
from tandemmq.metasync.channels import master_dialer, store_dialer
from tandemmq.metasync.errors import DocumentNotSaved
from tandemmq.metasync.java_master import JavaLink
from tandemmq.metasync.keeper import Keeper, flush_for_ever
from tandemmq.metasync.master_tables import MasterLink, ServiceLink
from tandemmq.metasync.metrics import MetasyncMetrics
from tandemmq.metasync.node import OwnNode
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.service import MetadataServicer
from tandemmq.metasync.settings import PROFILES, MetasyncSettings, load_settings
from tandemmq.metasync.standing import StandingKeeper
from tandemmq.metasync.tables import TableKind
from tandemmq.metasync.validation import local_topics
from tandemmq.node.v1.node_pb2_grpc import add_NodeServicer_to_server

log = get_log("tandemmq.metasync")

SERVICE = "tandemmq.metadata.v1.Metadata"
HEALTH_SECONDS = 1.0

Announce = Callable[[ServiceHost], None]
"""Told once, when the service answers."""


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    return run_command("metasync", "The TandemMQ metadata service.", PROFILES, load_settings, run_metasync, arguments)


def run_metasync(settings: MetasyncSettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the service cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


async def serve(settings: MetasyncSettings, announce: Announce | None = None, stop: StopRequest | None = None) -> None:
    """The start-up, step by step, and the service's life; `stop` ends it, else SIGTERM and SIGINT do."""
    root = settings.store_path_root_dir
    keeper, timers = Keeper(root), LoopTimers()
    stores = store_dialer(settings)
    standings = StandingKeeper(root, settings.broker_role, settings.store_address, stores, timers)
    local = local_topics(settings.broker_name, settings.broker_cluster_name)
    timeout = settings.metasync_timeout / 1000
    java = settings.metasync_remoting_master_address
    link: MasterLink = (
        ServiceLink(settings.metasync_master_address, timeout, master_dialer(settings), timers)
        if java is None
        else JavaLink(java, timeout, keeper)
    )
    puller = TablePuller(keeper, link, local, timers)
    node = OwnNode(settings, keeper, puller, await standings.ask(), stores, timers)
    metrics = MetasyncMetrics(settings.broker_cluster_name, settings.broker_name)
    metrics.watch(keeper, puller, lambda: node.standing)
    host = ServiceHost(settings, metrics.registry(), stop=stop)
    host.add(add_MetadataServicer_to_server, MetadataServicer(keeper, node, metrics), RULES)
    host.add(add_NodeServicer_to_server, NodeServicer("metasync", settings, root), NODE_RULES)
    metrics.watch_access(host.guard)
    metrics.watch_load(client=lambda: host.load)
    host.on_drain(keeper.hub.stop)
    host.on_close(keeper.close)
    try:
        await node.become(node.standing)
        await host.start()
    except BaseException:
        await host.stop()
        raise
    log.info("tables open", directory=str(root.absolute()), role=node.standing.role.value, epoch=node.standing.epoch)
    flushes = (
        (TableKind.CONSUMER_OFFSETS, settings.flush_consumer_offset_interval),
        (TableKind.DELAY_OFFSETS, settings.flush_delay_offset_interval),
    )
    work: list[Coroutine[Any, Any, None]] = [flush_for_ever(keeper, kind, ms / 1000, timers) for kind, ms in flushes]
    if settings.store_address is not None:
        metrics.watch_peers(standings.store)
        work.append(standings.follow(settings.role_poll_interval / 1000, node.become))
    work.append(keep_health_true(host, keeper, timers))
    tasks = [asyncio.ensure_future(one) for one in work]
    host.on_close(standings.close)
    host.on_close(lambda: end_tasks(timers, *tasks, *node.tasks))
    await host.run_until_stopped(lambda: announce(host) if announce is not None else None)


async def keep_health_true(host: ServiceHost, keeper: Keeper, timers: Timers) -> None:
    """While a table cannot be written the service is NOT_SERVING; it is tried again each second."""
    while True:
        await timers.sleep(HEALTH_SECONDS)
        if not keeper.problems:
            continue
        await host.health.not_serving(SERVICE)
        with contextlib.suppress(DocumentNotSaved):
            await keeper.mend()
            await host.health.serving()
            log.info("tables can be written again")


if __name__ == "__main__":
    sys.exit(main())
