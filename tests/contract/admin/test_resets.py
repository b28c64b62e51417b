"""Resetting offsets: every form, only told, and refused before anything is done."""

from typing import Any

import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2
from tests.admin_process import AdminProcess, refused
from tests.faults.pair import Node

pytestmark = pytest.mark.xdist_group("calm admin")


@pytest.fixture(scope="module")
def node(calm_node: Node) -> Node:
    """Shared with other modules."""
    return calm_node


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """The same."""
    return calm_admin


TOPIC = "moved"


@pytest.fixture(scope="module")
def times(admin: AdminProcess, node: Node) -> list[int]:
    """Store times of the messages of queue 0: ten, in two queues each."""
    admin.put_topics([TOPIC], queues=2)
    times = []
    with node.client() as client:
        for _ in range(10):
            client.send(TOPIC, b"body", queue_id=1)
            times.append(client.send(TOPIC, b"body", queue_id=0).store_timestamp)
    return times


@pytest.fixture
def group(admin: AdminProcess, times: list[int], request: pytest.FixtureRequest) -> str:
    """A group that has consumed 5 messages of each queue."""
    name = f"group-{abs(hash(request.node.name))}"
    admin.stub.PutGroup(pb.PutGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(name=name)))
    admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group=name, topic=TOPIC, offset=5))
    return name


def moves(admin: AdminProcess, group: str, **request: Any) -> list[tuple[int, int | None, int]]:
    answer = admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group=group, topic=TOPIC, **request), timeout=60)
    for move in answer.moves:
        assert (move.broker, move.min_offset, move.max_offset) == ("alpha", 0, 10)
    return [(one.queue_id, one.before if one.HasField("before") else None, one.after) for one in answer.moves]


def offsets(admin: AdminProcess, group: str) -> dict[int, int]:
    found = admin.stub.GetGroup(pb.GetGroupRequest(group=group), timeout=60)
    return {queue.queue_id: queue.offset for queue in found.progress}


@pytest.mark.parametrize(
    ("to", "after"),
    [
        ({"offset": 3}, 3),
        ({"offset": 10}, 10),
        ({"earliest": True}, 0),
        ({"latest": True}, 10),
        ({"shift": -2}, 3),
        ({"shift": 4}, 9),
        ({"shift": -99}, 0),
        ({"shift": 99}, 10),
        ({"shift": 0}, 5),
    ],
)
def test_each_form(admin: AdminProcess, group: str, to: dict[str, Any], after: int) -> None:
    assert moves(admin, group, **to) == [(0, 5, after), (1, 5, after)]
    assert offsets(admin, group) == {0: after, 1: after}


def test_a_time(admin: AdminProcess, group: str, times: list[int]) -> None:
    wanted = times[6]
    first = next(at for at, time in enumerate(times) if time >= wanted)
    assert moves(admin, group, timestamp_ms=wanted)[0] == (0, 5, first)
    assert moves(admin, group, timestamp_ms=times[-1] + 1_000)[0] == (0, first, 10), "behind the last"
    assert moves(admin, group, timestamp_ms=0)[0] == (0, 10, 0)


def test_a_dry_run_moves_nothing(admin: AdminProcess, group: str) -> None:
    assert moves(admin, group, earliest=True, dry_run=True) == [(0, 5, 0), (1, 5, 0)]
    assert offsets(admin, group) == {0: 5, 1: 5}


def test_only_some_queues(admin: AdminProcess, group: str) -> None:
    assert moves(admin, group, latest=True, queue_ids=[1]) == [(1, 5, 10)]
    assert offsets(admin, group) == {0: 5, 1: 10}


def test_a_group_without_offsets_begins_where_it_is_told(admin: AdminProcess, times: list[int]) -> None:
    config = metadata_pb2.SubscriptionGroupConfig(name="fresh")
    admin.stub.PutGroup(pb.PutGroupRequest(config=config))
    with refused("FAILED_PRECONDITION", "no offset in moved to shift"):
        moves(admin, "fresh", shift=1)
    assert moves(admin, "fresh", latest=True) == [(0, None, 10), (1, None, 10)]


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        ({"topic": TOPIC, "latest": True}, "INVALID_ARGUMENT", "names no group"),
        ({"group": "known", "latest": True}, "INVALID_ARGUMENT", "names no topic"),
        ({"group": "known", "topic": TOPIC}, "INVALID_ARGUMENT", "does not say where to"),
        ({"group": "known", "topic": TOPIC, "latest": False}, "INVALID_ARGUMENT", "does not say where to"),
        ({"group": "known", "topic": TOPIC, "offset": 11}, "INVALID_ARGUMENT", "has offsets 0 to 10, not 11"),
        ({"group": "known", "topic": TOPIC, "offset": -1}, "INVALID_ARGUMENT", "not -1"),
        ({"group": "known", "topic": TOPIC, "timestamp_ms": -1}, "INVALID_ARGUMENT", "0 or more"),
        ({"group": "known", "topic": TOPIC, "latest": True, "queue_ids": [7]}, "INVALID_ARGUMENT", "no queue 7"),
        ({"group": "unknown", "topic": TOPIC, "latest": True}, "NOT_FOUND", "there is no group unknown"),
        ({"group": "known", "topic": "nowhere", "latest": True}, "NOT_FOUND", "there is no topic nowhere"),
        ({"group": "known", "topic": TOPIC, "latest": True, "broker": "beta"}, "NOT_FOUND", "there is no broker"),
    ],
)
def test_refusals_change_nothing(
    admin: AdminProcess, times: list[int], request_: dict[str, Any], code: str, words: str
) -> None:
    admin.stub.PutGroup(pb.PutGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(name="known")))
    with refused(code, words):
        admin.stub.ResetOffsets(pb.ResetOffsetsRequest(**request_), timeout=60)
    assert offsets(admin, "known") == {}
    assert not admin.stub.ListGroups(pb.ListGroupsRequest(match="unknown")).groups, "a misspelt group is not made"
