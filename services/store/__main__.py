"""The store service: `python -m tandemmq.store [--config broker.conf] [--profile embedded|server]`.

Health and metrics answer from the first moment, so that a long recovery can be watched; messages are taken and given
when it is over. Missing consume queues and index are rebuilt while the store serves.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.process import prepare_process
from tandemmq.common.server import ServiceHost, run
from tandemmq.store.broker.long_poll import LongPolls
from tandemmq.store.broker.offsets import Catalog
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.send import Sender
from tandemmq.store.broker.topics import LocalTopicTable
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.log.clock import SystemClock
from tandemmq.store.log.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import Gauges, StoreMetrics
from tandemmq.store.service.parts import Broker
from tandemmq.store.service.store_servicer import StoreServicer
from tandemmq.store.settings import PROFILES, StoreSettings, load_settings
from tandemmq.store.v1.store_pb2_grpc import add_StoreServicer_to_server

log = get_log("tandemmq.store")


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tandemmq.store", description="The TandemMQ store service.")
    parser.add_argument("--config", type=Path, help="a broker.conf with RocketMQ's setting names")
    parser.add_argument("--profile", choices=PROFILES, help="defaults: server with a config file, else embedded")
    options = parser.parse_args(arguments)
    try:
        run_store(load_settings(options.config, options.profile))
    except TandemError as error:
        print(f"tandemmq.store: {error.explain()}", file=sys.stderr)  # noqa: T201 - what a terminal is for
        return 1
    return 0


Announce = Callable[[ServiceHost, MessageStore], None]
"""Told once, when the store answers; for commands that print where it listens and what recovery did."""


def run_store(settings: StoreSettings, announce: Announce | None = None) -> None:
    """Serve in the foreground until SIGTERM or SIGINT. Raises TandemError when the store cannot start."""
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, announce))


async def serve(settings: StoreSettings, announce: Announce | None = None) -> None:
    """The start-up, step by step, and the service's life."""
    for name in settings.ignored:
        log.warning("setting has no effect", name=name, reason=settings.without_effect.get(name, ""))
    metrics = StoreMetrics(settings.broker_cluster_name, settings.broker_name)
    servicer = StoreServicer(settings.service_limits(), metrics)
    host = ServiceHost(settings, metrics.registry())
    host.add(add_StoreServicer_to_server, servicer)
    await host.start()
    try:
        store = await asyncio.to_thread(MessageStore.open, settings.store_config(), observer=metrics)
        host.on_close(store.close)
        broker = make_broker(settings, store)
    except BaseException:
        await host.stop()
        raise
    store.start()
    metrics.watch(lambda: read_gauges(broker))
    servicer.attach(broker)
    host.on_drain(servicer.drain)
    log.info("store open", directory=str(settings.store_path_root_dir.absolute()), **recovered(store))
    await host.run_until_stopped(lambda: announce(host, store) if announce is not None else None)


def make_broker(settings: StoreSettings, store: MessageStore) -> Broker:
    """The broker over an open store. Raises UnreadableTable."""
    clock = SystemClock()
    rules = settings.send_rules()
    topics = LocalTopicTable(settings.store_path_root_dir, LocalDisk(), clock)
    ids = UniqueIdGenerator(rules.store_host.ip.packed, os.getpid(), id(store))
    puller = Puller(store, topics)
    return Broker(
        store=store,
        sender=Sender(store, topics, rules, clock, ids.next),
        puller=puller,
        polls=LongPolls(store),
        finder=Finder(store, settings.max_msgs_num_batch),
        catalog=Catalog(store, topics, puller),
        topics=topics,
    )


def read_gauges(broker: Broker) -> Gauges:
    """What the metrics show of the store; called on the metrics thread, reads only."""
    store = broker.store
    begin, end, flushed = store.commit_log.min_offset, store.commit_log.max_offset, store.flushed_offset
    damage = store.damage
    return Gauges(
        flush_behind=max(end - flushed, 0),
        dispatch_behind=max(end - store.dispatched_offset, 0),
        disk_used=LocalDisk().usage(store.config.store_path_root_dir).used,
        oldest_timestamp=_store_time(store.read_record(begin)),
        topics=sum(1 for _ in broker.topics.all()),
        writable=store.writable,
        damaged_ranges=len(damage),
        damaged_bytes=sum(known.end - known.begin for known in damage),
        log_bytes=end - begin,
        long_polls=len(broker.polls),
    )


def recovered(store: MessageStore) -> dict[str, object]:
    """What recovery found, for the log."""
    report = store.recovery
    return {
        "log_begin": store.commit_log.min_offset,
        "log_end": store.commit_log.max_offset,
        "records_recovered": report.records,
        "recovery_seconds": report.seconds,
        "cut_bytes": report.cut_bytes,
        "damaged_ranges": len(store.damage),
        "rebuilding": store.rebuilding,
    }


def _store_time(record: bytes | None) -> int | None:
    try:
        return None if record is None else decode_record(record, verify=False).store_timestamp
    except CorruptRecord:
        return None


if __name__ == "__main__":
    sys.exit(main())
