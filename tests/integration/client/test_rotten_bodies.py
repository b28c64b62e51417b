"""One byte of a body changes while the store is stopped: every other message arrives, and the store learns of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandemmq.client import Consumer, Pulled, PulledStatus, RequestFailed, StoreClient, aio
from tandemmq.store.v1 import store_pb2
from tests.campaigns import in_campaigns
from tests.contract.store_process import StoreProcess
from tests.integration.test_cli import tandem

MESSAGES = 20
TOPIC = "orders"


def body(number: int) -> bytes:
    return b"message %02d of them all" % number


def others(rotten: int) -> list[bytes]:
    return [body(number) for number in range(MESSAGES) if number != rotten]


@contextmanager
def rotten_store(directory: Path, rotten: int) -> Iterator[tuple[StoreProcess, store_pb2.SendReceipt]]:
    """A store whose clean start has not seen that one of its bodies has changed; and that message's receipt."""
    with StoreProcess(directory / "store") as store:
        with store.client() as client:
            receipts = [client.send(TOPIC, body(n), keys=["k"], queue_id=0) for n in range(MESSAGES)]
        assert store.stop() == 0
        log = next((directory / "store" / "commitlog").iterdir())
        data = bytearray(log.read_bytes())
        data[data.index(body(rotten)) + 3] ^= 1
        log.write_bytes(data)
        store.start()
        assert damage(store) == []
        yield store, receipts[rotten]


def damage(store: StoreProcess) -> list[int]:
    """Where the store knows of damage, by its contract; and its metric says the same."""
    with store.client() as client:
        known = client.queues().log.damaged
    line = next(line for line in store.scrape() if line.startswith("tandem_damaged_ranges{"))
    assert float(line.split()[-1]) == len(known)
    return [one.begin_offset for one in known]


def pull(client: StoreClient) -> Pulled:
    return client.pull(TOPIC, 0, 0, max_messages=1000)


def stream(client: StoreClient) -> Pulled:
    found: list[Pulled] = []
    for answer in client.pull_stream(TOPIC, 0, 0):
        found.append(answer)
        if answer.next_offset == MESSAGES:
            break
    records = [record for answer in found for record in answer.records]
    damaged = [record for answer in found for record in answer.damaged]
    return Pulled(PulledStatus.FOUND, records, MESSAGES, 0, MESSAGES, damaged)


@pytest.mark.parametrize("read", [pull, stream])
@pytest.mark.parametrize("rotten", [7, *in_campaigns(0, MESSAGES - 1)])
def test_a_pull_gives_all_others(tmp_path: Path, read: Callable[[StoreClient], Pulled], rotten: int) -> None:
    with rotten_store(tmp_path, rotten) as (store, receipt), store.client() as client:
        first = read(client)
        assert [record.body for record in first.records] == others(rotten)
        assert [record.queue_offset for record in first.damaged] == [rotten]
        assert first.next_offset == MESSAGES
        assert damage(store) == [receipt.physical_offset], "the store was asked for it, and noticed"
        again = read(client)
        assert [record.body for record in again.records] == others(rotten)
        assert again.damaged == [], "it is read around from then on"
        store.restart()
        assert damage(store) == [receipt.physical_offset]


@pytest.mark.slow
async def test_pulls_for_asyncio(tmp_path: Path) -> None:
    with rotten_store(tmp_path, 7) as (store, receipt):
        async with aio.StoreClient(store.address) as client:
            async for streamed in client.pull_stream(TOPIC, 0, 0):
                assert [record.queue_offset for record in streamed.damaged] == [7]
                assert [record.body for record in streamed.records] == others(7)
                break
            pulled = await client.pull(TOPIC, 0, 0, max_messages=1000)
            assert [record.body for record in pulled.records] == others(7)
        assert damage(store) == [receipt.physical_offset]


@pytest.mark.slow
@pytest.mark.parametrize("rotten", [7, *in_campaigns(0, MESSAGES - 1)])
async def test_a_consumer_gets_all_others(tmp_path: Path, rotten: int) -> None:
    with rotten_store(tmp_path, rotten) as (store, receipt):
        for group in ("first", "second"):
            async with aio.Consumer(store.address, group=group, topic=TOPIC, prefetch=8) as consumer:
                seen: list[bytes] = []
                while len(seen) < MESSAGES - 1:
                    message = await consumer.receive(60)
                    assert message is not None
                    seen.append(message.body)
                    await message.ack()
                assert seen == others(rotten)
                assert await consumer.receive(0.3) is None
            assert damage(store) == [receipt.physical_offset]
        with store.client() as client:
            assert pull(client).damaged == [], "nobody else meets it any more"


@pytest.mark.slow
def test_view_and_query_notice(tmp_path: Path) -> None:
    with rotten_store(tmp_path, 7) as (store, receipt), store.client() as client:
        assert len(client.query(TOPIC, key="k", max_messages=100)) == MESSAGES - 1
        assert damage(store) == [receipt.physical_offset]
        with pytest.raises(RequestFailed, match="is damaged"):
            client.view(receipt.message_id)


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    with rotten_store(tmp_path, 7) as (store, receipt):
        pulled = tandem("pull", TOPIC, "--address", store.address)
        assert pulled.code == 0
        assert all(one.decode() in pulled.out for one in others(7))
        assert "19 messages; 1 left out, which are damaged" in pulled.err
        assert "message 7 of queue 0 of topic orders is damaged and left out" in pulled.err
        assert "fault of tandem" not in pulled.err
        assert damage(store) == [receipt.physical_offset]
        viewed = tandem("view", receipt.message_id, "--address", store.address)
        assert viewed.code == 1
        assert "is damaged" in viewed.err
        assert "fault of tandem" not in viewed.err
        consumed = tandem("consume", "g", TOPIC, "--address", store.address)
        assert consumed.code == 0
        assert all(one.decode() in consumed.out for one in others(7))
        assert "19 messages" in consumed.err


@pytest.mark.slow
def test_consume_with_the_command_alone(tmp_path: Path) -> None:
    with rotten_store(tmp_path, 7) as (store, receipt):
        consumed = tandem("consume", "g", TOPIC, "--address", store.address, "--json")
        assert [line["body"].encode() for line in consumed.lines] == others(7)
        assert damage(store) == [receipt.physical_offset]
        with Consumer(store.address, group="g", topic=TOPIC) as consumer:
            assert consumer.receive(0.3) is None
