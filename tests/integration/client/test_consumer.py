"""The consumer: what it gets, how it settles it, what it gives back, and that a store may die under it."""

import asyncio
import signal
import threading
from collections.abc import Callable

import pytest

from tandemmq.client import Consumer, FilterRefused, NoLongerHeld, Producer, aio
from tandemmq.client.aio import Message
from tests.contract.store_process import StoreProcess


def send(store: StoreProcess, topic: str, messages: int) -> None:
    with Producer(store.address) as producer:
        for number in range(messages):
            producer.send(topic, str(number), tag="even" if number % 2 == 0 else "odd", properties={"n": str(number)})


def test_each_comes_once(store: StoreProcess) -> None:
    send(store, "once", 100)
    with Consumer(store.address, group="g", topic="once", prefetch=7) as consumer:
        seen = []
        for message in consumer:
            seen.append(int(message.body))
            assert message.delivery_number == 1
            message.ack()
            if len(seen) == 100:
                break
        assert sorted(seen) == list(range(100))
        assert consumer.receive(0.2) is None
    with Consumer(store.address, group="g", topic="once") as consumer:
        assert consumer.receive(0.5) is None, "nothing that was acknowledged comes again"


def test_a_consumer_may_wait_for_its_topic(store: StoreProcess) -> None:
    with Consumer(store.address, group="g", topic="not-yet") as consumer:
        assert consumer.receive(0.3) is None
        send(store, "not-yet", 1)
        message = consumer.receive(30)
        assert message is not None
        message.ack()


def test_retries_and_dead_letters(store: StoreProcess) -> None:
    send(store, "retried", 1)
    with Consumer(store.address, group="buried", topic="retried", prefetch=0) as consumer:
        numbers = []
        for _ in range(3):
            message = consumer.receive(30)
            assert message is not None
            numbers.append(message.delivery_number)
            message.retry()
        message = consumer.receive(30)
        assert message is not None
        message.dead_letter()
        assert numbers == [1, 2, 3]
        assert consumer.receive(0.2) is None
    with store.client() as client:
        (record,) = client.pull("%DLQ%buried", 0, 0, wait_seconds=10).records
        assert record.body == b"0"


def test_too_late(store: StoreProcess) -> None:
    send(store, "late", 1)
    with Consumer(store.address, group="g", topic="late", prefetch=0) as consumer:
        first = consumer.receive(30)
        assert first is not None
        first.retry()
        second = consumer.receive(30)
        assert second is not None
        assert second.delivery_number == 2
        with pytest.raises(NoLongerHeld):
            first.ack()
        second.ack()


def test_what_nobody_has_looked_at_is_given_back_at_once(store: StoreProcess) -> None:
    send(store, "shared", 20)
    with Consumer(store.address, group="g", topic="shared", prefetch=32) as first:
        message = first.receive(30)
        assert message is not None
        message.ack()
    with Consumer(store.address, group="g", topic="shared") as second:
        seen = {message.body}
        while len(seen) < 20:
            message = second.receive(30)
            assert message is not None
            assert message.body not in seen, "what is acknowledged does not come again"
            seen.add(message.body)
            message.ack()


def test_nothing_overtakes_a_retry_in_a_group_that_consumes_in_order(
    store: StoreProcess, make_group: Callable[[str, bool, int], None]
) -> None:
    """What was fetched ahead of the same key goes back, and that is no delivery of it; other keys go on."""
    make_group("in-turn", True, 16)
    with Producer(store.address) as producer:
        for step in ("ordered", "paid", "shipped"):
            producer.send("in-turn", step, order_key="customer-4")
    seen: list[tuple[str, int]] = []
    with Consumer(store.address, group="in-turn", topic="in-turn") as consumer:
        for _ in range(5):
            message = consumer.receive(30)
            assert message is not None
            seen.append((message.body.decode(), message.delivery_number))
            if seen[-1] in (("ordered", 1), ("ordered", 2)):
                message.retry(0.3)
            else:
                message.ack()
        assert consumer.receive(0.2) is None
    assert seen == [("ordered", 1), ("ordered", 2), ("ordered", 3), ("paid", 1), ("shipped", 1)]


def test_what_a_consumer_gives_back_is_not_delivered(store: StoreProcess) -> None:
    """However often consumers come and go: the message is not a step nearer to the dead letters."""
    send(store, "unseen", 3)
    for _ in range(3):
        with Consumer(store.address, group="g", topic="unseen", prefetch=32) as consumer:
            message = consumer.receive(30)
            assert message is not None
            assert message.delivery_number == 1
            message.give_back()


def test_filters(store: StoreProcess) -> None:
    send(store, "chosen", 10)
    with Consumer(store.address, group="odd", topic="chosen", filter="odd") as consumer:
        seen: set[int] = set()
        while len(seen) < 5:
            message = consumer.receive(30)
            assert message is not None
            seen.add(int(message.body))
            message.ack()
        assert seen == {1, 3, 5, 7, 9}


def test_a_filter_that_is_none(store: StoreProcess) -> None:
    send(store, "misread", 1)
    with (
        Consumer(store.address, group="g", topic="misread", sql="n >") as consumer,
        pytest.raises(FilterRefused),
    ):
        consumer.receive(30)


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="either"):
        Consumer("127.0.0.1:1", group="g", topic="t", filter="a", sql="b = 1")
    with pytest.raises(ValueError, match="prefetch"):
        Consumer("127.0.0.1:1", group="g", topic="t", prefetch=-1)


def test_another_thread_may_stop_it(store: StoreProcess) -> None:
    send(store, "stopped", 1)
    with Consumer(store.address, group="g", topic="stopped") as consumer:
        seen = []
        for message in consumer:
            message.ack()
            seen.append(message.body)
            threading.Thread(target=consumer.stop).start()
        assert seen == [b"0"]


async def test_acknowledged_messages_do_not_come_again_though_the_store_is_killed(steady_store: StoreProcess) -> None:
    """Producer and consumer go on through two kills; each message is dealt with, and none after its `ack` returned."""
    messages = 300
    acknowledged: set[bytes] = set()
    again: list[bytes] = []
    async with (
        aio.Producer(steady_store.address) as producer,
        aio.Consumer(steady_store.address, group="g", topic="killed", prefetch=16) as consumer,
    ):

        async def produce() -> None:
            for number in range(messages):
                await producer.send("killed", str(number))
                if number in (100, 200):
                    await asyncio.to_thread(steady_store.restart, signal.SIGKILL)

        async def deal(message: Message) -> None:
            if message.body in acknowledged:
                again.append(message.body)
            try:
                await message.ack()
            except NoLongerHeld:
                return  # it comes again, and counts then
            acknowledged.add(message.body)

        producing = asyncio.create_task(produce())
        while len(acknowledged) < messages:
            message = await consumer.receive(60)
            assert message is not None, f"{len(acknowledged)} of {messages}"
            await deal(message)
        await producing
        steady_store.restart(signal.SIGKILL)
        assert await consumer.receive(2) is None
    assert not again
