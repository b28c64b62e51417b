"""Promotions of three to five nodes, in any order and interrupted anywhere: nothing acknowledged is lost.

The nodes' rules are the real ones (`Mastership`, `GroupFile`, `Roster`, `Claim`), their files are real files; only the
network, the time and the log's bytes are the model's: a log is its length and the masterships that wrote it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import seed as drawn_from
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.replicator.master.roster import Roster
from tandemmq.replicator.roles.claim import Claim
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import WrongRole
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.log.replica.replica_group import GroupFile, GroupMember, ReplicaGroup
from tandemmq.store.v1 import replica_log_pb2 as wire
from tests.seed import SEED

NUMBERS = ("epoch", "generation", "needed", "needed_before", "known_end")


class QuickDisk(LocalDisk):
    """Files without syncing: nobody pulls the plug."""

    def sync(self, fd: int) -> None: ...

    def sync_dir(self, path: Path) -> None: ...


class Node:
    """One node: its files, its log, and what its replicator has in memory."""

    def __init__(self, root: Path, number: int, role: BrokerRole) -> None:
        self.root, self.number, self.role = root, number, role
        root.mkdir()
        self.log: list[int] = []
        """The message at each place."""
        self.following: Node | None = None
        self.roster: Roster | None = None
        self.acked: dict[str, int] = {}
        self.restart()

    def restart(self) -> None:
        """Everything but the files is forgotten."""
        self.mastership = Mastership(self.root, QuickDisk(), self.role)
        self.mastership.name()
        self.file = GroupFile(self.root, QuickDisk())
        self.following = self.roster = None
        self.acked = {}
        self.departed: dict[str, int] = {}
        """End of the log when a member that had not introduced itself was seen to have no connection."""
        self.introduced = True

    @property
    def identity(self) -> str:
        """Under which its master knows it: the address, as long as it has not introduced itself."""
        return str(self.number) if self.introduced else self.host

    @property
    def host(self) -> str:
        """Two nodes are behind one address."""
        return f"host-{self.number // 2}"

    @property
    def serves(self) -> bool:
        """Whether it takes messages."""
        return not self.mastership.is_slave and not self.mastership.fenced_by

    def state(self) -> wire.RoleState:
        """As the store tells it."""
        mine, group = self.mastership, self.file.group
        members = [wire.GroupMember(**one._asdict()) for one in group.members]
        return wire.RoleState(
            identity=wire.LogIdentity(
                role=wire.BrokerRole.Value(mine.role.value), epoch=mine.epoch, fenced_by_epoch=mine.fenced_by,
                store_id=mine.store_id, broker_id=self.number,
            ),
            max_offset=len(self.log),
            promises=[wire.EpochPromise(**one._asdict()) for one in mine.promises],
            group=wire.ReplicaGroup(members=members, **{name: getattr(group, name) for name in NUMBERS}),
        )  # fmt: skip

    def remember(self, group: wire.ReplicaGroup) -> None:
        """As `Replica.remember`. Raises WrongRole."""
        if group.epoch < self.mastership.newest_known:
            raise WrongRole("older")
        members = tuple(GroupMember(one.identity, one.store_id, one.address, one.joining) for one in group.members)
        self.file.remember(ReplicaGroup(members=members, **{name: getattr(group, name) for name in NUMBERS}))


class Attempt:
    """A promotion under way."""

    def __init__(self, node: Node, epoch: int) -> None:
        self.node, self.epoch = node, epoch
        self.old = wire.RoleState()
        self.promised: dict[int, wire.RoleState] = {}
        self.own: wire.RoleState | None = None


class Promotions(RuleBasedStateMachine):
    """Calls may be lost or late at every step: each rule is one call, and any other may come between two."""

    promotions = 0
    """Of all runs: the model is worth something only where there are some."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.nodes: list[Node] = []
        self.attempts: dict[int, Attempt] = {}
        self.told_ok: list[tuple[int, int]] = []
        """Place and content of each message that was told PUT_OK."""
        self.masters_of: dict[int, int] = {}
        self.last = 0

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(nodes=st.integers(3, 5), in_sync=st.integers(2, 4))
    def begin(self, nodes: int, in_sync: int) -> None:
        self.needed = min(in_sync, nodes) - 1
        roles = [BrokerRole.SYNC_MASTER] + [BrokerRole.SLAVE] * (nodes - 1)
        self.nodes = [Node(self.root / str(number), number, role) for number, role in enumerate(roles)]
        self.masters_of[1] = 0

    def pick(self, number: int) -> Node:
        return self.nodes[number % len(self.nodes)]

    def roster_of(self, master: Node) -> Roster:
        if master.roster is None:
            master.roster = Roster(master.mastership.epoch, self.needed, master.state().group)
        return master.roster

    # -- replication --------------------------------------------------------------------------------------------------

    @rule(one=st.integers(0, 4), other=st.integers(0, 4))
    def join(self, one: int, other: int) -> None:
        """A slave introduces itself, is told the group, and notes it; or it finds that it must not follow."""
        slave, master = self.pick(one), self.pick(other)
        if not slave.mastership.is_slave or master.mastership.is_slave:
            return
        if slave.mastership.newest_known > master.mastership.newest_known:
            newest = slave.mastership.promises[-1] if slave.mastership.promises else None
            master.mastership.fence(slave.mastership.newest_known, newest.store_id if newest else "")
        if not master.serves or slave.mastership.newest_known > master.mastership.epoch:
            return
        if slave.log != master.log[: len(slave.log)]:
            return  # a fork
        roster, known = self.roster_of(master), slave.file.group
        roster.joined(slave.identity, slave.mastership.store_id, slave.identity)
        roster.confirmed(slave.identity, known.epoch, known.generation)
        group = wire.ReplicaGroup()
        group.CopyFrom(roster.told)
        group.known_end = len(master.log)
        if group.epoch:
            slave.remember(group)
        slave.mastership.follow(master.mastership.epoch, len(slave.log))
        self.connect(slave, master, introduced=True)

    def connect(self, slave: Node, master: Node, *, introduced: bool) -> None:
        if (slave.following, slave.introduced) != (master, introduced):
            self.disconnect(slave)
        slave.following, slave.introduced = master, introduced

    def disconnect(self, slave: Node) -> None:
        """Its connection ends; another one under the same address may go on."""
        master, slave.following = slave.following, None
        if master is None:
            return
        ends = [len(one.log) for one in self.followers(master) if one.identity == slave.identity]
        if ends:
            master.acked[slave.identity] = max(ends)
        else:
            master.acked.pop(slave.identity, None)
        self.see_departures(master)

    def followers(self, master: Node) -> list[Node]:
        return [node for node in self.nodes if node.following is master]

    @rule(one=st.integers(0, 4), other=st.integers(0, 4))
    def follow_unintroduced(self, one: int, other: int) -> None:
        """A slave that knows nothing yet follows though its introduction did not get through."""
        slave, master = self.pick(one), self.pick(other)
        known = slave.mastership.newest_known, slave.file.group.epoch
        if not slave.mastership.is_slave or not master.serves or known != (1, 0):
            return
        if slave.log != master.log[: len(slave.log)]:
            return
        self.connect(slave, master, introduced=False)
        self.roster_of(master).joined(slave.identity, "", "")
        self.see_departures(master)

    def see_departures(self, master: Node) -> None:
        """As `Master._note_departures`."""
        absent = self.roster_of(master).unnamed - {one.identity for one in self.followers(master)}
        master.departed = {one: master.departed.get(one, len(master.log)) for one in absent}

    @rule(one=st.integers(0, 4))
    def let_go(self, one: int) -> None:
        """As `Master._let_go`."""
        master = self.pick(one)
        if master.mastership.is_slave:
            return
        roster = self.roster_of(master)
        self.see_departures(master)
        for identity, end in list(master.departed.items()):
            if self.acknowledged_end(master) >= end and roster.gone(identity):
                del master.departed[identity]

    @rule(one=st.integers(0, 4))
    def note(self, one: int) -> None:
        """A master's store notes its group."""
        master = self.pick(one)
        if master.mastership.is_slave:
            return
        roster = self.roster_of(master)
        if (group := roster.unnoted) is not None:
            with suppress(WrongRole):
                master.remember(group)
                roster.noted(group.generation)

    @rule(one=st.integers(0, 4), slaves=st.sets(st.integers(0, 4), min_size=1), stranger=st.integers(0, 9))
    def work(self, one: int, slaves: set[int], stranger: int) -> None:
        """Some time without trouble between a master and some slaves, one of which may not introduce itself."""
        for _ in range(3):
            for slave in slaves:
                if slave == stranger:
                    self.follow_unintroduced(slave, one)
                else:
                    self.join(slave, one)
            self.note(one)
        self.send(one, 2)
        for slave in slaves:
            self.replicate(slave, 4)

    @rule(one=st.integers(0, 4), count=st.integers(1, 3))
    def send(self, one: int, count: int) -> None:
        master = self.pick(one)
        if master.serves:
            for _ in range(count):
                self.last += 1
                master.log.append(self.last)

    @rule(one=st.integers(0, 4), count=st.integers(1, 4))
    def replicate(self, one: int, count: int) -> None:
        """Bytes arrive, if the slave's store takes them."""
        slave = self.pick(one)
        master = slave.following
        if master is None:
            return
        try:
            slave.mastership.check_source(master.mastership.epoch)
        except WrongRole:
            self.disconnect(slave)
            return
        slave.log += master.log[len(slave.log) : len(slave.log) + count]
        master.acked[slave.identity] = max(master.acked.get(slave.identity, 0), len(slave.log))
        self.acknowledge(master)
        self.let_go(master.number)

    def acknowledge(self, master: Node) -> None:
        """What enough of those who count have is told PUT_OK, if the master still takes messages."""
        if not master.serves:
            return
        end = self.acknowledged_end(master)
        if end > 0:
            self.told_ok += [pair for pair in enumerate(master.log[:end]) if pair not in self.told_ok]
            assert all(not node.serves or node.mastership.epoch <= master.mastership.epoch or end == 0 or
                       self.settled(master, end) for node in self.nodes), "two masters acknowledge"  # fmt: skip

    def acknowledged_end(self, master: Node) -> int:
        """Up to where enough have the log; -1 if there are not enough."""
        roster = self.roster_of(master)
        acks = sorted((end for who, end in master.acked.items() if who in roster.counted), reverse=True)
        return acks[roster.needed - 1] if len(acks) >= roster.needed else -1

    def settled(self, master: Node, end: int) -> bool:
        """Whether the newest master has all of what an older one still tells: then it was on its way before."""
        newest = max((node for node in self.nodes if node.serves), key=lambda node: node.mastership.epoch)
        return newest.log[:end] == master.log[:end]

    @rule(one=st.integers(0, 4))
    def restart(self, one: int) -> None:
        self.disconnect(self.pick(one))
        self.pick(one).restart()
        self.attempts.pop(one % len(self.nodes), None)

    @rule(one=st.integers(0, 4))
    def cut(self, one: int) -> None:
        slave = self.pick(one)
        master = slave.following
        self.disconnect(slave)
        if master is not None:
            self.let_go(master.number)

    # -- promotion ----------------------------------------------------------------------------------------------------

    @rule(one=st.integers(0, 4), seen=st.sets(st.integers(0, 4)))
    def promote(self, one: int, seen: set[int]) -> None:
        """All steps at once, with those who answer."""
        self.attempt(one, seen)
        attempt = self.attempts.get(one % len(self.nodes))
        if attempt is None:
            return
        for other in seen:
            old = self.pick(other)
            if not old.mastership.is_slave and attempt.node.mastership.is_slave:
                self._fence_old_master(attempt, old)
        self._promise_to_itself(attempt)
        self._ask(attempt, seen)
        self._begin_epoch(attempt)

    @rule(one=st.integers(0, 4), seen=st.sets(st.integers(0, 4)))
    def attempt(self, one: int, seen: set[int]) -> None:
        """Somebody asks for it; the epoch is greater than those of the nodes that answer."""
        node = self.pick(one)
        if node.serves:
            return
        known = [node, *(self.pick(number) for number in seen)]
        attempt = Attempt(node, 1 + max(other.mastership.newest_known for other in known))
        self.attempts[node.number] = attempt

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), other=st.integers(0, 4))
    def fence_old_master(self, data: st.DataObject, other: int) -> None:
        self._fence_old_master(self.attempts[data.draw(st.sampled_from(sorted(self.attempts)))], self.pick(other))

    def _fence_old_master(self, attempt: Attempt, old: Node) -> None:
        node = attempt.node
        if attempt.own is not None or not node.mastership.is_slave or old.mastership.is_slave:
            return
        if self.promise(old, attempt):
            attempt.old = old.state()
            if node.following is old:  # it takes the rest
                node.log += old.log[len(node.log) :]

    def promise(self, node: Node, attempt: Attempt) -> bool:
        mine = attempt.node.mastership.store_id
        node.mastership.fence(attempt.epoch, mine, attempt.node.identity)
        return any((one.epoch, one.store_id) == (attempt.epoch, mine) for one in node.mastership.promises)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def promise_to_itself(self, data: st.DataObject) -> None:
        self._promise_to_itself(self.attempts[data.draw(st.sampled_from(sorted(self.attempts)))])

    def _promise_to_itself(self, attempt: Attempt) -> None:
        if attempt.own is not None or not self.promise(attempt.node, attempt):
            return
        self.disconnect(attempt.node)
        attempt.own = attempt.node.state()
        if not attempt.node.mastership.is_slave:
            attempt.old = attempt.own

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), others=st.sets(st.integers(0, 4), min_size=1))
    def ask(self, data: st.DataObject, others: set[int]) -> None:
        self._ask(self.attempts[data.draw(st.sampled_from(sorted(self.attempts)))], others)

    def _ask(self, attempt: Attempt, others: set[int]) -> None:
        for other in map(self.pick, others):
            if attempt.own is None or other is attempt.node or not other.mastership.is_slave:
                continue
            if self.promise(other, attempt):
                attempt.promised[other.number] = other.state()

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def begin_epoch(self, data: st.DataObject) -> None:
        self._begin_epoch(self.attempts[data.draw(st.sampled_from(sorted(self.attempts)))])

    def _begin_epoch(self, attempt: Attempt) -> None:
        node, number = attempt.node, attempt.node.number
        if attempt.own is None:
            return
        shown = Claim(attempt.own, list(attempt.promised.values()), attempt.old)
        if next(shown.objections(), None) is not None:
            return
        del self.attempts[number]
        try:
            node.mastership.promote(BrokerRole.SYNC_MASTER, attempt.epoch, len(node.log))
        except WrongRole:
            return
        type(self).promotions += 1
        assert self.masters_of.setdefault(attempt.epoch, number) == number, "two masters of one epoch"
        node.roster, node.acked, node.following = None, {}, None

    @rule(one=st.integers(0, 4), other=st.integers(0, 4))
    def follow(self, one: int, other: int) -> None:
        """`tandem follow`: a fenced master, or a slave, of a newer one; what it has too much goes as with reseed."""
        node, master = self.pick(one), self.pick(other)
        if not master.serves or node.serves or master.mastership.epoch < node.mastership.newest_known:
            return
        if node.log != master.log[: len(node.log)]:
            node.file.had(len(node.log))
            node.log = []
        node.mastership.demote(master.mastership.epoch)
        self.attempts.pop(node.number, None)

    @rule(one=st.integers(0, 4))
    def reseed(self, one: int) -> None:
        """An operator gives up a slave's log."""
        node = self.pick(one)
        if node.mastership.is_slave and node.following is None:
            node.file.had(len(node.log))
            node.log = []
            self.attempts.pop(node.number, None)

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def nothing_acknowledged_is_missing(self) -> None:
        serving = [node for node in self.nodes if node.serves]
        if not serving:
            return
        newest = max(serving, key=lambda node: node.mastership.epoch)
        if any(node.mastership.newest_known > newest.mastership.epoch and not node.mastership.is_slave
               for node in self.nodes):  # fmt: skip
            return  # a newer one was fenced meanwhile: nobody newer serves
        for place, content in self.told_ok:
            assert newest.log[place : place + 1] == [content], f"message {content} is not at {place} on {newest.number}"


def run(examples: int, seed: int) -> int:
    """Runs the model, the same examples for the same seed; gives the number of promotions."""
    before = Promotions.promotions
    limits = settings(max_examples=examples, stateful_step_count=40, deadline=None, database=None)
    run_state_machine_as_test(drawn_from(seed)(Promotions), settings=limits)
    return Promotions.promotions - before


@contextmanager
def promotions() -> Iterator[Promotions]:
    """The model, to be led by hand."""
    state = Promotions()
    try:
        yield state
    finally:
        state.teardown()


def test_who_knows_of_itself_before_the_masters_store_does_takes_over_alone() -> None:
    """A slave that was told of itself at once began epoch 2, and so did another one that had fenced the master."""
    with promotions() as state:
        state.begin(nodes=4, in_sync=2)
        state.note(one=0)
        state.join(one=3, other=0)
        state.promote(one=3, seen=set())
        state.promote(one=1, seen={0})
        assert [node.number for node in state.nodes if node.serves] == [1]


def test_who_joins_does_not_take_over_while_those_before_it_may() -> None:
    """One of two slaves did not know of the other yet and took over in silence; so did the other, from the master."""
    with promotions() as state:
        state.begin(nodes=3, in_sync=2)
        while [one.identity for one in state.roster_of(state.nodes[0]).group.members] != ["1", "2"]:
            state.join(one=1, other=0)
            state.join(one=2, other=0)
            state.note(one=0)
        state.note(one=0)
        state.promote(one=1, seen=set())
        state.promote(one=2, seen={0})
        assert [node.number for node in state.nodes if node.serves] == [1]


def test_a_master_of_an_earlier_epoch_is_not_the_one_that_serves() -> None:
    """It had been fenced by the one that serves, and was taken for that one: two began the same epoch."""
    with promotions() as state:
        state.begin(nodes=4, in_sync=2)
        state.promote(one=3, seen={0})
        state.join(one=2, other=3)
        state.promote(one=1, seen={3})
        state.promote(one=2, seen={0})
        assert [node.number for node in state.nodes if node.serves] == [1]


@pytest.mark.slow
def test_promotions_lose_nothing() -> None:
    """How many of the examples have a promotion is chance: as many are run as it takes to see some."""
    examples = int(os.environ.get("TANDEM_TEST_PROMOTION_EXAMPLES", "60"))
    promoted = 0
    for more in range(20):
        promoted += run(examples, SEED + more)
        if promoted > examples // 10:
            return
    assert promoted > examples // 10
