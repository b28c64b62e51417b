"""The table of routes: who is alive, whose topics count, and what RocketMQ's loses and ours does not."""

import pytest

from tandemmq.common.wire.remoting.registration import (
    BrokerIdentity,
    RegisteredTopic,
    Registration,
    RegistrationVersion,
)
from tandemmq.naming.broker import TopicQueues
from tandemmq.naming.routes import OlderRegistration, RouteTable


def topic(name: str, queues: int = 4, perm: int = 6) -> RegisteredTopic:
    return RegisteredTopic(name, queues, queues, perm)


def said(
    address: str = "h:1",
    broker_id: int = 0,
    topics: tuple[RegisteredTopic, ...] = (topic("T"),),
    version: RegistrationVersion = RegistrationVersion(0, 1, 1),  # noqa: B008 - immutable
    name: str = "b",
    heartbeat_ms: int | None = None,
) -> Registration:
    who = BrokerIdentity("C", name, broker_id, address)
    return Registration(who, f"ha-{address}", version, {one.name: one for one in topics}, heartbeat_ms)


def addresses(routes: RouteTable, name: str = "T") -> dict[int, str]:
    brokers, _ = routes.route(name)
    return brokers[0].addresses if brokers else {}


def test_a_slave_is_told_its_master_and_a_master_nothing() -> None:
    routes = RouteTable()
    assert routes.register(said("h:2", 1), "c2", 0.0) == (None, None)
    assert routes.register(said("h:1", 0), "c1", 0.0) == (None, None)
    assert routes.register(said("h:2", 1), "c2", 0.0) == ("h:1", "ha-h:1")
    assert addresses(routes) == {0: "h:1", 1: "h:2"}


def test_topics_of_slaves_do_not_count_and_a_single_topic_does() -> None:
    """RocketMQ 5 refuses a first registration with exactly one topic."""
    routes = RouteTable()
    routes.register(said("h:2", 1), "c2", 0.0)
    assert routes.route("T") == ([], {})
    routes.register(said("h:1"), "c1", 0.0)
    assert routes.route("T")[1] == {"b": TopicQueues(4, 4, 6, 0)}


def test_a_registration_adds_to_the_topics_and_the_same_version_changes_nothing() -> None:
    """Brokers send only the topics that changed (registerIncrementBrokerData)."""
    routes = RouteTable()
    routes.register(said(), "c", 0.0)
    routes.register(said(topics=(topic("U"),), version=RegistrationVersion(0, 2, 2)), "c", 0.0)
    assert set(routes.topics) == {"T", "U"}
    routes.register(said(topics=(topic("T", 9), topic("V")), version=RegistrationVersion(0, 2, 2)), "c", 0.0)
    assert set(routes.topics) == {"T", "U"}
    assert routes.topics["T"]["b"].read_queues == 4


def test_a_broker_that_is_silent_goes_with_its_topics_and_one_that_is_heard_stays() -> None:
    routes = RouteTable(patience=120)
    routes.register(said("h:1"), "c1", 0.0)
    routes.register(said("h:2", name="other", topics=(topic("T"), topic("U"))), "c2", 0.0)
    routes.register(said("h:3", name="quick", topics=(), heartbeat_ms=10_000), "c3", 0.0)
    assert [one.address for one in routes.expire(10.1)] == ["h:3"]
    assert routes.heard(BrokerIdentity("C", "b", 0, "h:1"), 100.0) == RegistrationVersion(0, 1, 1)
    assert routes.heard(BrokerIdentity("C", "b", 0, "h:9"), 100.0) is None
    assert [one.address for one in routes.expire(120.1)] == ["h:2"]
    assert set(routes.topics) == {"T"}
    assert set(routes.topics["T"]) == {"b"}


def test_a_closed_connection_takes_its_broker_away_and_no_other() -> None:
    routes = RouteTable()
    routes.register(said("h:1", 0), "old", 0.0)
    routes.register(said("h:2", 1), "c2", 0.0)
    routes.register(said("h:1", 0), "new", 0.0)
    assert routes.disconnected("old") == []
    assert [one.address for one in routes.disconnected("new")] == ["h:1"]
    assert addresses(routes) == {1: "h:2"}, "a topic stays as long as somebody has it"
    assert [one.address for one in routes.disconnected("c2")] == ["h:2"]
    assert not routes.brokers
    assert not routes.topics


def test_a_promoted_slave_is_the_master_and_no_slave_any_more() -> None:
    routes = RouteTable()
    routes.register(said("h:1", 0, version=RegistrationVersion(1, 1, 1)), "c1", 0.0)
    routes.register(said("h:2", 1, version=RegistrationVersion(1, 1, 1)), "c2", 0.0)
    routes.register(said("h:2", 0, version=RegistrationVersion(2, 1, 1)), "c2", 0.0)
    assert addresses(routes) == {0: "h:2"}


def test_an_old_master_does_not_take_the_place_of_a_newer_one() -> None:
    routes = RouteTable()
    routes.register(said("h:2", 0, version=RegistrationVersion(2, 1, 1)), "c2", 0.0)
    with pytest.raises(OlderRegistration, match="h:2 is broker 0 of b in epoch 2"):
        routes.register(said("h:1", 0, version=RegistrationVersion(1, 9, 9)), "c1", 0.0)
    assert addresses(routes) == {0: "h:2"}


def test_a_late_unregistration_of_an_old_master_leaves_the_new_one() -> None:
    """RocketMQ takes the new one away."""
    routes = RouteTable()
    routes.register(said("h:1"), "c1", 0.0)
    routes.register(said("h:2"), "c2", 0.0)
    assert not routes.unregister(BrokerIdentity("C", "b", 0, "h:1"))
    assert addresses(routes) == {0: "h:2"}
    assert routes.unregister(BrokerIdentity("C", "b", 0, "h:2"))
    assert not routes.unregister(BrokerIdentity("C", "b", 0, "h:2"))
    assert routes.topics == {}


def test_writing_is_taken_and_given_back_and_nothing_else() -> None:
    """RocketMQ gives back 6, whatever there was: TBW102, which has 7, is no template for new topics any more."""
    routes = RouteTable()
    routes.register(said(topics=(topic("TBW102", perm=7), topic("T"))), "c", 0.0)
    routes.register(said("h:2", name="other"), "c2", 0.0)
    assert routes.set_writable("b", writable=False) == 2
    assert [routes.topics[name]["b"].perm for name in ("TBW102", "T")] == [5, 4]
    assert routes.topics["T"]["other"].perm == 6
    assert routes.set_writable("b", writable=True) == 2
    assert [routes.topics[name]["b"].perm for name in ("TBW102", "T")] == [7, 6]
    assert routes.set_writable("nobody", writable=True) == 0


def test_a_topic_is_forgotten_in_one_cluster_or_in_all() -> None:
    routes = RouteTable()
    routes.register(said("h:1"), "c1", 0.0)
    routes.register(said("h:2", name="other"), "c2", 0.0)
    routes.brokers["other"].cluster = "D"
    routes.delete_topic("T", "D")
    assert set(routes.topics["T"]) == {"b"}
    assert list(routes.topics_of_cluster("C")) == ["T"]
    assert list(routes.topics_of_cluster("D")) == []
    routes.delete_topic("T", None)
    routes.delete_topic("T", None)
    assert routes.topics == {}


def test_a_topic_is_added_where_it_was_not_known() -> None:
    routes = RouteTable()
    routes.register(said(), "c", 0.0)
    routes.add_queues("T", [("b", TopicQueues(1, 1, 4, 0))])
    routes.add_queues("U", [("b", TopicQueues(1, 1, 4, 0)), ("nobody", TopicQueues(1, 1, 4, 0))])
    assert routes.topics["T"]["b"].read_queues == 4
    assert set(routes.topics["U"]) == {"b"}
    assert routes.clusters() == {"C": ["b"]}
