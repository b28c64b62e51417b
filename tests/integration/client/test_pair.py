"""Clients of a pair: whatever address they have, they find the master; and a master that dies or hangs is left."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tandemmq.client import (
    Consumer,
    NotMaster,
    NotReplicated,
    Outgoing,
    Producer,
    SendStatus,
    StoreClient,
    StoreUnreachable,
    aio,
)
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.faults.pair import Node, Pair
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KNOWN_SECONDS = 60


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A pair whose slave knows where clients find the master."""
    with Pair(tmp_path_factory.mktemp("pair")) as running:
        until(lambda: leader(running.slave) == running.master.address("store"), KNOWN_SECONDS, "the slave is told")
        yield running


def leader(node: Node) -> str | None:
    """Where a node sends those who want a master; None if it is one."""
    with node.client() as client:
        try:
            client.send("orders", b"x")
        except NotMaster as error:
            return error.leader
    return None


def addresses(pair: Pair) -> list[str]:
    return [pair.slave.address("store"), pair.master.address("store")]


def test_a_slave_says_who_is_master(pair: Pair) -> None:
    with pair.slave.client() as client:
        with pytest.raises(NotMaster, match="this store is a slave") as refused:
            client.send("orders", b"x")
        assert (refused.value.code, refused.value.status) == ("UNAVAILABLE", "SERVICE_NOT_AVAILABLE")
        with pytest.raises(NotMaster) as refused:
            list(client.send_stream("orders", [[Outgoing("orders", b"x")]]))
        assert refused.value.leader == pair.master.address("store")


def test_who_knows_the_slave_finds_the_master(pair: Pair) -> None:
    only = pair.slave.address("store")
    with Producer(only) as producer, Consumer(only, group="g", topic="found") as consumer:
        sent = producer.send("found", "once")
        assert sent.status is SendStatus.PUT_OK
        message = consumer.receive(30)
        assert message is not None
        assert message.unique_key == sent.unique_key
        message.ack()
        assert consumer.receive(0.2) is None


def test_a_store_client_of_both_goes_to_the_master(pair: Pair) -> None:
    with StoreClient(addresses(pair)) as client:
        receipt = client.send("both", b"0", queue_id=0)
        batches = [[Outgoing("both", b"%d" % n)] for n in (1, 2)]
        assert [one.first_queue_offset for one in client.send_stream("both", batches, queue_id=0)] == [1, 2]
        assert [one.body for one in client.pull("both", 0, receipt.queue_offset).records] == [b"0", b"1", b"2"]
    with StoreClient(",".join(addresses(pair))) as client:
        stream = client.pull_stream("both", 0, 2)
        assert [one.body for one in next(stream).records] == [b"2"]
        stream.close()


async def test_the_same_for_asyncio(pair: Pair) -> None:
    async with aio.StoreClient(addresses(pair)) as client:
        await client.send("both-aio", b"0", queue_id=0)

        async def batches() -> AsyncIterator[list[Outgoing]]:
            yield [Outgoing("both-aio", b"1")]

        assert [one.first_queue_offset async for one in client.send_stream("both-aio", batches(), queue_id=0)] == [1]
        assert [one.body for one in (await client.pull("both-aio", 0, 0)).records] == [b"0", b"1"]


def test_commands_take_both_addresses(pair: Pair) -> None:
    both = ",".join(addresses(pair))
    sent = tandem("send", "by-command", "one", "--address", both)
    assert (sent.returncode, sent.stderr) == (0, "")
    many = tandem("send", "by-command", "more", "--count", "200", "--address", both)
    assert many.returncode == 0, many.stderr
    assert "201 messages" in tandem("pull", "by-command", "--max", "0", "--address", both).stderr
    refused = tandem("send", "by-command", "to the slave", "--address", pair.slave.address("store"))
    assert refused.returncode == 1
    assert "this store is a slave" in refused.stderr
    assert tandem("pull", "by-command", "--address", f"{both},nowhere").returncode == 2


def tandem(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tandemmq.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_what_no_slave_has_is_told(pair: Pair) -> None:
    with Producer(addresses(pair)) as producer:
        producer.send("alone", "with a slave")
        pair.slave.replicator.kill()
        try:
            until(lambda: producer.send("alone", "x", any_status=True).status != "PUT_OK", 60, "the slave is gone")
            with pytest.raises(NotReplicated) as failed:
                producer.send("alone", "nobody else has it")
            assert failed.value.retriable
            (sent,) = failed.value.sent
            with pytest.raises(NotReplicated) as failed:
                producer.send_batch([Outgoing("alone", b"1"), Outgoing("alone", b"2")])
            assert len(failed.value.sent) == 2
        finally:
            pair.heal()
    with pair.master.client() as client:  # consumers see it when a slave has it
        record = client.pull("alone", sent.queue_id, sent.queue_offset).records[0]
    assert record.body == b"nobody else has it"


def promote(node: Node) -> None:
    """Its master is dead."""
    request = replication_pb2.PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
    node.replication().Promote(request, timeout=60)


def test_a_replaced_master_says_who_has_replaced_it(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        old, new = pair.nodes
        until(lambda: new.role().group.members, KNOWN_SECONDS, "the slave knows its master's group")
        with Producer(old.address("store"), keep_trying=60) as producer:
            producer.send("orders", "to the old one")
            with Producer([old.address("store"), new.address("store")], keep_trying=60) as of_both:
                old.kill()
                promote(new)
                assert of_both.send("orders", "to the new one").status is SendStatus.PUT_OK
            old.start()
            until(lambda: leader(old) == new.address("store"), KNOWN_SECONDS, lambda: f"{leader(old)}")
            assert producer.send("orders", "by way of the old one").status is SendStatus.PUT_OK
            old.store.kill()
            old.store.start()
            until(lambda: leader(old) == new.address("store"), KNOWN_SECONDS, "it is told again after a restart")


async def test_a_master_that_hangs_is_left(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        old, new = pair.nodes
        until(lambda: new.role().group.members, KNOWN_SECONDS, "the slave knows its master's group")
        async with aio.Producer([old.address("store"), new.address("store")], keep_trying=120) as producer:
            await producer.send("orders", "before")
            with StoreClient(old.address("store")) as client:
                stream = client.pull_stream("orders", 3, 0)
                waiting = asyncio.create_task(asyncio.to_thread(next, stream))
                for process in old.processes.values():
                    assert process.process is not None
                    process.process.send_signal(signal.SIGSTOP)
                sending = asyncio.create_task(producer.send("orders", "meanwhile"))
                with pytest.raises(StoreUnreachable):
                    await waiting
            old.kill()
            promote(new)
            assert (await sending).status is SendStatus.PUT_OK
