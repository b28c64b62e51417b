"""Offsets of a RocketMQ master, which counts no resets, merged with ours."""

from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.java_master import counted
from tandemmq.metasync.offset_tables import ConsumerOffsetTable, GroupQueueOffsets
from tandemmq.metasync.tables import Content

KEY = "T@G"


def slave_of(offsets: dict[int, int], resets: dict[int, int] | None = None) -> ConsumerOffsetTable:
    """A slave's table that came from its master."""
    table = ConsumerOffsetTable()
    masters = Content(DataVersion(0, 1, 1), {KEY: GroupQueueOffsets(offsets, resets or {})})
    take(table, masters)
    return table


def take(table: ConsumerOffsetTable, masters: Content) -> None:
    change = table.take_over(masters)
    assert change is not None
    table.accept(change, masters)


def told(table: ConsumerOffsetTable, offsets: dict[int, int], counter: int) -> GroupQueueOffsets:
    """What the slave has after its master has said that."""
    take(table, Content(DataVersion(0, counter, counter), counted(table, {KEY: GroupQueueOffsets(offsets)})))
    return table.entries[KEY]


def test_a_master_that_goes_on_or_back_is_right() -> None:
    table = slave_of({0: 5, 1: 7})
    assert told(table, {0: 6, 1: 7}, 2) == ({0: 6, 1: 7}, {})
    assert told(table, {0: 2, 1: 7}, 3) == ({0: 2, 1: 7}, {0: 1})
    assert told(table, {0: 3, 1: 8}, 4) == ({0: 3, 1: 8}, {0: 1})
    assert told(table, {0: 1, 1: 8}, 5) == ({0: 1, 1: 8}, {0: 2})
    assert not table.pending


def test_what_was_committed_here_stays_until_the_master_is_as_far() -> None:
    table = slave_of({0: 5})
    assert table.commit(KEY, 0, 9, on_slave=True) == 9
    assert told(table, {0: 5}, 2).offsets == {0: 9}
    assert told(table, {0: 8}, 3).offsets == {0: 9}
    assert table.pending == {KEY: frozenset({0})}
    assert told(table, {0: 12}, 4).offsets == {0: 12}
    assert not table.pending
    assert told(table, {0: 10}, 5) == ({0: 10}, {0: 1})


def test_a_group_that_the_master_has_no_more_goes() -> None:
    table = slave_of({0: 5})
    take(table, Content(DataVersion(0, 2, 2), counted(table, {"T@H": GroupQueueOffsets({0: 1})})))
    assert set(table.entries) == {"T@H"}


def test_a_table_that_is_not_the_masters_is_replaced() -> None:
    table = ConsumerOffsetTable()
    table.commit(KEY, 0, 100)
    assert told(table, {0: 3}, 1) == ({0: 3}, {})
