"""A topic's own retention, from the command to what consumers get; over a kill, and after a promotion."""

import asyncio
import json
import re
import time
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tandemmq.client import PulledStatus
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.admin_process import AdminProcess
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import classic, port_of
from tests.faults.pair import SMALL, Node, Pair
from tests.faults.pair_process import until
from tests.unit.broker.broker_kit import SetClock
from tests.unit.log.replica_kit import message

pytestmark = [pytest.mark.timeout(300)]

HOUR_MS = 3_600_000
HOURS = 24
OTHER, TOPIC = "Topic0", "Topic2"
"""The topics and queue 0 that `message` gives to messages 0, 12, … and 2, 8, …."""


def store_a_day(root: Path) -> None:
    """One message of each topic every hour, the last ones half an hour ago."""

    async def run() -> None:
        clock = SetClock(int(time.time() * 1000) - HOUR_MS // 2 - (HOURS - 1) * HOUR_MS)
        config = StoreConfig(
            root, mapped_file_size_commit_log=int(str(SMALL["mappedFileSizeCommitLog"])),
            mapped_file_size_consume_queue=4_000, max_hash_slot_num=500, max_index_num=2_000, prefault_bytes=0,
        )  # fmt: skip
        store = MessageStore.open(config, clock=clock)
        store.start()
        for hour in range(HOURS):
            store.append(message(6 * hour))
            store.append(message(6 * hour + 2))
            clock.now += HOUR_MS
        await store.close()

    asyncio.run(run())


def begins(node: Node, topic: str = TOPIC) -> int:
    """The first offset that a node's store tells."""
    with node.client() as client:
        return client.offsets(topic)[0].min_offset


def begins_at(node: Node, offset: int) -> bool:
    return begins(node) == offset


def is_saved(node: Node, attribute: str) -> bool:
    """Whether a node's store has a topic's attribute in its own copy, which is written a while after the change."""
    copy = node.root / "tandem.topics"
    return copy.exists() and attribute.encode() in copy.read_bytes()


@pytest.mark.slow
def test_from_the_command_to_a_promoted_slave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_a_day(tmp_path / "a" / "store")
    with (
        Pair(tmp_path, "ASYNC_MASTER", store={"cleanResourceInterval": 50}) as pair,
        AdminProcess(tmp_path / "admin", {"one": pair.master, "two": pair.slave}) as admin,
    ):
        monkeypatch.setenv("TANDEM_ADMIN_ADDRESS", admin.address)

        def tandem(*arguments: str) -> str:
            done = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert done.exit_code == 0, done.output
            return done.stdout

        for topic in (OTHER, TOPIC):
            tandem("topic", "create", topic, "--queues", "1")
        assert (begins(pair.master), begins(pair.slave)) == (0, 0)
        assert "messages kept for 6 h" in tandem("topic", "update", TOPIC, "--retention", "6")
        for node in pair.nodes:
            until(partial(begins_at, node, HOURS - 6), 60, lambda: f"it begins later: {pair.describe()}")
            assert begins(node, OTHER) == 0
        found = json.loads(tandem("topic", "show", TOPIC, "--json"))
        assert [(one["min_offset"], one["max_offset"]) for one in found["queues"]] == [(HOURS - 6, HOURS)]
        assert found["topics"][0]["config"]["attributes"] == {"reserve.time": "6"}

        until(partial(is_saved, pair.master, "reserve.time"), 60, lambda: "the store's copy of its topics lacks it")
        pair.master.store.kill()
        pair.heal()
        assert begins(pair.master) == HOURS - 6, "before anybody gets a message"
        with pair.master.client() as client:
            pulled = client.pull(TOPIC, 0, 0)
            assert (pulled.status, pulled.next_offset) == (PulledStatus.OFFSET_TOO_SMALL, HOURS - 6)
            assert len(client.pull(TOPIC, 0, HOURS - 6).records) == 6
            old, new = (client.query(TOPIC, key=f"key{6 * hour + 2}") for hour in (3, HOURS - 1))
            assert (len(old), len(new)) == (0, 1)

        pair.master.kill()
        request = replication_pb2.PromoteRequest(
            role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True, accept_loss=True
        )
        pair.slave.replication().Promote(request, timeout=60)
        assert (begins(pair.slave), begins(pair.slave, OTHER)) == (HOURS - 6, 0)


def test_what_classic_tools_see_of_it(tmp_path: Path) -> None:
    """The attribute is set as mqadmin does; a group is not behind by what is hidden."""
    store_a_day(tmp_path / "store")
    with (
        classic(tmp_path / "store", clean_resource_interval=50) as store,
        ClassicClient(port_of(store)) as client,
    ):
        numbers = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "order": "false"}
        for topic, attributes in ((OTHER, ""), (TOPIC, "+reserve.time=6")):
            said = {"topic": topic, "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", **numbers}
            client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, said | {"attributes": attributes})
            client.pull("group", topic, 0)
            place = {"group": "group", "topic": topic, "timestamp": 0, "queueId": 0, "offset": 3, "isForce": "true"}
            client.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, place)

        def stands(topic: str) -> tuple[int, int]:
            fields = {"consumerGroup": "group", "topic": topic}
            text = client.ask(RequestCode.GET_CONSUME_STATS, fields).body.decode()
            found = re.search(r'"brokerOffset":(\d+),"consumerOffset":(\d+)', text)
            assert found, text
            return int(found[2]), int(found[1])

        until(lambda: stands(TOPIC) == (HOURS - 6, HOURS), 60, lambda: f"the rest is hidden: {stands(TOPIC)}")
        assert stands(OTHER) == (3, HOURS)
