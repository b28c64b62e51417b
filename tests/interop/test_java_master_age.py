"""Our node was away for days, in which the files of its RocketMQ master went: it goes on, or is told to begin anew."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tests.faults.pair import REFUSED, Node
from tests.faults.pair_checks import assert_logs_equal, log_files
from tests.faults.pair_process import until
from tests.faults.test_pair_history import FILE_SIZE
from tests.interop.messages import Contents, Sent, Source, send_to_rocketmq
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.interop.test_java_master_tables import commit, make_group, make_topic
from tests.interop.test_java_master_whole import OurSlave, has
from tests.interop.test_java_pair import contents_at_ours, contents_of_java, wait_our_level

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

DAYS = 4 * 24 * 3_600
SECONDS = 180.0
"""RocketMQ looks for old files a minute after its start, and then as often as `EXPIRES` says."""

EXPIRES = {
    "fileReservedTime": 72,
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),  # at any hour
    "cleanResourceInterval": 1_000,
}


def expire(master: RocketMQ, remoting: Remoting, end: int) -> int:
    """Makes the master's files below `end` four days old, and waits until they are gone; where its log begins then."""
    for begin, path in log_files(master.root).items():
        if begin + FILE_SIZE <= end:
            old = time.time() - DAYS
            os.utime(path, (old, old))
    wanted = end - end % FILE_SIZE
    until(lambda: begin_of(remoting) >= wanted, SECONDS, lambda: f"it begins at {begin_of(remoting)}, not {wanted}")
    return begin_of(remoting)


def begin_of(remoting: Remoting) -> int:
    """Where RocketMQ's log begins."""
    return int(remoting.runtime()["commitLogMinOffset"])


def refusal(node: Node) -> str:
    """Why our slave follows no more; empty while it does, or has not come to an end yet."""
    status = node.status()
    return status.follower.problem if status is not None and status.follower.state == REFUSED else ""


@contextmanager
def followed(version: str, directory: Path) -> Iterator[tuple[RocketMQ, OurSlave, Remoting]]:
    """A master with tables, and our node that has followed it so far."""
    settings = {"brokerRole": "ASYNC_MASTER", "haSendHeartbeatInterval": 1_000, **EXPIRES}
    master = RocketMQ(version, directory / "theirs", **settings, brokerName="pair")
    master.start()
    slave = OurSlave(directory / "ours", master)
    try:
        with master.connect() as remoting:
            make_topic(remoting, "T", 3)
            make_group(remoting, "G", 7)
            for body in (b"1", b"2", b"3"):
                remoting.send("T", 0, body, b"")
            commit(remoting, 1)
            yield master, slave, remoting
    finally:
        slave.node.close()
        master.kill()


@pytest.mark.parametrize("version", VERSIONS)
def test_away_while_files_of_the_master_rolled_and_went(version: str, tmp_path: Path) -> None:
    """At first the master still has what comes next; later it has not, and the slave begins anew where that begins."""
    need_rocketmq(version)
    source, sent = Source(1), list[Sent]()
    with followed(version, tmp_path) as (master, slave, remoting):
        sent += send_to_rocketmq(remoting, source, 600)
        slave.node.start()
        had = wait_our_level(slave.node, remoting)
        slave.node.kill()
        sent += send_to_rocketmq(remoting, source, 400)
        begin = expire(master, remoting, had - FILE_SIZE)
        assert 2 * FILE_SIZE <= begin < had
        make_topic(remoting, "T", 4)
        commit(remoting, 2)
        slave.node.start()
        end = wait_our_level(slave.node, remoting)
        has(slave.tables, (4, 7, 2))
        assert_logs_equal(master.root, slave.node.root, end, begin=begin)

        slave.node.kill()
        sent += send_to_rocketmq(remoting, source, 600)
        begin = expire(master, remoting, end + 2 * FILE_SIZE)
        assert begin > end
        commit(remoting, 3)
        slave.node.start()
        until(lambda: refusal(slave.node), SECONDS, lambda: f"it is not refused: {slave.node.status()}")
        assert "tandem replica reseed" in refusal(slave.node)
        assert slave.node.role().max_offset == end, "nothing is appended behind a gap"
        slave.node.stop()
        done = CliRunner().invoke(app, ["replica", "reseed", "--data", str(slave.node.root)])
        assert done.exit_code == 0, done.output
        slave.node.start()
        sent += send_to_rocketmq(remoting, source, 200)
        end = wait_our_level(slave.node, remoting)
        has(slave.tables, (4, 7, 3))
        assert slave.node.role().min_offset == begin
        there = [one for one in sent if one.physical_offset >= begin]
        theirs = contents_of_java(remoting, there)
        slave.node.stop()
    assert_logs_equal(master.root, slave.node.root, end, begin=begin)
    ours = contents_at_ours(slave.node.root)
    ours.hold_all(there)
    theirs.be_the_same_as(Contents({name: ours.queues[name] for name in theirs.queues}))
