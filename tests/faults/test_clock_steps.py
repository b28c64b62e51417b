"""The wall clock is set forward and back, by seconds to hours: nothing is lost, and no store time goes back.

What waits, or measures how long something took, asks the monotonic clock; so the places that read the wall clock are
listed here.
"""

import random
import re
import shutil
from pathlib import Path

import pytest

from tandemmq.store.log.message_store import MessageStore
from tests.faults.checker import Ack, Checker
from tests.faults.harness import (
    QUEUES,
    audit,
    batch,
    message,
    records_on_disk,
    settle,
    small_config,
    value_parts,
)
from tests.faults.test_traps import HandClock
from tests.seed import SEED

REPOSITORY = Path(__file__).resolve().parents[2]
LIVES, SENDS = 12, 25
STEPS_MS = (1, 999, 1_000, 60_000, 3_600_000, 5 * 3_600_000)

WALL_CLOCK = {
    "services/admin/actions/actions.py",  # when somebody did something
    "services/admin/cluster/cluster.py",  # ages of what nodes have said
    "services/admin/history/collected.py",  # when the nodes were asked; ages of what they said
    "services/admin/catalogue/groups.py",  # how old a message is that is next
    "services/admin/jobs/jobs.py",  # when a job began and ended
    "services/admin/books/mirror.py",  # when the copy was current
    "services/admin/messages/postponed.py",  # what was due long ago
    "services/admin/messages/tail.py",  # messages since now
    "services/cli/demo/ledger.py",  # unique ids
    "services/cli/messaging/special.py",  # whether the time of --at is past
    "services/cli/nouns/group_view.py",  # how old a message is that is next
    "services/cli/talk/moments.py",  # "an hour ago"
    "services/cli/nouns/node.py",  # how long a node has been up
    "services/cli/pair/reseed.py",  # the name of a directory
    "services/client/encode.py",  # born time, unique ids
    "services/client/outgoing.py",  # unique ids
    "services/metasync/java_master.py",  # versions of tables, which never go back
    "services/metasync/keeper.py",  # versions of tables, which never go back
    "services/store/classic_clients.py",  # since when the broker runs, told to tools
    "services/store/delivery_metrics.py",  # how old messages are
    "services/store/fronts/remoting/administration/broker_status.py",  # the same
    "services/store/fronts/remoting/administration/consumption.py",  # how old a message is that is next, told to tools
    "services/store/fronts/remoting/commands.py",  # when a reset was made, told to clients
    "services/store/fronts/remoting/popping.py",  # when an answer was given, told to its client
    "services/store/fronts/remoting/replies.py",  # when a reply was passed on, told to its client
    "services/store/fronts/rocketmq5/receiving.py",  # when an answer was given, told to its client
    "services/store/fronts/rocketmq5/sent_message.py",  # how far ahead a time is at which a message is to come
    "services/store/log/edges/clock.py",  # store times, which never go back; expiry of files
    "services/store/metrics.py",  # how far back messages reach
    "spark/auditing/audit_job.py",  # when the report was made
    "spark/export.py",  # which messages their topics still keep
    "spark/rebuilding/rebuild_job.py",  # the name of an index file
}
"""Who tells people, records or versions what time it is. Nothing else may depend on a clock that can be set."""


@pytest.mark.slow
async def test_nothing_is_lost_and_no_store_time_goes_back(tmp_path: Path) -> None:
    chance, clock, checker = random.Random(SEED), HandClock(), Checker()
    root = tmp_path / "0"
    for life in range(1, LIVES + 1):
        config = small_config(root, sync=chance.random() < 0.5, file_reserved_time=100_000)
        store = MessageStore.open(config, clock=clock)
        store.start()
        checker.begin(life)
        await store.rebuilt()
        acks: list[Ack] = []
        for number in range(0, 2 * SENDS, 2):
            clock.now += chance.choice((-1, 1)) * chance.choice(STEPS_MS)
            values, queue = [f"c{life}-p0-{number}", f"c{life}-p0-{number + 1}"], chance.choice(QUEUES)
            if chance.random() < 0.5:
                done = store.append_batch(batch(queue, values))
                ends = [*done.physical_offsets[1:], done.end_offset]
                places = [(done.first_queue_offset + at, done.physical_offsets[at], ends[at]) for at in range(2)]
            else:
                one = [store.append(message(queue, value)) for value in values]
                places = [(place.queue_offset, place.physical_offset, place.end_offset) for place in one]
            for value, (offset, physical, end) in zip(values, places, strict=True):
                acks.append(Ack(value, *value_parts(value), queue, offset, physical, end - physical, 0))
            if chance.random() < 0.1:
                await store._checkpointer.take()
        await settle(store)
        found = await audit(store)
        sums = {record.value: record.crc for record in found.records}
        for ack in acks:
            checker.ack(ack._replace(crc=sums[ack.value]))
        checker.audit(found)
        assert not checker.problems
        times = [record.store_timestamp for _, _, record in records_on_disk(root, found.log_max)]
        assert times == sorted(times)
        killed = tmp_path / f"{life}"
        if chance.random() < 0.5:
            shutil.copytree(root, killed, ignore=shutil.ignore_patterns("*.tmp"))
            root = killed
        await store.close()


def test_who_reads_the_wall_clock() -> None:
    reads = re.compile(r"time\.time\(|time\.time_ns\(|datetime\.now\(|datetime\.utcnow\(")
    paths = [path for folder in ("services", "spark") for path in (REPOSITORY / folder).rglob("*.py")]
    found = {f"{path.relative_to(REPOSITORY)}" for path in paths if reads.search(path.read_text())}
    assert {path for path in found if not path.startswith("services/spark/")} == WALL_CLOCK
