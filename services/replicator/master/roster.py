"""Whose acknowledgements a master counts, so that each slave that may take over knows it. No I/O, no clock.

A slave that is new is first noted by the master's store and told to the others; its acknowledgements count when enough
of the others have it on disk (`quorum.enough_to_know`). So whoever takes over hears of it from one of those that it
must ask. One slave joins at a time. The same holds when a send needs fewer slaves than before: until enough of them
know, it needs as many.

A slave that did not introduce itself has no store id. It cannot be told, and it cannot promise either (see `claim`), so
nobody waits until it knows. Once it has gone and enough others have what it acknowledged, it is no member any more: it
may have come back under its identity.
"""

from tandemmq.replicator.roles.quorum import enough_to_know
from tandemmq.store.v1.replica_log_pb2 import GroupMember, ReplicaGroup


class Roster:
    """The group of one mastership. `group` is what is noted and told."""

    def __init__(self, epoch: int, needed: int, known: ReplicaGroup | None = None) -> None:
        """`known` is what the store had noted; it counts if it is of this epoch. `needed`: slaves for a PUT_OK."""
        group = known if known is not None and known.epoch == epoch else ReplicaGroup(epoch=epoch, needed=needed)
        before = max(group.needed, group.needed_before)
        self._group = ReplicaGroup(
            epoch=epoch, generation=group.generation, needed=needed, needed_before=before, members=group.members
        )
        self._noted = group.generation
        self._told = ReplicaGroup()
        if group.generation:
            self._told.CopyFrom(group)
        self._waiting: dict[str, GroupMember] = {}
        self._confirmed: dict[str, int] = {}
        if needed != group.needed or not group.generation:
            self._group.generation += 1
        self._advance()

    @property
    def group(self) -> ReplicaGroup:
        """As it is to be. Do not change it."""
        return self._group

    @property
    def told(self) -> ReplicaGroup:
        """What the slaves are told: the group as the store has it on disk; of epoch 0, nothing. Do not change it.

        A slave that knew more than the store could take over with what it knows, while another one takes over with
        what the store says.
        """
        return self._told

    @property
    def counted(self) -> frozenset[str]:
        """Identities whose acknowledgements count."""
        return frozenset(one.identity for one in self._group.members if not one.joining)

    @property
    def unnamed(self) -> frozenset[str]:
        """Identities of members that did not introduce themselves."""
        return frozenset(one.identity for one in self._group.members if not one.store_id)

    @property
    def needed(self) -> int:
        """Slaves that must at least have a message before it is acknowledged."""
        return max(self._group.needed, self._group.needed_before)

    @property
    def unnoted(self) -> ReplicaGroup | None:
        """The group, while the store has yet to note it."""
        return self._group if self._group.generation > self._noted else None

    def joined(self, identity: str, store_id: str, address: str) -> bool:
        """A slave follows; whether anything has changed.

        A known identity with a new store id takes its place, and so does a known store with a new identity. `store_id`
        is empty for one that did not introduce itself, `address` where its replicator is not known.
        """
        known = next((one for one in self._group.members if one.identity == identity), None)
        if known is None and store_id:
            known = next((one for one in self._group.members if one.store_id == store_id), None)
        if known is None:
            if self._waiting.get(identity) is not None and not store_id:
                return False
            self._waiting[identity] = GroupMember(identity=identity, store_id=store_id, address=address, joining=True)
            return self._advance()
        if not store_id or (known.identity, known.store_id, known.address) == (identity, store_id, address):
            return False
        self._confirmed.pop(known.identity, None)
        known.identity, known.store_id, known.address = identity, store_id, address
        self._group.generation += 1
        return True

    def gone(self, identity: str) -> bool:
        """A slave without a store id has no connection, and enough others have what it had; whether it was a member."""
        member = next((one for one in self._group.members if one.identity == identity and not one.store_id), None)
        if member is None:
            return False
        self._group.members.remove(member)
        self._group.generation += 1
        return True

    def confirmed(self, identity: str, epoch: int, generation: int) -> bool:
        """A slave has the group of that generation on disk; whether anything has changed."""
        if epoch != self._group.epoch or generation <= self._confirmed.get(identity, 0):
            return False
        self._confirmed[identity] = generation
        return self._advance()

    def noted(self, generation: int) -> bool:
        """The store has the group of that generation on disk; whether anything has changed."""
        if generation > self._noted:
            self._noted = generation
            if generation == self._group.generation:
                self._told.CopyFrom(self._group)
        return self._advance()

    def _advance(self) -> bool:
        """Complete the change under way, if enough know of it; begin the next."""
        group = self._group
        if group.generation > self._noted:
            return True
        joining = next((one for one in group.members if one.joining), None)
        if joining is not None or group.needed != group.needed_before:
            members = [one for one in group.members if not one.joining]
            know = sum(not one.store_id or self._confirmed.get(one.identity, 0) >= group.generation for one in members)
            if know < enough_to_know(len(members), group.needed_before):
                return False
            group.needed_before = group.needed
            if joining is not None:
                joining.joining = False
            group.generation += 1
            return True
        if not self._waiting:
            return False
        identity = next(iter(self._waiting))
        group.members.append(self._waiting.pop(identity))
        group.generation += 1
        return True
