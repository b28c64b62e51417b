"""Consumer offsets and delay offsets: nothing goes back but by a reset, on master, slave, and after role changes."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import StaleMaster
from tandemmq.metasync.offset_tables import ConsumerOffsetTable, DelayOffsetTable, GroupQueueOffsets
from tandemmq.metasync.tables import Change, Content, Stamp

NOW = Stamp(1_700_000_000_000, 0)
KEY = "T@G"


def master(offset: int = 10) -> ConsumerOffsetTable:
    table = ConsumerOffsetTable()
    table.commit(KEY, 0, offset)
    table.changed(NOW)
    return table


def follow(slave: ConsumerOffsetTable, of: ConsumerOffsetTable) -> bool:
    masters = of.content
    change = slave.take_over(masters)
    if change is not None:
        slave.accept(change, masters)
    return change is not None


def hand_over(slave: ConsumerOffsetTable, to: ConsumerOffsetTable, stamp: Stamp = NOW) -> None:
    for told in list(slave.waiting()):
        resets, before = to.entries.get(told.key, GroupQueueOffsets({})).at(told.queue)
        if told.resets == resets and told.offset > before:
            to.commit(told.key, told.queue, told.offset)
            to.changed(stamp)
        slave.handed_over(told)


def at(table: ConsumerOffsetTable, key: str = KEY) -> int:
    return table.entries[key].offsets[0]


def test_an_offset_never_goes_back_but_by_a_reset() -> None:
    table = master(10)
    assert table.commit(KEY, 0, 7) == 10
    table.reset(KEY, 0, 7)
    assert at(table) == 7


def test_1094_7790_commits_on_a_slave_survive_the_master_s_return() -> None:
    """Java: what consumers committed on the slave is overwritten by the old table of the master that comes back."""
    old, slave = master(10), ConsumerOffsetTable()
    follow(slave, old)
    slave.commit(KEY, 0, 99, on_slave=True)
    follow(slave, old)
    assert at(slave) == 99
    hand_over(slave, old)
    assert at(old) == 99
    follow(slave, old)
    assert at(slave) == 99
    assert not slave.pending


def test_1440_what_a_killed_master_forgot_its_slave_tells_it() -> None:
    """A master that is killed forgets what it had not flushed; the slave neither goes back nor keeps it to itself."""
    crashed, slave = master(10), ConsumerOffsetTable()
    flushed = crashed.document(crashed.content)
    crashed.commit(KEY, 0, 50)
    crashed.changed(NOW)
    follow(slave, crashed)
    crashed.load(flushed)
    assert follow(slave, crashed)
    assert at(slave) == 50
    hand_over(slave, crashed)
    assert at(crashed) == 50


def test_a_reset_reaches_the_slave_and_is_not_undone_by_an_older_commit() -> None:
    old, slave = master(10), ConsumerOffsetTable()
    follow(slave, old)
    slave.commit(KEY, 0, 99, on_slave=True)
    old.reset(KEY, 0, 3)
    old.changed(NOW)
    hand_over(slave, old)
    follow(slave, old)
    assert at(old) == at(slave) == 3


def test_deleted_offsets_go() -> None:
    old, slave = master(10), ConsumerOffsetTable()
    old.commit("T@gone", 0, 5)
    follow(slave, old)
    old.delete(["T@gone"])
    old.changed(NOW)
    follow(slave, old)
    assert set(slave.entries) == {KEY}


def test_a_new_mastership_s_offsets_count_even_if_they_are_smaller() -> None:
    """The new master may have fewer messages: an offset of the old one would make consumers leave messages out."""
    demoted, new = master(100), master(60)
    new.begin_mastership(Stamp(NOW.now_ms, 2))
    follow(demoted, new)
    assert at(demoted) == 60
    assert not demoted.pending


def test_a_table_that_followed_nobody_is_replaced_not_merged() -> None:
    own, theirs = master(100), master(60)
    own.version = theirs.version
    follow(own, theirs)
    assert at(own) == 60


def test_1440_a_table_of_an_older_mastership_is_not_taken() -> None:
    slave = master(10)
    slave.version = DataVersion(2, 1, 1)
    with pytest.raises(StaleMaster):
        slave.take_over(Content(DataVersion(1, 9, 9), {}))


def test_what_waits_survives_a_restart() -> None:
    old, slave = master(10), ConsumerOffsetTable()
    old.reset(KEY, 0, 4)
    follow(slave, old)
    slave.commit(KEY, 0, 8, on_slave=True)
    again = ConsumerOffsetTable()
    again.load(slave.document(slave.content))
    assert list(again.waiting()) == list(slave.waiting())
    follow(again, old)
    assert at(again) == 8


def test_the_file_is_rocketmq_s_beside_what_is_ours() -> None:
    document: dict[str, Any] = {
        "offsetTable": {"T@G": {"0": 7, "1": 45}, "odd": {"0": 1}},
        "groupTopicMap": {"G": ["T"]},
    }
    table = ConsumerOffsetTable()
    table.load(document)
    written = table.document(table.content)
    assert written.pop("dataVersion") == {"counter": 0, "stateVersion": 0, "timestamp": 0}
    assert written == document


@pytest.mark.parametrize("bad", [{}, [], {"a@b": 1}, {"a@b": {"x": 1}}, {"a@b": {"0": "1"}}, {"a@b": {"0": 1 << 63}}])
def test_files_that_are_no_offset_table(bad: object) -> None:
    with pytest.raises(ValueError, match="."):
        ConsumerOffsetTable().load({"offsetTable": bad} if bad != {} else {})


def test_delay_offsets() -> None:
    table, slave = DelayOffsetTable(), DelayOffsetTable()
    assert table.put(3, 9) == 9
    assert table.put(3, 5) == 9
    assert table.put(3, 5, reset=True) == 5
    table.changed(NOW)
    change = slave.take_over(table.content)
    assert change is not None
    slave.accept(change)
    assert slave.content == table.content
    assert slave.take_over(table.content) is None
    slave.version = DataVersion(5, 0, 0)
    with pytest.raises(StaleMaster):
        slave.take_over(table.content)


class MasterAndSlave(RuleBasedStateMachine):
    """Commits on both sides, resets, deletions, cycles, crashes; the model says where each queue must stand."""

    keys = st.sampled_from(["T@G", "T@H", "U@G"])
    queues = st.integers(0, 1)

    def __init__(self) -> None:
        super().__init__()
        self.clock = NOW.now_ms
        self.master, self.slave = ConsumerOffsetTable(), ConsumerOffsetTable()
        self.changed()
        self.flushed = self.master.document(self.master.content)
        follow(self.slave, self.master)

    def changed(self) -> None:
        """Time passes: a version that was lost with the killed process does not come again."""
        self.clock += 1
        self.master.changed(Stamp(self.clock, 0))

    @rule(key=keys, queue=queues, offset=st.integers(0, 50))
    def commit(self, key: str, queue: int, offset: int) -> None:
        self.master.commit(key, queue, offset)
        self.changed()

    @rule(key=keys, queue=queues, offset=st.integers(0, 50))
    def commit_on_slave(self, key: str, queue: int, offset: int) -> None:
        if key in self.slave.entries:
            self.slave.commit(key, queue, offset, on_slave=True)

    @rule(key=keys, queue=queues, offset=st.integers(0, 50))
    def reset(self, key: str, queue: int, offset: int) -> None:
        self.master.reset(key, queue, offset)
        self.changed()
        self.flush()

    @rule(key=keys)
    def delete(self, key: str) -> None:
        self.cycle()
        if self.master.delete([key]):
            self.changed()
        self.flush()
        self.cycle()

    @rule()
    def flush(self) -> None:
        self.flushed = self.master.document(self.master.content)

    @rule()
    def kill_master(self) -> None:
        self.master.load(self.flushed)
        self.changed()

    @rule()
    def restart_slave(self) -> None:
        written = self.slave.document(self.slave.content)
        self.slave = ConsumerOffsetTable()
        self.slave.load(written)

    @rule()
    def cycle(self) -> None:
        before = {key: entry for key, entry in self.slave.entries.items() if key in self.master.entries}
        self.clock += 1
        hand_over(self.slave, self.master, Stamp(self.clock, 0))
        follow(self.slave, self.master)
        for key, entry in before.items():
            for queue in entry.offsets:
                if queue in self.slave.entries.get(key, GroupQueueOffsets({})).offsets:
                    assert self.slave.entries[key].at(queue) >= entry.at(queue), "nothing goes back"

    @rule()
    def come_to_rest(self) -> None:
        self.cycle()
        self.cycle()
        self.cycle()
        assert self.slave.entries == self.master.entries
        assert self.slave.version == self.master.version
        assert not self.slave.pending

    @invariant()
    def what_is_written_can_be_read(self) -> None:
        for table in (self.master, self.slave):
            again = ConsumerOffsetTable()
            again.load(table.document(table.content))
            assert again.content == table.content
            assert again.pending == table.pending


MasterAndSlave.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_master_and_slave = MasterAndSlave.TestCase


def test_changes_are_whole_tables() -> None:
    table = master()
    change = ConsumerOffsetTable().take_over(table.content)
    assert isinstance(change, Change)
    assert change.keys is None
