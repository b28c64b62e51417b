"""The producer: sends that are tried again, at the address that answers; order; transactions."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from tandemmq.client import Consumer, Outgoing, Producer, RequestFailed, StoreUnreachable, aio
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.faults.proxy import Proxy


def test_what_is_sent_is_there(store: StoreProcess) -> None:
    with Producer(store.address) as producer, store.client() as client:
        sent = producer.send("plain", "text", tag="t", keys=["k"], properties={"a": "b"}, queue_id=2)
        (record,) = client.pull("plain", 2, sent.queue_offset).records
        assert (record.body, record.tags, record.keys, record.properties["a"]) == (b"text", "t", ["k"], "b")
        assert (sent.status, sent.unique_key) == ("PUT_OK", record.unique_key)
        receipts = producer.send_batch([Outgoing("plain", b"1", queue_id=3), Outgoing("plain-too", b"2")])
        assert [one.topic for one in receipts] == ["plain", "plain-too"]


def test_the_address_that_answers_is_found(store: StoreProcess) -> None:
    addresses = [f"127.0.0.1:{free_port()}", store.address]
    with Producer(addresses) as producer:
        for number in range(3):
            assert producer.send("found", str(number)).status == "PUT_OK"
    with Consumer(",".join(addresses), group="g", topic="found") as consumer:
        for _ in range(3):
            message = consumer.receive(30)
            assert message is not None
            message.ack()


@pytest.mark.parametrize("batch", [False, True])
def test_a_send_whose_answer_is_lost_is_stored_once(store: StoreProcess, batch: bool) -> None:
    """As the settings are: the producer tries again, and hears where the first try was stored."""
    topic = f"lost-answer-{batch}"

    def send(body: bytes) -> str:
        one = Outgoing(topic, body, queue_id=0)
        receipt = producer.send_batch([one])[0] if batch else producer.send(topic, body, queue_id=0)
        return receipt.unique_key

    with Proxy(store.address) as proxy, Producer(proxy.address) as producer, store.client() as client:
        send(b"first")
        proxy.down.stalled = True
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(send, b"once")
            (stored,) = client.pull(topic, 0, 1, wait_seconds=60).records
            proxy.reset()
            proxy.down.stalled = False
            assert sending.result(60) == stored.unique_key
        assert send(b"last") != stored.unique_key
        assert [record.body for record in client.pull(topic, 0, 0).records] == [b"first", b"once", b"last"]


@pytest.mark.parametrize("batch", [False, True])
def test_a_message_that_is_sent_on_with_its_properties_is_another_one(store: StoreProcess, batch: bool) -> None:
    """Its UNIQ_KEY is among them. A copy of one send is only what the producer, or its program, says is one."""
    topic = f"sent-on-{batch}"
    with Producer(store.address) as producer, Consumer(store.address, group="g", topic=topic) as consumer:
        producer.send(topic, b"first", properties={"colour": "green"})
        messages = iter(consumer)
        first = next(messages)
        again = Outgoing(topic, b"later", properties=first.properties)
        if batch:
            producer.send_batch([again])
        else:
            producer.send(topic, again.body, properties=again.properties)
        first.ack()
        second = next(messages)
        assert (second.body, second.properties["colour"]) == (b"later", "green")
        second.ack()


@pytest.mark.parametrize("batch", [False, True])
def test_a_program_s_own_key_is_of_one_send_where_it_says_so(store: StoreProcess, batch: bool) -> None:
    topic = f"own-key-{batch}"
    with Producer(store.address) as producer, store.client() as client:
        for _ in range(2):  # as after a crash of the program
            one = Outgoing(topic, b"once", properties={"UNIQ_KEY": topic}, queue_id=0, repeatable=True)
            if batch:
                producer.send_batch([one])
            else:
                producer.send(topic, one.body, properties=one.properties, queue_id=0, repeatable=True)
        assert [record.body for record in client.pull(topic, 0, 0).records] == [b"once"]


def test_nobody_answers() -> None:
    with Producer(f"127.0.0.1:{free_port()}", keep_trying=0.2) as producer, pytest.raises(StoreUnreachable):
        producer.send("nobody", b"x")


def test_a_refusal_is_told_at_once(store: StoreProcess) -> None:
    with Producer(store.address) as producer:
        with pytest.raises(RequestFailed, match="no good name") as raised:
            producer.send("no good name", b"x")
        assert (raised.value.code, raised.value.status) == ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL")


@pytest.mark.parametrize("addresses", ["", "store", ["127.0.0.1:8081", "here"]])
def test_addresses_that_are_none(addresses: str | list[str]) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Producer(addresses)


def test_times_that_are_none(store: StoreProcess) -> None:
    with Producer(store.address) as producer:
        with pytest.raises(ValueError, match="duration"):
            producer.send_after("never", b"x", -1)
        with pytest.raises(ValueError, match="time zone"):
            producer.send_at("never", b"x", datetime(2030, 1, 1))  # noqa: DTZ001 - that is the fault
        with pytest.raises(ValueError, match="does not wait"):
            producer.recall(producer.send("now", b"x"))


def test_one_key_is_one_queue_in_order(store: StoreProcess) -> None:
    with Producer(store.address) as producer:
        sent = [producer.send("keyed", str(number), order_key="k") for number in range(10)]
    assert len({one.queue_id for one in sent}) == 1
    assert [one.queue_offset for one in sent] == list(range(10))


async def test_sends_of_one_key_keep_the_order_in_which_they_were_asked_for(store: StoreProcess) -> None:
    async with aio.Producer(store.address) as producer:
        sent = await asyncio.gather(*(producer.send("together", str(n), order_key="k") for n in range(50)))
    assert [one.queue_offset for one in sent] == list(range(50))


def fail(producer: Producer) -> None:
    with producer.transaction() as transaction:
        transaction.send("sold", "dropped")
        raise KeyError


def test_transactions(store: StoreProcess) -> None:
    with Producer(store.address, group="shop") as producer:
        with producer.transaction() as transaction:
            transaction.send("sold", "kept")
            transaction.send("sold", "kept too")
        with pytest.raises(KeyError):
            fail(producer)
        with producer.transaction() as transaction:
            transaction.send("sold", "last")
    with Consumer(store.address, group="g", topic="sold") as consumer:
        seen: set[bytes] = set()
        while len(seen) < 3:
            message = consumer.receive(30)
            assert message is not None
            seen.add(message.body)
            message.ack()
        assert seen == {b"kept", b"kept too", b"last"}
        assert consumer.receive(0.2) is None


def test_a_transaction_needs_a_group(store: StoreProcess) -> None:
    with Producer(store.address) as producer, pytest.raises(ValueError, match="group"), producer.transaction():
        pass
