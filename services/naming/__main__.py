"""The name server: `python -m tandemmq.naming [--config broker.conf] [--profile embedded|server]`."""

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial

import tandemmq.common.server_packages  # noqa: F401 - first: it says what is missing
from tandemmq.common.calling.addresses import host_port
from tandemmq.common.identity.made_certificate import FoundContext
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.limits import RemotingLimits
from tandemmq.common.net.remoting.server import RemotingServer
from tandemmq.common.processes.command import run_command
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.node_access import RULES as NODE_RULES
from tandemmq.common.serving.node_service import NodeServicer
from tandemmq.common.serving.server import AddressTaken, ServiceHost, run
from tandemmq.common.serving.shutdown import StopRequest
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import LoopTimers
from tandemmq.naming.asked import Asked, NamingRules, as_properties, code_of
from tandemmq.naming.kv import KvStore
from tandemmq.naming.measured import measured
from tandemmq.naming.metrics import NamingMetrics
from tandemmq.naming.routes import RouteTable
from tandemmq.naming.settings import PROFILES, NamingSettings, load_settings
from tandemmq.naming.watch import RouteWatch
from tandemmq.node.v1.node_pb2_grpc import add_NodeServicer_to_server

log = get_log("tandemmq.naming")

Announce = Callable[[ServiceHost, int], None]
"""Told once, when the name server answers, and on which port."""


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    return run_command("naming", "RocketMQ's name server.", PROFILES, load_settings, run_naming, arguments)


def run_naming(settings: NamingSettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the name server cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


async def serve(settings: NamingSettings, announce: Announce | None = None, stop: StopRequest | None = None) -> None:
    """The start-up, step by step, and the name server's life; `stop` ends it, else SIGTERM and SIGINT do."""
    routes, timers = RouteTable(settings.names_broker_expiry / 1000), LoopTimers()
    values = KvStore(settings.names_directory / "kvConfig.json")
    rules = NamingRules(settings.order_message_enable, settings.return_order_topic_config_to_broker)
    asked = Asked(routes, values, time.monotonic, rules, lambda: _properties(settings))
    metrics = NamingMetrics(host_port(settings.names_host, settings.names_port), time.monotonic)
    watch = RouteWatch(routes, time.monotonic, metrics.forgotten, timers)
    limits = RemotingLimits(connections=settings.names_max_connections)
    called = partial(metrics.called, protocol="remoting")
    handlers = Handlers(measured(asked.handlers(), code_of, called), code_of)
    server = RemotingServer(handlers, limits, closed=watch.closed, timers=timers)
    metrics.watch(routes, lambda: len(server.connections), lambda: server.told)
    host = ServiceHost(settings, metrics.registry(), stop=stop)
    host.add(add_NodeServicer_to_server, NodeServicer("names", settings, settings.names_directory), NODE_RULES)
    metrics.watch_access(host.guard)
    metrics.watch_load(client=lambda: host.load)
    host.on_close(server.stop)
    try:
        port = _bound(server, settings)
        await host.start()
        await server.start()
    except BaseException:
        await host.stop()
        raise
    log.info("names are told", names=host_port(settings.names_host, port))
    looking = asyncio.ensure_future(watch.run(settings.scan_not_active_broker_interval / 1000))
    host.on_close(lambda: end_tasks(timers, looking))
    await host.run_until_stopped(lambda: announce(host, port) if announce is not None else None)


def _bound(server: RemotingServer, settings: NamingSettings) -> int:
    address = host_port(settings.names_host, settings.names_port)
    try:
        return server.add_port(address, FoundContext(settings).get)
    except RuntimeError as error:
        raise AddressTaken(f"cannot serve names on {address}") from error


def _properties(settings: NamingSettings) -> str:
    return as_properties((one.name, one.value) for one in settings.describe())


if __name__ == "__main__":
    sys.exit(main())
