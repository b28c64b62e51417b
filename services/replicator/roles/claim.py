"""Whether a node may begin a new epoch as master, from what it and the others said. No I/O.

The others said it when they promised the epoch: from then on they follow no older master, so what they have is all that
they will have of it. While a slave joins, some know the group without it only, and one of them may have taken over: who
takes over from a master that was fenced has enough of that group, too.

Why this is enough. A message was told PUT_OK when `needed` slaves of the old master's group had it. Those who promised
leave fewer than `needed` others, so one of them has the message; its end was read after its promise, and the claimant's
is not smaller. Whoever has the newest group is among those who promised (see `roster`). And two claimants have one
promiser in common, who gave each epoch once and tells the later one of the earlier: that one must have promised the
later epoch itself, as a slave, and so will never begin its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tandemmq.replicator.errors import (
    AnotherCandidate,
    GroupUnknown,
    MissingHere,
    NewerMaster,
    NothingProven,
    OtherSlaveSilent,
    PromotionStopped,
)
from tandemmq.replicator.roles.quorum import enough_to_know, enough_to_promise
from tandemmq.store.v1.replica_log_pb2 import GroupMember, ReplicaGroup, RoleState

_NOBODY = RoleState()


class Claim(NamedTuple):
    """What a node has to show that wants to be master."""

    own: RoleState
    """Of the claimant, after its own promise."""
    promised: Sequence[RoleState] = ()
    """Of the other slaves that promised the same epoch, after that."""
    old: RoleState = _NOBODY
    """Of the old master, after it was fenced; empty if it is silent. A master that is taken back is its own."""
    silent: str = ""
    """Addresses that did not answer, in words."""

    def objections(self) -> Iterator[PromotionStopped]:
        """Everything because of which messages may be missing here, or another master may go on."""
        yield from self.doubts()
        yield from self.missing()

    def doubts(self) -> Iterator[PromotionStopped]:
        """Everything because of which another master may go on, or what is missing is not known."""
        yield from self._newer()
        yield from self._not_enough()
        yield from self._candidates()

    @property
    def group(self) -> ReplicaGroup:
        """The newest group that anybody told of; with epoch 0 if nobody knew one."""
        return newest_group([self.own, *self.promised, self.old])

    @property
    def _epoch(self) -> int:
        """Of the mastership that this claim is to replace."""
        return max(self.own.identity.epoch, self.own.group.epoch, self.old.identity.epoch)

    def _newer(self) -> Iterator[PromotionStopped]:
        for one in self.promised:
            epoch = max(one.identity.epoch, one.group.epoch)
            if epoch > self._epoch:
                yield NewerMaster(
                    f"{name_of(one)} has followed a master of epoch {epoch}, and this node knows of none after "
                    f"{self._epoch}",
                    remedy="promote that slave instead, or let this node follow that master (tandem replica follow)",
                )

    def _not_enough(self) -> Iterator[PromotionStopped]:
        group = self.group
        old_is_fenced = self.old.identity.epoch == self._epoch  # one of an earlier epoch is not who serves
        if group.epoch < self._epoch:
            if not old_is_fenced:
                yield GroupUnknown(
                    f"this node does not know what the master of epoch {self._epoch} had, nor which slaves it has: it "
                    "has not followed it since its directory is there"
                )
            return
        needed = min(group.needed, group.needed_before)
        if not old_is_fenced and not needed:
            yield NothingProven(
                "the old master acknowledges messages without waiting for a slave (ASYNC_MASTER, inSyncReplicas=1, or "
                "minInSyncReplicas=1 with allAckInSyncStateSet or enableAutoInSyncReplicas): nobody knows what it had, "
                "and it may still acknowledge"
            )
            return
        here = {one.identity.store_id for one in (self.own, *self.promised)}
        missing = [one for one in group.members if not one.store_id or one.store_id not in here]
        have, members = len(group.members) - len(missing), len(group.members)
        wanted = (enough_to_know if old_is_fenced else enough_to_promise)(members, needed)
        settled = [one for one in group.members if not one.joining]
        if old_is_fenced and have >= wanted and len(settled) < members:  # who does not know who joins may take over too
            missing = [one for one in settled if one in missing]
            have, members = len(settled) - len(missing), len(settled)
            wanted = enough_to_know(members, needed)
        if not members and wanted:
            yield GroupUnknown(
                f"the master of epoch {self._epoch} has told nobody who answered of any slave of its own: it is not "
                "known who may still follow it"
            )
        elif have < wanted:
            yield OtherSlaveSilent(
                f"{have} of the old master's {members} slaves will follow it no more, this node included; {wanted} "
                f"are needed, since {needed} must have a message that it acknowledges. Missing: "
                + ", ".join(map(member_in_words, missing))
                + (f"; no answer: {self.silent}" if self.silent else "")
            )

    def _candidates(self) -> Iterator[PromotionStopped]:
        everybody = (self.own, *self.promised, self.old)
        harmless = {one.identity.store_id for one in everybody}
        told = set()
        for promise in (one for state in everybody for one in state.promises):
            if promise.epoch <= self._epoch or (promise.store_id in harmless and promise.store_id):
                continue
            who = promise.address or promise.store_id or "a node that nobody can name"
            if who not in told:
                told.add(who)
                yield AnotherCandidate(
                    f"epoch {promise.epoch} was promised to {who}, which may be a master by now and has not said "
                    "otherwise"
                )

    def missing(self) -> Iterator[PromotionStopped]:
        """What somebody has, or is known to have had, and the claimant has not."""
        own = self.own.max_offset
        for one in self.promised:
            if one.identity.epoch == self._epoch and one.max_offset > own:
                yield MissingHere(
                    f"{name_of(one)} has {one.max_offset - own} bytes more (up to {one.max_offset}) than this node"
                )
        if self.old.max_offset > own:
            yield MissingHere(
                f"the old master has {self.old.max_offset - own} bytes more (up to {self.old.max_offset}) than this "
                "node"
            )
            return
        known = max((one.known_end for one in self._groups() if one.epoch in (0, self._epoch)), default=0)
        if known > own:
            yield MissingHere(f"the old master had at least {known - own} bytes that never came here (up to {known})")

    def _groups(self) -> Iterable[ReplicaGroup]:
        return (one.group for one in (self.own, *self.promised))


def newest_group(states: Iterable[RoleState]) -> ReplicaGroup:
    """The group of the greatest epoch and generation."""
    return max((one.group for one in states), key=lambda one: (one.epoch, one.generation))


def name_of(state: RoleState) -> str:
    """A slave in words."""
    identity = state.identity
    return f"the slave {identity.broker_id or identity.store_id[:8]}"


def member_in_words(member: GroupMember) -> str:
    """A member of a group for an operator."""
    where = f" at {member.address}" if member.address else ", which did not introduce itself" * (not member.store_id)
    return f"slave {member.identity}{where}"
