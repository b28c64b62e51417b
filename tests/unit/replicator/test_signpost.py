"""What a replicator believes of where clients find the master."""

import grpc
import pytest

from tandemmq.common.timers import LoopTimers
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.roles.signpost import Signpost, completed, others_of
from tandemmq.store.v1.replica_log_pb2 import EpochPromise, GroupMember, ReplicaGroup, RoleState


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("shop.example:8081", "shop.example:8081"),
        (":8081", "10.0.0.2:8081"),
        ("", ""),  # a store of an older release
        (":none", ""),
        (":99999", ""),
        ("shop.example", ""),
    ],
)
def test_where_clients_find_a_master(told: str, found: str) -> None:
    assert completed(told, "10.0.0.2:8084") == found


def test_the_host_may_be_of_version_6() -> None:
    assert completed(":8081", "[::1]:8084") == "[::1]:8081"


def test_those_who_were_promised_to_last_are_asked_first() -> None:
    state = RoleState(
        promises=[EpochPromise(epoch=2, address="a:1"), EpochPromise(epoch=3, address="b:1"), EpochPromise(epoch=1)],
        group=ReplicaGroup(members=[GroupMember(address="c:1"), GroupMember(address="a:1")]),
    )
    assert list(others_of(state)) == ["b:1", "a:1", "c:1"]


async def test_what_is_no_address_is_not_called_and_ends_nothing() -> None:
    async def role_state() -> RoleState:
        return RoleState(group=ReplicaGroup(members=[GroupMember(address="nowhere")]))

    def dial(address: str) -> grpc.aio.Channel:
        raise ValueError(address)

    signpost = Signpost(LogView(), lambda: "", role_state, dial, lambda: None, LoopTimers())
    assert await signpost._search() == ""
