"""What observers are told of real sends and deliveries; and the same as metrics."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from tandemmq.client import Consumer, DeadLetter, MessageContent, Outgoing, Producer, Refused, Retry, aio
from tandemmq.client.metrics import PrometheusMetrics
from tests.contract.store_process import StoreProcess


def test_sends_are_counted_by_their_end(store: StoreProcess) -> None:
    registry = CollectorRegistry()
    with Producer(store.address, group="shop", linger=0.01, observers=[PrometheusMetrics(registry)]) as producer:
        for one in [producer.send_soon("counted", str(number)) for number in range(5)]:
            one.result(60)
        producer.send("counted", "ordered", order_key="k")
        producer.send_after("counted", "later", 0.1)
        producer.send_batch([Outgoing("counted", b"1"), Outgoing("counted", b"2")])
        with producer.transaction() as transaction:
            transaction.send("counted", "half")
        with pytest.raises(Refused):
            producer.send("no good name", b"x")
    assert value(registry, "tandem_client_sends_total", topic="counted", end="PUT_OK") == 10
    assert value(registry, "tandem_client_sends_total", topic="no good name", end="Refused") == 1
    assert value(registry, "tandem_client_send_seconds_count", topic="counted") == 10


def test_what_comes_is_counted_by_its_end(store: StoreProcess) -> None:
    registry = CollectorRegistry()
    of = {"group": "g", "topic": "arrived"}
    with Producer(store.address) as producer:
        for body in ("kept", "again", "dropped"):
            producer.send("arrived", body)
    with Consumer(store.address, group="g", topic="arrived", observers=[PrometheusMetrics(registry)]) as consumer:
        for _ in range(4):
            message = consumer.receive(30)
            assert message is not None
            if message.body == b"dropped":
                message.dead_letter()
            elif message.body == b"again" and message.delivery_number == 1:
                message.retry()
            else:
                message.ack()
    assert value(registry, "tandem_client_received_messages_total", **of) == 4
    ends = {
        end: value(registry, "tandem_client_settled_messages_total", end=end, **of)
        for end in ("acknowledged", "retried", "dead")
    }
    assert ends == {"acknowledged": 2, "retried": 1, "dead": 1}


async def test_a_workers_handlers_are_measured(store: StoreProcess) -> None:
    registry, stop, tries = CollectorRegistry(), asyncio.Event(), 0

    async def handle(message: MessageContent) -> None:
        nonlocal tries
        tries += 1
        if message.delivery_number == 1:
            raise Retry(after=0)
        stop.set()
        raise DeadLetter("enough")

    async with aio.Producer(store.address) as producer:
        await producer.send("worked", "x")
    await aio.worker(
        handle, store.address, group="g", topic="worked", stop=stop, observers=[PrometheusMetrics(registry)]
    )
    assert tries == 2
    assert value(registry, "tandem_client_handler_seconds_count", group="g", topic="worked") == 2


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(name, labels) or 0.0
