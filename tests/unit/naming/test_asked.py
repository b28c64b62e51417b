"""What clients of different ages, and of zones, are told of a route."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tandemmq.common.documents import java_json
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.versions import V4_9_3, V4_9_4
from tandemmq.naming.asked import Asked, NamingRules, NoRoute
from tandemmq.naming.kv import ORDER_TOPICS, KvStore
from tandemmq.naming.routes import RouteTable
from tests.unit.naming.test_routes import said

NOBODY = cast(RemotingConnection, None)


class Names:
    """Two brokers with topic T, each in a zone."""

    def __init__(self, directory: Path, rules: NamingRules) -> None:
        self.routes, self.values = RouteTable(), KvStore(directory / "kv.json")
        for number, zone in ((0, "east"), (1, "west")):
            self.routes.register(replace(said(f"h:{number}", name=zone), zone=zone), zone, 0.0)
        self._handlers = Asked(self.routes, self.values, float, rules, str).handlers()

    def route(self, version: int = V4_9_4, /, topic: str = "T", **fields: str) -> bytes:
        given: Mapping[str, str] = {"topic": topic, **fields}
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields=given, version=version)
        answer = self._handlers[request.code](NOBODY, request)
        assert isinstance(answer, Command)
        return bytes(answer.body)


@pytest.fixture
def names(tmp_path: Path) -> Names:
    return Names(tmp_path, NamingRules())


def test_ids_of_brokers_are_quoted_for_those_who_can_read_that(names: Names) -> None:
    """Clients before 4.9.4 read fastjson's form, of which some read nothing else."""
    assert b'"brokerAddrs":{"0":"h:0"}' in names.route(V4_9_4)
    assert b'"brokerAddrs":{0:"h:0"}' in names.route(V4_9_3)
    assert b'"brokerAddrs":{"0":"h:0"}' in names.route(V4_9_3, acceptStandardJsonOnly="true")


def test_a_zone_has_its_brokers_and_those_without_a_master(names: Names) -> None:
    def told(**fields: str) -> tuple[list[str], list[str]]:
        body = java_json.loads(names.route(**fields))
        return [one["brokerName"] for one in body["brokerDatas"]], [one["brokerName"] for one in body["queueDatas"]]

    east = {"__ZONE_MODE": "true", "__ZONE_NAME": "east"}
    assert told() == (["east", "west"], ["east", "west"])
    assert told(__ZONE_NAME="east") == (["east", "west"], ["east", "west"]), "only where it is asked for"
    assert told(**east) == (["east"], ["east"])
    names.routes.register(replace(said("h:3", 1, name="west"), zone="west"), "c3", 0.0)
    names.routes.disconnected("west")
    assert told(**east) == (["east", "west"], ["east", "west"])
    with pytest.raises(NoRoute):
        names.route(topic="nowhere", **east)


@pytest.mark.parametrize("in_routes", [False, True])
def test_the_order_of_a_topic_is_told_where_the_settings_say_so(tmp_path: Path, in_routes: bool) -> None:
    names = Names(tmp_path, NamingRules(order_in_routes=in_routes))
    names.values.put(ORDER_TOPICS, "T", "east:4;west:4")
    assert (b'"orderTopicConf":"east:4;west:4"' in names.route()) is in_routes
