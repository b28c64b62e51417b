"""Topics and groups: versions, changes, and becoming the master's table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import StaleMaster
from tandemmq.metasync.tables import Change, ConfigTable, Content, Stamp, TableKind
from tandemmq.metasync.validation import local_topics

NOW = Stamp(1_700_000_000_000, 0)


def table(*names: str, version: DataVersion | None = None) -> ConfigTable:
    made = ConfigTable(TableKind.TOPICS)
    made.content = Content(version or DataVersion(), {name: {"topicName": name} for name in names})
    return made


def take(made: ConfigTable, change: Change | None) -> None:
    assert change is not None
    made.accept(change)


versions = st.builds(DataVersion, *[st.integers(0, 3)] * 3)


@given(versions, st.integers(0, 5), st.integers(0, 5))
def test_the_next_version_is_newer_whatever_the_clock_says(version: DataVersion, now: int, epoch: int) -> None:
    following = version.next(now, epoch)
    assert version.older_than(following)
    assert not following.older_than(version)
    assert following.timestamp >= version.timestamp
    assert DataVersion.from_json(following.to_json()) == following


@given(versions, versions)
def test_of_two_different_versions_one_is_older(one: DataVersion, other: DataVersion) -> None:
    assert [one == other, one.older_than(other), other.older_than(one)].count(True) == 1


@pytest.mark.parametrize("bad", [[], "1", {"counter": "1"}, {"timestamp": 1.5}, {"stateVersion": None}])
def test_versions_that_make_no_sense(bad: object) -> None:
    with pytest.raises(ValueError, match="dataVersion"):
        DataVersion.from_json(bad)


def test_a_version_without_state_is_rocketmq_4s() -> None:
    assert DataVersion.from_json({"counter": 2, "timestamp": 3}) == DataVersion(0, 3, 2)
    assert DataVersion.from_json(None) == DataVersion()


def test_a_put_that_changes_nothing_makes_no_version() -> None:
    topics = table("a")
    assert topics.put({"a": {"topicName": "a"}}, NOW) is None
    assert topics.delete(["nobody"], NOW) is None


def test_create_only_leaves_what_is_there() -> None:
    topics = table("a")
    change = topics.put({"a": {"perm": 4}, "b": {"perm": 4}}, NOW, create_only=True)
    take(topics, change)
    assert topics.content.entries == {"a": {"topicName": "a"}, "b": {"perm": 4}}
    assert change is not None
    assert change.keys == frozenset({"b"})


def test_a_change_that_was_not_accepted_leaves_the_table_as_it_was() -> None:
    """The version is assigned together with the content, and only when both are durable (fault 2 of Java's list)."""
    topics = table("a")
    before = topics.content
    topics.put({"b": {}}, NOW)
    topics.delete(["a"], NOW)
    topics.touch(NOW)
    topics.take_over(Content(DataVersion(0, 1, 9), {"x": {}}))
    assert topics.content is before


def test_6424_6426_8983_a_reader_never_sees_an_empty_table() -> None:
    """Java clears the table and fills it again; a reader in between sees no topics, or no groups."""
    slave = table("a", "b", version=DataVersion(0, 1, 1))
    held = slave.content
    take(slave, slave.take_over(Content(DataVersion(0, 2, 2), {"a": {}, "c": {}})))
    assert set(held.entries) == {"a", "b"}
    assert set(slave.content.entries) == {"a", "c"}


def test_9777_after_a_sync_the_versions_are_equal() -> None:
    """Java bumps its own version while it applies the master's table, and takes it again in every cycle."""
    slave, masters = table("a"), Content(DataVersion(1, 2, 3), {"b": {}})
    take(slave, slave.take_over(masters))
    assert slave.content.version == masters.version
    assert slave.take_over(masters) is None


def test_deleted_entries_go_and_local_topics_stay() -> None:
    local = local_topics("node-a", "DefaultCluster")
    slave = table("mine", "node-a", "TBW102", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX")
    masters = Content(DataVersion(0, 1, 1), {"theirs": {}, "TBW102": {"perm": 7}})
    take(slave, slave.take_over(masters, local))
    assert set(slave.content.entries) == {"theirs", "TBW102", "node-a", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"}
    assert slave.content.entries["TBW102"] == {"perm": 7}, "what the master has counts"


@pytest.mark.parametrize(
    ("masters", "own"),
    [((1, 9, 9), (2, 1, 1)), ((0, 9, 4), (0, 1, 5)), ((0, 1, 5), (0, 2, 5)), ((0, 0, 0), (0, 1, 1))],
)
def test_1440_an_older_table_of_the_master_is_not_taken(
    masters: tuple[int, int, int], own: tuple[int, int, int]
) -> None:
    """(state version, timestamp, counter): a stale master, or one that lost its config directory."""
    slave = table("a", version=DataVersion(*own))
    before = slave.content
    with pytest.raises(StaleMaster, match="older"):
        slave.take_over(Content(DataVersion(*masters), {}))
    assert slave.content is before


def test_a_new_mastership_is_newer_whatever_the_counters_say() -> None:
    slave = table("a", version=DataVersion(1, 5, 100))
    take(slave, slave.take_over(Content(DataVersion(2, 1, 3), {"b": {}})))
    assert set(slave.content.entries) == {"b"}


def test_fields_and_keys_that_nobody_knows_are_kept() -> None:
    document = {
        "dataVersion": {"counter": 1, "timestamp": 2, "stateVersion": 0},
        "forbiddenTable": {"G": {"T": 1}},
        "subscriptionGroupTable": {"G": {"groupName": "G", "groupRetryPolicy": {"type": "CUSTOMIZED"}, "new": [1]}},
    }
    groups = ConfigTable(TableKind.SUBSCRIPTION_GROUPS)
    groups.content = groups.read(document)
    assert groups.document(groups.content) == document


@pytest.mark.parametrize(
    "bad", [{}, {"topicConfigTable": []}, {"topicConfigTable": {"a": 1}}, {"topicConfigTable": {}, "dataVersion": 1}]
)
def test_documents_that_are_no_table(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="."):
        ConfigTable(TableKind.TOPICS).read(bad)
