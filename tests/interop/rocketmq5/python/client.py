"""The official Python client: `client.py HOST:PORT FEATURE TOPIC GROUP`; says OK when a feature does what it should."""

# mypy: ignore-errors

import contextlib
import os
import sys
import tempfile
import threading
import time

os.environ["HOME"] = tempfile.mkdtemp()  # the client writes its log there when it is imported

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

ENDPOINT, FEATURE, TOPIC, GROUP = sys.argv[1:5]
TLS = os.environ.get("CLIENT_TLS") == "1"
KEY, SECRET = os.environ.get("CLIENT_KEY"), os.environ.get("CLIENT_SECRET")
SECONDS = 60


def configuration():
    credentials = Credentials(KEY, SECRET) if KEY else Credentials()
    return ClientConfiguration(ENDPOINT, credentials, os.environ.get("CLIENT_NAMESPACE", ""), 10)


def message(body, **fields):
    made = Message()
    made.topic, made.body = TOPIC, body.encode()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def producer(checker=None):
    made = Producer(configuration(), (TOPIC,), checker, TLS)
    made.startup()
    return made


def simple(expression=None, topic=TOPIC, group=GROUP):
    made = SimpleConsumer(configuration(), group, {topic: expression or FilterExpression()}, 5, tls_enable=TLS)
    made.startup()
    return made


def take(consumer, count, invisible=20, ack=True):
    """So many messages, acknowledged."""
    found, deadline = [], time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        for one in consumer.receive(16, invisible) or []:
            found.append(one)
            if ack:
                consumer.ack(one)
    assert len(found) == count, f"{len(found)} of {count}"
    return found


class Listener(MessageListener):
    def __init__(self, fails=0):
        self.seen, self.fails, self.lock = [], fails, threading.Lock()

    def consume(self, one):
        with self.lock:
            self.seen.append((one.body.decode(), one.delivery_attempt, time.monotonic()))
            if self.fails:
                self.fails -= 1
                return ConsumeResult.FAILURE
        return ConsumeResult.SUCCESS


def push(listener):
    made = PushConsumer(configuration(), GROUP, listener, {TOPIC: FilterExpression()}, tls_enable=TLS)
    made.startup()
    return made


def until(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def send():
    one = message("hello", tag="t", keys="k")
    one.add_property("mine", "yes")
    receipt = producer().send(one)
    assert receipt.message_id


def simple_consumer():
    sender = producer()
    for number in range(5):
        one = message(f"m{number}", tag="t", keys="k")
        one.add_property("mine", "yes")
        sender.send(one)
    found = take(simple(), 5)
    assert sorted(one.body.decode() for one in found) == [f"m{number}" for number in range(5)]
    assert {(one.tag, one.delivery_attempt, one.properties["mine"]) for one in found} == {("t", 1, "yes")}


def tag_filter():
    sender = producer()
    for tag in ("a", "b", "c"):
        sender.send(message(tag, tag=tag))
    found = take(simple(FilterExpression("a || c")), 2)
    assert sorted(one.body.decode() for one in found) == ["a", "c"]


def redelivery():
    producer().send(message("again"))
    consumer = simple()
    first = take(consumer, 1, ack=False)[0]
    begun = time.monotonic()
    consumer.change_invisible_duration(first, 2)
    second = take(consumer, 1)[0]
    assert second.delivery_attempt == 2, second.delivery_attempt
    assert 1.5 < time.monotonic() - begun < 4.5, time.monotonic() - begun


def push_consumer():
    listener = Listener()
    push(listener)
    sender = producer()
    for number in range(20):
        sender.send(message(f"p{number}"))
    until(lambda: len(listener.seen) >= 20, listener.seen)
    assert sorted(body for body, _, _ in listener.seen) == sorted(f"p{number}" for number in range(20))


def push_retry():
    listener = Listener(fails=1)
    push(listener)
    producer().send(message("fails once"))
    until(lambda: len(listener.seen) >= 2, listener.seen)
    assert [attempt for _, attempt, _ in listener.seen] == [1, 2]


def dead_letter():
    """The group retries once."""
    listener = Listener(fails=SECONDS)
    push(listener)
    producer().send(message("dead", tag="t", keys="k"))
    consumer, letters = simple(topic=f"%DLQ%{GROUP}", group=f"{GROUP}-letters"), []

    def came():
        with contextlib.suppress(Exception):  # of the client's own: the topic comes with the first dead letter
            letters.extend(consumer.receive(16, 20) or [])
        return letters

    until(came, "there are no dead letters")
    [found] = letters
    consumer.ack(found)
    assert (found.body, found.tag, found.topic) == (b"dead", "t", f"%DLQ%{GROUP}"), found
    assert [attempt for _, attempt, _ in listener.seen] == [1, 2], listener.seen


def fifo():
    listener = Listener()
    push(listener)
    sender = producer()
    for number in range(10):
        sender.send(message(f"{number}", message_group="one"))
    until(lambda: len(listener.seen) >= 10, listener.seen)
    assert [body for body, _, _ in listener.seen] == [f"{number}" for number in range(10)]


def delay():
    due = int(time.time()) + 3
    producer().send(message("later", delivery_timestamp=due))
    found = take(simple(), 1)[0]
    assert due - 0.1 <= time.time() <= due + 3, time.time() - due
    assert found.body == b"later"


def recall():
    sender = producer()
    receipt = sender.send(message("never", delivery_timestamp=int(time.time()) + 6))
    sender.recall_message(TOPIC, receipt.recall_handle)
    sender.send(message("marker", delivery_timestamp=int(time.time()) + 8))
    assert [one.body for one in take(simple(), 1)] == [b"marker"]


class Checker(TransactionChecker):
    def __init__(self):
        self.asked = 0

    def check(self, one):
        self.asked += 1
        return TransactionResolution.COMMIT


def transaction():
    sender = producer(Checker())
    committed, rolled_back = sender.begin_transaction(), sender.begin_transaction()
    sender.send(message("committed"), committed)
    sender.send(message("rolled back"), rolled_back)
    committed.commit()
    rolled_back.rollback()
    consumer = simple()
    assert [one.body for one in take(consumer, 1)] == [b"committed"]
    assert not consumer.receive(16, 20)


def orphan():
    checker = Checker()
    sender = producer(checker)
    sender.send(message("orphan"), sender.begin_transaction())
    assert [one.body for one in take(simple(), 1)] == [b"orphan"]
    assert checker.asked >= 1


def outage():
    """Sends and consumes while the broker is killed and comes back: an application tries a send again that failed."""
    listener, failed = Listener(), 0
    push(listener)
    sender = producer()
    for number in range(60):
        one, deadline = message(f"o{number}"), time.monotonic() + SECONDS
        while True:
            try:
                sender.send(one)
                break
            except Exception:  # noqa: BLE001 - of kinds of the client's own
                failed += 1
                assert time.monotonic() < deadline, "the client does not recover"
                time.sleep(0.2)
        sys.stdout.write(f"SENT {number}\n")
        sys.stdout.flush()
        time.sleep(0.1)
    wanted = {f"o{number}" for number in range(60)}
    until(lambda: {body for body, _, _ in list(listener.seen)} == wanted, listener.seen)
    sys.stdout.write(f"{failed} sends failed, {len(listener.seen) - 60} messages came again\n")


def wrong_credentials():
    try:
        producer().send(message("no"))
    except Exception as error:  # noqa: BLE001 - of a kind of the client's own
        sys.stdout.write(f"{type(error).__name__} {error}\n")
        return
    raise AssertionError("it was sent")


globals()[FEATURE]()
sys.stdout.write("OK\n")
sys.stdout.flush()
os._exit(0)  # its threads would take their time
