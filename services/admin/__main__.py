"""The admin service: `python -m tandemmq.admin [--config admin.conf] [--profile embedded|server]`."""

import asyncio
import sys
from collections.abc import Callable

import tandemmq.common.server_packages  # noqa: F401 - first: it says what is missing
from tandemmq.admin.access import RULES
from tandemmq.admin.actions.actions import Actions
from tandemmq.admin.books.books import Books
from tandemmq.admin.bundle.bundle import Bundle
from tandemmq.admin.catalogue.groups import Groups
from tandemmq.admin.catalogue.topics import Topics
from tandemmq.admin.cluster.brokers import Brokers
from tandemmq.admin.cluster.cluster import ClusterView
from tandemmq.admin.cluster.nodes import Nodes
from tandemmq.admin.cluster.role_changes import RoleChanges
from tandemmq.admin.consuming.resets import Resets
from tandemmq.admin.consuming.views import Waiting
from tandemmq.admin.history.collected import Collector
from tandemmq.admin.history.history import HourHistory
from tandemmq.admin.jobs.jobs import Jobs
from tandemmq.admin.messages.dead_letters import DeadLetters
from tandemmq.admin.messages.message_ways import MessageWays
from tandemmq.admin.messages.messages import Messages
from tandemmq.admin.messages.tail import Tails
from tandemmq.admin.metrics import AdminMetrics
from tandemmq.admin.service import AdminParts, AdminServicer
from tandemmq.admin.settings import PROFILES, AdminSettings, load_settings
from tandemmq.admin.users import Users
from tandemmq.admin.v1.admin_pb2_grpc import add_AdminServicer_to_server
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.processes.command import run_command
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.node_access import RULES as NODE_RULES
from tandemmq.common.serving.node_service import NodeServicer
from tandemmq.common.serving.server import ServiceHost, run
from tandemmq.common.serving.shutdown import StopRequest
from tandemmq.common.tasks import end_tasks
from tandemmq.node.v1.node_pb2_grpc import add_NodeServicer_to_server

log = get_log("tandemmq.admin")

Announce = Callable[[ServiceHost, str | None], None]
"""Told once, when the service answers: with the URL of the console, if there is one."""


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    return run_command("admin", "The TandemMQ admin service.", PROFILES, load_settings, run_admin, arguments)


def run_admin(settings: AdminSettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the service cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


async def serve(
    settings: AdminSettings,
    announce: Announce | None = None,
    stop: StopRequest | None = None,
    history: HourHistory | None = None,
) -> None:
    """The start-up, step by step, and the service's life; `stop` ends it, else SIGTERM and SIGINT do.

    `history`: what is known already of the hour before.
    """
    nodes = Nodes(settings)
    metrics = AdminMetrics(settings.broker_cluster_name)
    host = ServiceHost(settings, metrics.registry(), stop=stop)
    books = Books(Brokers(nodes))
    interval = settings.admin_collect_interval / 1000
    parts = make_parts(settings, nodes, host, books, history or HourHistory(interval))
    collector = Collector(parts.cluster, books, parts.jobs, parts.history, interval, nodes.timers)
    metrics.watch_access(host.guard)
    metrics.watch_load(client=lambda: host.load)
    metrics.watch(lambda: collector.last, lambda: collector.failures, parts.actions.counts)
    servicer = AdminServicer(parts)
    host.add(add_AdminServicer_to_server, servicer, RULES)
    host.add(add_NodeServicer_to_server, NodeServicer("admin", settings, settings.admin_directory), NODE_RULES)
    host.on_close(nodes.close)
    host.on_close(books.close)
    host.on_drain(parts.tails.stop)
    host.on_drain(parts.jobs.close)
    try:
        await host.start()
        console = await start_console(settings, servicer, host, parts) if settings.console_enable else None
    except BaseException:
        await host.stop()
        raise
    collecting = asyncio.create_task(collector.run())
    host.on_close(lambda: end_tasks(nodes.timers, collecting))
    await host.run_until_stopped(lambda: announce(host, console) if announce is not None else None)


async def start_console(settings: AdminSettings, servicer: AdminServicer, host: ServiceHost, parts: AdminParts) -> str:
    """The same calls over HTTP, with pages; gives their URL. Raises ConsolePortTaken, UnreadableCertificate."""
    from tandemmq.admin.console.server import Console  # here: aiohttp is loaded only where there is a console

    console = Console(settings, servicer, host.guard, parts.actions, parts.nodes.timers)
    host.on_drain(console.stop)
    await console.start()
    return console.url


def make_parts(
    settings: AdminSettings, nodes: Nodes, host: ServiceHost, books: Books, history: HourHistory
) -> AdminParts:
    """What knows the answers, put together."""
    brokers = books.brokers
    cluster, topics, groups = ClusterView(nodes, brokers), Topics(books), Groups(books)
    messages, jobs = Messages(brokers), Jobs(nodes, settings)
    actions = Actions(settings.admin_directory, host.guard)
    return AdminParts(
        nodes=nodes,
        cluster=cluster,
        history=history,
        topics=topics,
        groups=groups,
        waiting=Waiting(books),
        resets=Resets(books),
        messages=messages,
        ways=MessageWays(messages),
        tails=Tails(brokers),
        dead_letters=DeadLetters(brokers, messages),
        role_changes=RoleChanges(nodes, brokers),
        jobs=jobs,
        bundle=Bundle(nodes, cluster, topics, groups, jobs, actions),
        actions=actions,
        users=Users(host.guard),
    )


if __name__ == "__main__":
    sys.exit(main())
