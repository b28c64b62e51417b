"""Rates of `tandem top`, bars of `tandem bench`."""

import pytest

from tandemmq.admin.v1 import admin_pb2
from tandemmq.cli.messaging.bench import spark
from tandemmq.cli.messaging.top import TopLook, rates
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.store.v1 import store_pb2


def look(at: float, end: int, written: int, node: str = "a", topics_at: float = 0) -> TopLook:
    topic = admin_pb2.Topic(broker="b", config=metadata_pb2.TopicConfig(name="t"), written=written, node=node)
    return TopLook(
        at,
        topics_at or at,
        admin_pb2.Cluster(nodes=[admin_pb2.Node(name="a", log=store_pb2.LogState(max_offset=end))]),
        admin_pb2.ListTopicsResponse(topics=[topic]),
        admin_pb2.ListGroupsResponse(),
        {},
    )


def test_rates_are_changes_a_second() -> None:
    change = rates(look(10, 1000, 5), look(12, 5000, 25))
    assert change.bytes_written == {"a": 2000}
    assert change.messages == {("b", "t"): 10}


def test_the_first_look_and_what_shrank_have_no_rate() -> None:
    assert rates(None, look(1, 9, 9)).messages == {("b", "t"): 0}
    assert rates(look(1, 9, 9), look(2, 3, 1)) == ({"a": 0}, {("b", "t"): 0})
    assert rates(look(1, 9, 9), look(1, 10, 10)).messages == {("b", "t"): 0}


def test_a_store_that_was_away_shows_no_spike_when_it_is_back() -> None:
    away = look(1, 0, 0)
    away.cluster.nodes[0].ClearField("log")
    away.topics.topics[0].ClearField("written")
    assert rates(away, look(2, 10**9, 10**6)) == ({"a": 0}, {("b", "t"): 0})
    assert rates(look(1, 10**9, 10**6), away) == ({"a": 0}, {("b", "t"): 0})


def test_a_slave_that_stands_in_for_its_master_is_no_spike_and_then_has_a_rate_of_its_own() -> None:
    master, slave = look(10, 0, 10**6), look(12, 0, 400_000, node="b")
    assert rates(master, slave).messages == {("b", "t"): 0}
    assert rates(slave, look(14, 0, 400_010, node="b")).messages == {("b", "t"): 5}
    assert rates(slave, look(14, 0, 10**6 + 10)).messages == {("b", "t"): 0}, "the master is back"


def test_a_look_that_a_node_kept_waiting_is_counted_by_its_own_time() -> None:
    waited = rates(look(10, 1000, 100, topics_at=11), look(12, 3000, 700, topics_at=17))
    assert waited == ({"a": 1000}, {("b", "t"): 100})


@pytest.mark.parametrize(("counts", "line"), [((), ""), ((0, 0), ""), ((0, 8, 4, 0), " █▄ "), ((1, 1_000_000), "▁█")])
def test_bars_show_one_beside_a_million(counts: tuple[int, ...], line: str) -> None:
    assert spark(counts) == line
