"""A consumer of the delivery campaigns, as a process that may be stopped and killed: acknowledges, fails, stalls.

    python -m tests.faults.delivery_consumer --addresses a:1,b:2 --group g --events file --seed 7 ...

What it sees goes to a file, a line of JSON for each event, each in one write: what was written counts, whoever dies.
"""

import argparse
import itertools
import json
import os
import random
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from tandemmq.client import decode_records
from tandemmq.delivery.v1 import delivery_pb2 as pb
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.format import properties
from tandemmq.store.format.record import Record
from tests.faults.harness import value_of

TOPIC = "work"
POISONED = 37
"""One value of so many is never acknowledged, but by the last consumer."""
_NO_HANDLE = "INVALID_RECEIPT_HANDLE"


def now() -> float:
    """Milliseconds since 1970."""
    return time.time() * 1000


def is_poison(value: str) -> bool:
    """Whether no consumer can deal with it."""
    return zlib.crc32(value.encode()) % POISONED == 0


class Recorder:
    """Appends events to a file."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __call__(self, kind: str, **what: Any) -> None:
        os.write(self._fd, json.dumps([kind, what]).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class Held(NamedTuple):
    """A message that a consumer holds."""

    value: str
    key: str
    place: tuple[str, int, int]
    """Topic, queue, and offset."""
    handle: str


@dataclass
class Tally:
    """What came of calls."""

    received: int = 0
    unanswered: int = 0


class GroupMember:
    """One member of a group at whichever node delivers."""

    def __init__(self, addresses: Sequence[str], group: str, tag: str, recorder: Recorder, name: str) -> None:
        self.group = group
        self.tally = Tally()
        self._tag = tag
        self._name = name
        self._record = recorder
        self._count = itertools.count()
        options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 300)]
        self._channels = [grpc.insecure_channel(address, options=options) for address in addresses]
        self._stubs = [DeliveryStub(channel) for channel in self._channels]
        self._at = 0

    def close(self) -> None:
        """End the connections."""
        for channel in self._channels:
            channel.close()

    def _elsewhere(self) -> None:
        self.tally.unanswered += 1
        self._at = (self._at + 1) % len(self._stubs)
        time.sleep(0.05)

    def receive(self, most: int, invisible_ms: int, wait_ms: int, patience: float) -> list[Held]:
        """Messages, or none. An answer that does not come within `patience` seconds behind the wait is not read."""
        request = pb.ReceiveRequest(
            group=self.group, topic=TOPIC, max_messages=most, invisible_ms=invisible_ms, wait_ms=wait_ms,
            filter=pb.Filter(expression=self._tag), client_id=self._name,
        )  # fmt: skip
        begun = now()
        try:
            messages = self._stubs[self._at].Receive(request, timeout=wait_ms / 1000 + patience).messages
        except grpc.RpcError:
            self._elsewhere()
            return []
        at, answer = now(), f"{self._name}-{next(self._count)}"
        held, seen = [], []
        for one in messages:
            [record] = decode_records(one.record)
            held.append(_held(record, one.handle))
            seen.append([held[-1].value, one.delivery_number, *held[-1].place])
        if seen:
            self._record(
                "got", group=self.group, begun=begun, at=at, answer=answer, invisible_ms=invisible_ms, seen=seen
            )
            self.tally.received += len(seen)
        return held

    def acknowledge(self, held: Sequence[Held]) -> None:
        """Say that messages are dealt with."""
        request = pb.AcknowledgeRequest(group=self.group, topic=TOPIC, handles=[one.handle for one in held])
        self._settle("ack", held, lambda: self._stubs[self._at].Acknowledge(request, timeout=30).outcomes)

    def retry(self, held: Sequence[Held], after_ms: int) -> None:
        """Ask for messages again after a time."""
        changes = [pb.InvisibleChange(handle=one.handle, invisible_ms=after_ms) for one in held]
        request = pb.ChangeInvisibleRequest(group=self.group, topic=TOPIC, changes=changes)
        call = lambda: self._stubs[self._at].ChangeInvisible(request, timeout=30).outcomes  # noqa: E731
        self._settle("retry", held, call, after_ms=after_ms)

    def forward(self, held: Sequence[Held]) -> None:
        """Give messages up."""
        request = pb.ForwardToDeadLettersRequest(group=self.group, topic=TOPIC, handles=[one.handle for one in held])
        self._settle("dead", held, lambda: self._stubs[self._at].ForwardToDeadLetters(request, timeout=30).outcomes)

    def _settle(self, how: str, held: Sequence[Held], call: Any, after_ms: int = 0) -> None:
        number = f"{self._name}-{next(self._count)}"
        what = [[one.value, *one.place] for one in held]
        self._record("settle", id=number, group=self.group, how=how, begun=now(), after_ms=after_ms, what=what)
        try:
            outcomes = call()
        except grpc.RpcError:
            self._elsewhere()
            return
        told = [0 if one.HasField("refusal") else 1 for one in outcomes]
        gone = [int(one.HasField("refusal") and one.refusal.rocketmq_status == _NO_HANDLE) for one in outcomes]
        self._record("settled", id=number, at=now(), told=told, gone=gone)


def _held(record: Record, handle: str) -> Held:
    key = record.properties.get(properties.SHARDING_KEY, "")
    return Held(value_of(record.body), key, (record.topic, record.queue_id, record.queue_offset), handle)


class Consumer:
    """A member that does well mostly."""

    def __init__(self, member: GroupMember, seed: str) -> None:
        self._member = member
        self._random = random.Random(seed)

    def turn(self) -> None:
        """Receive, and deal with what came."""
        choose = self._random
        patience = choose.choice([0.002, 0.03]) if choose.random() < 0.05 else 30.0
        held = self._member.receive(
            choose.choice([1, 4, 16, 32]),
            choose.choice([1_000, 1_500, 3_000]),
            choose.choice([0, 300, 2_000]),
            patience,
        )
        done: list[Held] = []
        failed: set[str] = set()
        for one in held:
            if one.key and one.key in failed:
                continue  # those after it wait for it
            if is_poison(one.value) or choose.random() < 0.12:
                self._fail(one, is_poison(one.value))
                failed.add(one.key)
            elif choose.random() < 0.3:
                self._member.acknowledge([one])
            else:
                done.append(one)
        if done:
            if choose.random() < 0.03:
                time.sleep(choose.choice([0.5, 2.0]))  # some handles are too late
            self._member.acknowledge(done)

    def _fail(self, one: Held, poison: bool) -> None:
        way = self._random.random()
        if way < 0.1 and not poison:
            self._member.forward([one])
        elif way < 0.6:
            self._member.retry([one], self._random.choice([0, 100, 700]))
        # else nothing is said: it comes again


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--addresses", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--tag", default="")
    parser.add_argument("--events", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seed", required=True)
    arguments = parser.parse_args()
    recorder = Recorder(arguments.events)
    member = GroupMember(arguments.addresses.split(","), arguments.group, arguments.tag, recorder, arguments.name)
    consumer = Consumer(member, arguments.seed)
    while True:
        consumer.turn()


if __name__ == "__main__":
    sys.exit(main())
