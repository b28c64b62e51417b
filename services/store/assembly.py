"""Putting the broker together over an open store."""

import os
from functools import partial
from typing import NamedTuple

from tandemmq.common.calling.addresses import host_port
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.wire.remoting.registration import BrokerIdentity
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.broker import Broker, Traffic
from tandemmq.store.broker.duplicates import MOST_REMEMBERED, MOST_REPEATABLE, DuplicateWindow
from tandemmq.store.broker.group_transfer import GroupTransfer
from tandemmq.store.broker.hook_calls import HookCalls
from tandemmq.store.broker.hooked_broker import HookedBroker
from tandemmq.store.broker.long_poll import LongPolls
from tandemmq.store.broker.offsets import Catalog
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.send import Sender
from tandemmq.store.broker.topics import LocalTopicTable, TopicTable
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.clock import BootClock
from tandemmq.store.delivery.delays.delays import Delays
from tandemmq.store.delivery.delays.recalls import MessageRecalls
from tandemmq.store.delivery.delays.timer_check_file import TimerCheckFile
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.figures.waiting_figures import WaitingKeeper
from tandemmq.store.delivery.filters.subscriptions import parse
from tandemmq.store.delivery.hooked_delivery import HookedDelivery
from tandemmq.store.delivery.journal.base import Base, SafeBase
from tandemmq.store.delivery.journal.follower import JournalFollower
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.deletions import Deletions
from tandemmq.store.delivery.ledger.durable_cursors import DurableCursors
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.offset_files import OffsetFiles
from tandemmq.store.delivery.ledger.unconsumed import Unconsumed
from tandemmq.store.delivery.lifecycle import Lifecycle
from tandemmq.store.delivery.members.groups import GroupTable, LocalGroupTable, WatchedGroupTable
from tandemmq.store.delivery.opening import BaseKeeper, Opening
from tandemmq.store.delivery.receiving.place_reader import PlaceReader
from tandemmq.store.delivery.receiving.receiving import Receiving
from tandemmq.store.delivery.retries.revivals import Revivals
from tandemmq.store.delivery.transactions.half_log import HalfLog
from tandemmq.store.delivery.transactions.transactions import Transactions
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.fronts.remoting.request_modes import RequestModes
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metasync_link import MetasyncLink
from tandemmq.store.modes_link import ModesLink
from tandemmq.store.names_link import NamesLink
from tandemmq.store.offsets_link import OffsetsLink
from tandemmq.store.registered import CreatedTopics, RegisteredTopics
from tandemmq.store.remoting_settings import addresses_of
from tandemmq.store.settings import StoreSettings
from tandemmq.store.table_edits import LocalEdits, MetasyncEdits, TableEdits


def make_broker(
    settings: StoreSettings, store: MessageStore, topics: TopicTable, traffic: Traffic, hooks: HookCalls | None = None
) -> Broker:
    """The broker over an open store; with `hooks`, one that calls them."""
    clock = SystemClock()
    store.keep_topics(lambda name: 0 if (topic := topics.get(name)) is None else topic.reserve_hours)
    rules = settings.send_rules()
    ids = UniqueIdGenerator(rules.store_host.ip.packed, os.getpid(), id(store))
    puller = Puller(store, topics, settings.slave_read_rules())
    finder = Finder(store, settings.max_msgs_num_batch)
    acknowledgement = Acknowledgement(store, GroupTransfer(settings.replication_rules(), store.timers))
    made = Broker if hooks is None else partial(HookedBroker, hooks=hooks)
    return made(
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


def make_delivery(settings: StoreSettings, broker: Broker, groups: GroupTable | None = None) -> Delivery:
    """Delivery over the store's broker; started when the store is open and has started.

    Without `groups`, those of config/subscriptionGroup.json.
    """
    if groups is None:
        groups = LocalGroupTable(settings.store_path_root_dir, LocalDisk(), SystemClock())
    store, ledger, clock = broker.store, Ledger(), BootClock()
    base, safe_base = Base(store.config.mapped_file_size_commit_log), SafeBase()
    journal = Journal(store, ledger, broker.acknowledgement, settings.store_host(), base, safe_base)
    store.keep_from(lambda: safe_base.at(store.flushed_offset))
    follower = JournalFollower(store, ledger, base, safe_base)
    cursors = DurableCursors(store, journal)
    files = OffsetFiles(store, cursors, LocalDisk(), SystemClock(), keeps=settings.metasync_address is None)
    delays = Delays(broker, journal, SystemClock(), LocalDisk(), settings.store_host(), settings.delay_rules())
    timer_check = TimerCheckFile(store, ledger, delays.index, LocalDisk(), SystemClock(), settings.timer_precision_ms)
    opening = Opening(store, ledger, journal, follower, clock, files, timer_check)
    life = Lifecycle(store, journal, opening.make_ready, opening.follow)
    life.services += [BaseKeeper(store, journal), files]
    if settings.metasync_address is not None:
        dialer = Dialer(settings, settings.metasync_tls_trust_cert_path, "metasyncTlsTrustCertPath")
        life.services.append(OffsetsLink(settings.metasync_address, dialer, store, journal, cursors))
    if isinstance(groups, WatchedGroupTable) and isinstance(broker.topics, WatchedTopicTable):
        life.services.append(Deletions(journal, groups, broker.topics, store.timers))
    store.keep_from(Unconsumed(store, ledger, groups).oldest)
    made = partial(HookedDelivery, broker.hooks) if isinstance(broker, HookedBroker) else Delivery
    delivery = made(broker, groups, ledger, journal, clock, life)
    delivery.follower = follower
    delivery.always.append(delays.follower)
    delivery.transactions = Transactions(
        HalfLog(store, journal, settings.store_host(), clock),
        broker.acknowledgement,
        delivery.sessions,
        settings.transaction_rules(),
        broker.traffic,
    )
    delivery.waiting = WaitingKeeper(delays, delivery.transactions, store.timers)
    delivery.delays = MessageRecalls(broker, SystemClock())
    delivery.timer_check = timer_check.now
    receiving = Receiving(
        broker,
        journal,
        clock,
        groups,
        delivery.sessions,
        settings.store_host(),
        settings.receive_rules(),
        parse,
        delays=settings.delay_rules(),
        wall=SystemClock(),
    )
    delivery.receiving = delivery.cursors = receiving
    revivals = _revivals(settings, broker, groups, journal, delays)
    delivery.services.extend(
        [timer_check, delays, delivery.transactions, receiving, revivals, delivery.ways, delivery.waiting]
    )
    return delivery


def _revivals(
    settings: StoreSettings, broker: Broker, groups: GroupTable, journal: Journal, delays: Delays
) -> Revivals:
    """What reads RocketMQ's notes of pops."""
    store, reader = broker.store, PlaceReader(broker.store, broker.puller)
    host, current = settings.store_host(), lambda: delays.timed.is_current
    return Revivals(store, broker.topics, groups, journal, reader, SystemClock(), host, current)


def names_link(settings: StoreSettings, broker: Broker) -> NamesLink:
    """What registers the broker at the name servers of the settings, if there are any."""
    ip, topics, mastership = settings.own_ip(), broker.topics, broker.store.replica.mastership

    def who(broker_id: int) -> BrokerIdentity:
        address = host_port(ip, settings.listen_port)
        return BrokerIdentity(settings.broker_cluster_name, settings.broker_name, broker_id, address)

    created = CreatedTopics(
        settings.default_topic_queue_nums, settings.auto_create_topic_enable, settings.trace_topic_enable
    )
    ha_address = host_port(ip, settings.ha_listen_port)
    registered = RegisteredTopics(
        who, ha_address, topics, mastership, settings.broker_id, created, SystemClock().now_ms
    )
    period, timeout = settings.register_name_server_period / 1000, settings.register_broker_timeout_mills / 1000
    link = NamesLink(addresses_of(settings.namesrv_addr), registered, period, timeout, broker.store.timers)
    topics.changed.listen(link.changed)
    mastership.changed.listen(link.changed)
    return link


def modes_link(settings: StoreSettings, broker: Broker, modes: RequestModes) -> ModesLink | None:
    """What keeps a slave's request modes its master's; None without metasync, which knows the master.

    Raises UnreadableCertificate, UnreadableSecret.
    """
    if settings.metasync_address is None:
        return None
    dialer = Dialer(settings, settings.metasync_tls_trust_cert_path, "metasyncTlsTrustCertPath")
    store = broker.store
    return ModesLink(settings.metasync_address, dialer, modes, store.replica.mastership, store.timers)


def _duplicates(settings: StoreSettings, store: MessageStore, finder: Finder) -> DuplicateWindow | None:
    """The window in which copies are recognized, if there is one."""
    of_all, of_repeatable = settings.deduplication_window, settings.repeated_send_window
    if not (of_all or of_repeatable):
        return None
    most = MOST_REMEMBERED if of_all else MOST_REPEATABLE
    log = store.commit_log
    newest = log.last_store_timestamp if log.last_store_timestamp or not log.max_offset else None
    window = DuplicateWindow(
        of_all or of_repeatable, SystemClock(), finder.newest, most,
        of_all=bool(of_all), newest=newest, log_end=lambda: log.max_offset,
    )  # fmt: skip
    store.replica.mastership.changed.listen(window.begin_anew)
    return window


class StoreTables(NamedTuple):
    """The store's tables, and what keeps them current."""

    topics: TopicTable
    groups: GroupTable
    link: MetasyncLink | None
    edits: TableEdits


def open_tables(settings: StoreSettings) -> StoreTables:
    """Topics and groups: RocketMQ's files in config/; or copies of metasync's, with the link that keeps them current.

    Raises UnreadableTable, UnreadableCertificate, UnreadableSecret.
    """
    root, disk = settings.store_path_root_dir, LocalDisk()
    if settings.metasync_address is None:
        clock = SystemClock()
        own_topics, own_groups = LocalTopicTable(root, disk, clock), LocalGroupTable(root, disk, clock)
        return StoreTables(own_topics, own_groups, None, LocalEdits(own_topics, own_groups))
    topics, groups = WatchedTopicTable(root, disk), WatchedGroupTable(root, disk)
    dialer = Dialer(settings, settings.metasync_tls_trust_cert_path, "metasyncTlsTrustCertPath")
    link = MetasyncLink(settings.metasync_address, topics, dialer, groups)
    return StoreTables(topics, groups, link, MetasyncEdits(settings.metasync_address, dialer, topics, groups))


def open_topics(settings: StoreSettings) -> tuple[TopicTable, MetasyncLink | None]:
    """The table of topics alone; see `open_tables`."""
    tables = open_tables(settings)
    return tables.topics, tables.link
