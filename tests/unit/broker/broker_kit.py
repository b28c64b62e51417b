"""A broker over a real store in a temporary directory, with small files and a clock that the test sets."""

from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from tandemmq.common.timers import Timers
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.duplicates import DuplicateWindow
from tandemmq.store.broker.group_transfer import GroupTransfer, ReplicationRules
from tandemmq.store.broker.long_poll import LongPolls
from tandemmq.store.broker.offsets import Catalog
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import PullAnswer, Wanted
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.send import NewMessage, Sender, SendRules
from tandemmq.store.broker.tags import parse_tags
from tandemmq.store.broker.topics import LocalTopicTable, TopicConfig
from tandemmq.store.format.host import Host
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import Disk, LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics

HOST = Host("10.0.0.1", 10911)
FILE_SIZE = 64 * 1024


@dataclass
class SetClock:
    """A clock that stands until the test moves it."""

    now: int = 1_760_000_000_000

    def now_ms(self) -> int:
        return self.now


Result = TypeVar("Result")


@dataclass
class Kit:
    """A store with its broker."""

    store: MessageStore
    clock: SetClock
    topics: LocalTopicTable
    sender: Sender
    puller: Puller
    finder: Finder
    catalog: Catalog
    polls: LongPolls
    broker: Broker
    traffic: StoreMetrics
    sent: list[int] = field(default_factory=list)

    def send(self, topic: str, body: bytes = b"", queue_id: int = 0, /, **properties: str) -> int:
        """Sends a message and gives its physical offset."""
        if self.topics.get(topic) is None:
            self.topics._entries[topic] = TopicConfig(topic, 4, 4)
        message = NewMessage(topic, HOST, body, dict(properties), queue_id)
        _, place = self.sender.store(self.sender.check(message, {}, wait=True))
        self.sent.append(place.physical_offset)
        return place.physical_offset

    async def dispatched(self) -> None:
        """Waits until everything sent can be seen."""
        await self.store.wait_flushed(self.store.commit_log.max_offset)
        await self.store._dispatcher.drain()

    def pull(self, topic: str, queue_id: int = 0, offset: int = 0, tags: str = "", **limits: int) -> PullAnswer:
        """Pulls, with large limits unless told otherwise."""
        most = {"max_messages": 1000, "max_bytes": 1 << 20, **limits}
        wanted = Wanted(topic, queue_id, offset, most["max_messages"], most["max_bytes"], parse_tags(tags))
        return self.puller.pull(wanted)


def in_one_step(call: Coroutine[Any, Any, Result]) -> Result:
    """The result of a call that does not wait."""
    try:
        waits_for = call.send(None)
    except StopIteration as end:
        return cast(Result, end.value)
    raise AssertionError(f"suspended by {waits_for}")


@asynccontextmanager
async def broker(
    root: Path,
    *,
    disk: Disk | None = None,
    rules: dict[str, Any] | None = None,
    window: int = 0,
    clock: SetClock | None = None,
    timers: Timers | None = None,
    **settings: Any,
) -> AsyncIterator[Kit]:
    """An open store; closed cleanly at the end."""
    clock, disk = clock or SetClock(), disk or LocalDisk()
    config = StoreConfig(
        **{
            "store_path_root_dir": root,
            "mapped_file_size_commit_log": FILE_SIZE,
            "mapped_file_size_consume_queue": 2_000,
            "max_hash_slot_num": 50,
            "max_index_num": 500,
            "prefault_bytes": 0,
            "sync_flush_timeout": 60_000,  # a busy disk is no failure
            "compiled_walker": "never",
            **settings,
        }
    )
    store = MessageStore.open(config, disk=disk, clock=clock, timers=timers)
    store.start()
    topics = LocalTopicTable(root, disk, clock)
    puller = Puller(store, topics)
    send_rules = SendRules(
        **{"store_host": HOST, "file_size": FILE_SIZE, "max_message_size": 16 * 1024, **(rules or {})}
    )
    finder = Finder(store, 64)
    acknowledgement = Acknowledgement(store, GroupTransfer(ReplicationRules(), store.timers))
    sender = Sender(store, topics, acknowledgement, send_rules, clock, UniqueIdGenerator(b"\x0a\0\0\1", 1, 1).next)
    if window:
        sender.duplicates = DuplicateWindow(window, clock, finder.newest, log_end=lambda: store.commit_log.max_offset)
    catalog, polls = Catalog(store, topics, puller), LongPolls(store)
    traffic = StoreMetrics("cluster", "node")
    port = Broker(store, topics, sender, acknowledgement, puller, polls, finder, catalog, traffic)
    kit = Kit(store, clock, topics, sender, puller, finder, catalog, polls, port, traffic)
    try:
        yield kit
    finally:
        await store.close()


def records(pulled: PullAnswer) -> list[Record]:
    """The records of an answer."""
    found, at = [], 0
    while at < len(pulled.records):
        found.append(decode_record(pulled.records, at))
        at += found[-1].size
    assert len(found) == pulled.count
    return found


def bodies(pulled: PullAnswer) -> list[bytes]:
    """The bodies of an answer."""
    return [record.body for record in records(pulled)]
