"""Directories for the byte-damage campaign: what real stores have written, with every kind of file there is."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.files.boot import boot_id
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.standing import NodeRole, Standing, StandingKeeper
from tandemmq.metasync.tables import TableKind
from tandemmq.store.broker.topics import LocalTopicTable, TopicConfig
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.members.groups import GroupConfig, WatchedGroupTable
from tandemmq.store.format.audit_result import NAME as AUDIT
from tandemmq.store.format.audit_result import AuditResult
from tandemmq.store.format.replica_stretch import MarkWords
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import CorruptReplica
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.replica.replica_group import GroupFile, GroupMember, ReplicaGroup
from tandemmq.store.log.replica.replica_mark import NAME as MARK
from tests.access_users import access_text
from tests.faults.harness import FOREVER, PATIENCE_MS, QUEUES, message, settle, small_config
from tests.golden import copy_of, golden_store
from tests.unit.log.staging_kit import NAME as STAGING
from tests.unit.log.staging_kit import stage

MESSAGES = 240
GROUP = ReplicaGroup(
    epoch=1, generation=3, needed=1, needed_before=1, members=(GroupMember("b", "90ab", "10.0.0.7:8084"),)
)
FIRST_MS = 1_750_000_000_000


class CountingClock:
    """A clock that goes on by one at each look: the same scene each time."""

    def __init__(self, now: int = FIRST_MS) -> None:
        self.now = now

    def now_ms(self) -> int:
        self.now += 1
        return self.now


def quiet(root: Path, role: str = "ASYNC_MASTER") -> StoreConfig:
    """Settings under which nothing happens by itself."""
    return small_config(
        root, broker_role=role, flush_interval_commit_log=FOREVER, flush_interval_consume_queue=FOREVER,
        clean_resource_interval=FOREVER, sync_flush_timeout=PATIENCE_MS, file_reserved_time=1_000_000,
    )  # fmt: skip


def golden_sizes(root: Path) -> StoreConfig:
    """Those of the golden stores."""
    return StoreConfig(
        root, mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=10_000, max_hash_slot_num=2_000,
        max_index_num=8_000, message_delay_levels=(1_000, 2_000, 3_000, 3_600_000), file_reserved_time=1_000_000,
        prefault_bytes=0, compiled_walker="never",
    )  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """A directory that nobody has damaged yet."""

    name: str
    root: Path
    config: Callable[[Path], StoreConfig]
    staged: bool = False
    """It has rebuilt files that are to be taken over."""
    master_log: bytes = b""
    """Of a slave: its master's log, whose messages may be there before they are acknowledged."""

    @property
    def log_files(self) -> list[Path]:
        return sorted((self.root / "commitlog").iterdir())


async def all_scenes(directory: Path, *, golden: bool) -> list[Scene]:
    """A master that was closed, one that was killed, a slave that was killed while it wrote, and a RocketMQ store."""
    clean, killed = directory / "clean", directory / "killed"
    await _master(clean, killed)
    await _tables(clean)
    await _metasync(clean)
    shutil.copytree(clean / "config", killed / "config")
    staged = shutil.copytree(killed, directory / "staged")
    end = max(int(path.name) for path in (staged / "commitlog").iterdir())
    stage(quiet(staged), end)
    scenes = [
        Scene("clean", clean, quiet),
        Scene("killed", killed, quiet),
        Scene("staged", staged, quiet, staged=True),
    ]
    log = b"".join(path.read_bytes() for path in scenes[0].log_files)
    slave = await _slave(log, directory / "slave")
    scenes.append(Scene("slave", slave, lambda root: quiet(root, "SLAVE"), master_log=log))
    if golden:
        scenes.append(Scene("golden", copy_of(golden_store("clean") / "store", directory), golden_sizes))
    return scenes


async def _master(root: Path, killed: Path) -> None:
    """A master that was promoted, with rot in its log that it knows of; ``killed``: as it was before it was closed."""
    clock = CountingClock()
    store = MessageStore.open(quiet(root, "SLAVE"), clock=clock)
    store.start()
    await store.replica.promote(BrokerRole.ASYNC_MASTER, 0)
    places = [store.append(message(QUEUES[at % len(QUEUES)], f"c1-p0-{at}")) for at in range(MESSAGES // 2)]
    await settle(store)
    await store.close()
    rotten = places[7].physical_offset
    path = root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[rotten + 95] ^= 1
    path.write_bytes(data)
    (root / "tandem.manifest").unlink()
    (root / "checkpoint").unlink()
    store = MessageStore.open(quiet(root, "SLAVE"), clock=clock)
    assert store.damage
    store.start()
    await store.rebuilt()
    await store._checkpointer.take()
    for at in range(MESSAGES // 2, MESSAGES):
        store.append(message(QUEUES[at % len(QUEUES)], f"c1-p0-{at}"))
    await settle(store)
    shutil.copytree(root, killed, ignore=shutil.ignore_patterns("lock"))
    await store.close()


async def _slave(log: bytes, root: Path) -> Path:
    """A slave of the master of that log, killed while it copied."""
    end = MESSAGES * 100
    store = MessageStore.open(quiet(root, "SLAVE"), clock=CountingClock())
    store.start()
    take_as_it_is(store, log, end)
    await settle_slave(store)
    await store._checkpointer.take()
    take_as_it_is(store, log, end + 5_000)
    await settle_slave(store)
    copy = root.with_name("slave-killed")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("lock"))
    await store.close()
    GroupFile(copy, LocalDisk()).remember(GROUP)
    words, begin = MarkWords(boot_id()), end + 5_000
    (copy / MARK).write_bytes(words.fresh[:24] + b"".join(words.writing(begin, 3_000)))
    path = copy / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[begin + 1_000 : begin + 3_000] = log[begin + 1_000 : begin + 3_000]
    path.write_bytes(data)
    return copy


def take_as_it_is(store: MessageStore, log: bytes, end: int) -> None:
    """Take the log up to `end`; what is damaged in it is the master's own damage."""
    check = store.replica.check
    while (begin := store.commit_log.written_offset) < end:
        try:
            store.append_replica(begin, memoryview(log)[begin:end])
        except CorruptReplica:
            assert check.refused is not None
            assert check.proven != check.refused.which, "it is proven, and refused all the same"
            check.proven = check.refused.which


async def settle_slave(store: MessageStore) -> None:
    """Dispatch what is whole, and make it durable."""
    assert await store.wait_flushed(store.commit_log.max_offset)
    await store._dispatcher.drain()


async def _tables(root: Path) -> None:
    disk = LocalDisk()
    own = LocalTopicTable(root, disk, CountingClock())
    watched = WatchedTopicTable(root, disk)
    for name in sorted({topic for topic, _ in QUEUES}):
        await own.add([TopicConfig(name, 4, 4)])
        await watched.add([TopicConfig(name, 4, 4)])
    await WatchedGroupTable(root, disk).add([GroupConfig("g0"), GroupConfig("g1", retry_max_times=3)])
    GroupFile(root, disk).remember(GROUP)
    signing = root / "access.signing.toml"
    signing.touch(0o600)
    signing.write_text('[secrets]\nalice = "what alice signs with"\n')
    (root / AUDIT).write_bytes(AuditResult(FIRST_MS, 0, 1 << 16, {"rot": 1}, {"time-back": 2}).encode())
    (root / "access.toml").write_text(access_text(alice=["viewer"]))
    (root / "access.toml").chmod(0o600)


async def _metasync(root: Path) -> None:
    standings = standings_of(root)
    for epoch in (1, 2):  # the second leaves the first as its back-up
        await standings._remember(Standing(NodeRole.MASTER, epoch, "store"))
    keeper = Keeper(root)
    for number in range(3):
        stamp = keeper.stamp()
        await keeper.change(keeper.groups, lambda: keeper.groups.put({f"g{number}": {"groupName": "g"}}, stamp))  # noqa: B023
        for topic, queue in QUEUES:
            keeper.offsets.commit(f"{topic}@g{number}", queue, 5 + number)
        keeper.delays.put(number + 1, 10 * number)
        for table, kind in ((keeper.offsets, TableKind.CONSUMER_OFFSETS), (keeper.delays, TableKind.DELAY_OFFSETS)):
            table.changed(stamp)
            keeper.changed(kind, None)
            await keeper.flush(kind)
    await keeper.close()


def standings_of(root: Path) -> StandingKeeper:
    """What metasync knows of a node's role. Raises UnreadableDocument."""
    dialer = Dialer(ServerSettings(), None, "storeTlsTrustCertPath")
    return StandingKeeper(root, BrokerRole.ASYNC_MASTER, "127.0.0.1:8081", dialer)


def kinds_of(root: Path) -> dict[str, list[Path]]:
    """The files of a directory by kind."""
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name not in ("lock", "tandem.metasync.lock"):
            parts = path.relative_to(root).parts
            kind = (
                parts[0] if len(parts) == 1 or parts[0] in ("commitlog", "consumequeue", "index") else "/".join(parts)
            )
            found.setdefault(f"{STAGING}/{parts[1]}" if parts[0] == STAGING else kind, []).append(path)
    return found
