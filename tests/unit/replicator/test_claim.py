"""What a node that wants to be master is told when it cannot show enough."""

from tandemmq.replicator.errors import GroupUnknown, OtherSlaveSilent
from tandemmq.replicator.roles.claim import Claim
from tandemmq.store.v1.replica_log_pb2 import GroupMember, LogIdentity, ReplicaGroup, RoleState


def slave(*members: GroupMember) -> RoleState:
    """A slave of epoch 3, whose master needs one slave and has told of these."""
    group = ReplicaGroup(epoch=3, generation=1, needed=1, needed_before=1, members=members)
    return RoleState(identity=LogIdentity(epoch=3, store_id="me"), max_offset=100, group=group)


def test_a_master_that_told_of_no_slave_leaves_them_unknown() -> None:
    (objection,) = Claim(slave()).objections()
    assert isinstance(objection, GroupUnknown)
    assert "of any slave of its own" in str(objection)


def test_a_slave_that_is_missing_is_named() -> None:
    members = GroupMember(identity="1", store_id="me"), GroupMember(identity="2", store_id="other", address="b:10912")
    (objection,) = Claim(slave(*members)).objections()
    assert isinstance(objection, OtherSlaveSilent)
    assert "1 of the old master's 2 slaves" in str(objection)
    assert "slave 2 at b:10912" in str(objection)


def test_the_rest_of_a_master_that_was_fenced_is_all_there_is() -> None:
    old = RoleState(identity=LogIdentity(epoch=3, store_id="old", fenced_by_epoch=4), max_offset=100)
    assert list(Claim(slave(), old=old).objections()) == []
