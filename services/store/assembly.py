"""Putting the broker together over an open store."""

import os

from tandemmq.common.client_channel import Dialer
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.broker import Broker, Traffic
from tandemmq.store.broker.duplicates import DuplicateWindow
from tandemmq.store.broker.group_transfer import GroupTransfer
from tandemmq.store.broker.long_poll import LongPolls
from tandemmq.store.broker.offsets import Catalog
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.send import Sender
from tandemmq.store.broker.topics import LocalTopicTable, TopicTable
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metasync_link import MetasyncLink
from tandemmq.store.settings import StoreSettings


def make_broker(settings: StoreSettings, store: MessageStore, topics: TopicTable, traffic: Traffic) -> Broker:
    """The broker over an open store."""
    clock = SystemClock()
    rules = settings.send_rules()
    ids = UniqueIdGenerator(rules.store_host.ip.packed, os.getpid(), id(store))
    puller = Puller(store, topics, settings.slave_read_rules())
    finder = Finder(store, settings.max_msgs_num_batch)
    acknowledgement = Acknowledgement(store, GroupTransfer(settings.replication_rules(), store.timers))
    return Broker(
        store=store,
        topics=topics,
        sender=Sender(store, topics, acknowledgement, rules, clock, ids.next, _duplicates(settings, store, finder)),
        acknowledgement=acknowledgement,
        puller=puller,
        polls=LongPolls(store),
        finder=finder,
        catalog=Catalog(store, topics, puller),
        traffic=traffic,
    )


def _duplicates(settings: StoreSettings, store: MessageStore, finder: Finder) -> DuplicateWindow | None:
    """The window in which copies are recognized, if there is one."""
    if not settings.deduplication_window:
        return None
    window = DuplicateWindow(settings.deduplication_window, SystemClock(), finder.newest)
    store.replica.mastership.changed.listen(window.begin_anew)
    return window


def open_topics(settings: StoreSettings) -> tuple[TopicTable, MetasyncLink | None]:
    """The topic table: config/topics.json; or a copy of metasync's, with the link that keeps it current.

    Raises UnreadableTable, UnreadableCertificate, UnreadableSecret.
    """
    root, disk = settings.store_path_root_dir, LocalDisk()
    if settings.metasync_address is None:
        return LocalTopicTable(root, disk, SystemClock()), None
    topics = WatchedTopicTable(root, disk)
    dialer = Dialer(settings, settings.metasync_tls_trust_cert_path, "metasyncTlsTrustCertPath")
    return topics, MetasyncLink(settings.metasync_address, topics, dialer)
