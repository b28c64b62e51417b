"""A cluster for the console to show: a master with its slave, topics, groups, messages and dead letters."""

import json
from pathlib import Path

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import StoreClient
from tandemmq.common.access.scrypt import GENERATED, hash_secret
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.admin_process import AdminProcess
from tests.faults.pair import Pair
from tests.faults.pair_process import until

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
"""Markup that would run if it ever became a part of the page."""

DEAD_LETTERS = 5

TOPICS = ("orders", "payments", "shipments", "invoices", "returns")
GROUPS = ("billing", "warehouse", "mails")

USERS = {
    "alice": ("wonder", "admin"),
    "vera": ("glass", "viewer"),
    "olga": ("order", "orders"),
    "leaver": ("bye", "admin"),
}
ROLES = '[roles.orders]\nsubscribe = ["orders"]\nallow = ["view"]\n'


def fill(pair: Pair, admin: AdminProcess) -> None:
    """Everything that the pages show; takes about a second."""
    admin.put_topics(TOPICS)
    admin.put_topics(["%DLQ%billing"], queues=1)
    for group in GROUPS:
        request = pb.PutGroupRequest()
        request.config.name = group
        admin.stub.PutGroup(request, timeout=60)
    with pair.master.client() as client:
        _wait_for_topics(client)
        for number in range(60):
            order = {"order": 1000 + number, "customer": f"c-{number % 7}", "amount": round(9.9 + number * 1.37, 2)}
            body = json.dumps(order).encode()
            client.send("orders", body, tag="new" if number % 3 else "vip", keys=[f"o{number}"], queue_id=number % 4)
        for number in range(12):
            client.send("payments", f"payment {number}".encode(), keys=[f"p{number}"], queue_id=0)
        client.send(
            "shipments", HOSTILE.encode(), tag=HOSTILE.replace(" ", "_"), keys=["<b>key</b>"],
            properties={"<i>name</i>": HOSTILE}, queue_id=0,
        )  # fmt: skip
        client.send("shipments", bytes(range(256)), keys=["binary"], queue_id=1)
        for number in range(DEAD_LETTERS):
            client.send(
                "%DLQ%billing", f"letter {number}".encode(), keys=[f"d{number}"], queue_id=0,
                properties={"DLQ_ORIGIN_TOPIC": "returns", "DLQ_ORIGIN_MESSAGE_ID": "0" * 32},
            )  # fmt: skip
    _trouble(pair)
    _commit(pair, "billing", "orders", [15, 12, 9, 15])
    _commit(pair, "warehouse", "orders", [15, 15, 15, 15])
    _commit(pair, "mails", "payments", [2, 0, 0, 0])
    pair.wait_level()


def _trouble(pair: Pair) -> None:
    """A group whose members differ, which holds messages, fails on one, and commits besides; and what waits."""
    with pair.master.client() as client:
        for number in range(9):
            client.send("returns", f"return {number}".encode(), queue_id=0)
        client.send("orders", b"later", properties={"TIMER_DELAY_SEC": "86400"})
        client.send("orders", b"later", properties={"DELAY": "18"})
        client.send("payments", b"half", properties={"TRAN_MSG": "true", "PGROUP": "tellers"})
    stub = DeliveryStub(pair.master._channel("store"))
    receive = delivery_pb2.ReceiveRequest(group="troubled", topic="returns", max_messages=1, wait_ms=20_000)
    for _ in range(4):
        (message,) = stub.Receive(receive, timeout=60).messages
        change = delivery_pb2.InvisibleChange(handle=message.handle, invisible_ms=0)
        request = delivery_pb2.ChangeInvisibleRequest(group="troubled", topic="returns", changes=[change])
        stub.ChangeInvisible(request, timeout=60)
    receive.max_messages, receive.invisible_ms = 3, 3_600_000
    assert stub.Receive(receive, timeout=60).messages
    keep_troubled(pair)


def keep_troubled(pair: Pair) -> None:
    """Its members are heard of, and it consumes in both ways: that is forgotten after some minutes."""
    stub = DeliveryStub(pair.master._channel("store"))
    for name, tags, language in (("worker-1@10.0.0.7", "*", "PYTHON"), ("worker-2@10.0.0.8", "new || vip", "GO")):
        beat = delivery_pb2.HeartbeatRequest(client_id=name, language=language, version="5.1.2")
        wanted = beat.memberships.add(group="troubled").subscriptions
        wanted["returns"].expression, wanted["orders"].expression = tags, "*"
        stub.Heartbeat(beat, timeout=60)
    nothing = delivery_pb2.ReceiveRequest(group="troubled", topic="returns", queue_id=3)
    assert not stub.Receive(nothing, timeout=60).messages
    commit = delivery_pb2.OffsetCommit(topic="orders", queue_id=0, offset=1)
    stub.CommitOffsets(delivery_pb2.CommitOffsetsRequest(group="troubled", commits=[commit]), timeout=60)


def _wait_for_topics(client: StoreClient) -> None:
    """The store learns of topics from its metasync, a moment later."""

    def known() -> bool:
        names = {one.topic for one in client.queues().topics}
        return names >= {*TOPICS, "%DLQ%billing"}

    until(known, 60, lambda: "the store knows the topics")


def _commit(pair: Pair, group: str, topic: str, offsets: list[int]) -> None:
    commits = [
        metadata_pb2.OffsetCommit(topic=topic, group=group, queue_id=queue, offset=offset)
        for queue, offset in enumerate(offsets)
    ]
    stub = MetadataStub(pair.master._channel("metasync"))
    answer = stub.CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=commits), timeout=60)
    assert all(one.status == metadata_pb2.COMMITTED for one in answer.results), answer


def write_access(path: Path, users: dict[str, tuple[str, str]]) -> None:
    """The access file, replaced in one step."""
    entries = [
        f'[users.{name}]\nsecret = "{hash_secret(secret, GENERATED)}"\nroles = ["{role}"]\n'
        for name, (secret, role) in users.items()
    ]
    new = path.with_suffix(".new")
    new.write_text("\n".join([*entries, ROLES]))
    new.replace(path)
