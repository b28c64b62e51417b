"""The text of adminNodes."""

from pathlib import Path

import pytest

from tandemmq.admin.cluster.node_addresses import BadNodes, NodeAddresses, check_nodes, parse_nodes
from tandemmq.admin.settings import AdminSettings
from tandemmq.common.settings.settings import BadSetting


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a=host", NodeAddresses("a", "host:8081", "host:8082", "host:8084")),
        ("a=host:1", NodeAddresses("a", "host:1", "host:8082", "host:8084")),
        (" a = host ; metasync = m:2 ;replicator=r:3", NodeAddresses("a", "host:8081", "m:2", "r:3")),
        ("a=host;files=/data/a", NodeAddresses("a", "host:8081", "host:8082", "host:8084", Path("/data/a"))),
        ("a=::1", NodeAddresses("a", "[::1]:8081", "[::1]:8082", "[::1]:8084")),
        ("a=[fe80::2]:7", NodeAddresses("a", "[fe80::2]:7", "[fe80::2]:8082", "[fe80::2]:8084")),
    ],
)
def test_one_node(text: str, node: NodeAddresses) -> None:
    assert parse_nodes(text) == (node,)


def test_several_keep_their_order() -> None:
    assert [one.name for one in parse_nodes("b=x,a=y, ,c=z")] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no node is named"),
        (" , ", "no node is named"),
        ("host", "is no node"),
        ("=host", "is no node"),
        ("a=", "is no node"),
        ("a=x,a=y", "two nodes are called a"),
        ("a=x;store=y:1", "is not understood"),
        ("a=x;metasync", "is not understood"),
        ("a=x;metasync=y", "y"),
        ("a=x:port", "x:port"),
    ],
)
def test_what_is_no_list_of_nodes(text: str, words: str) -> None:
    with pytest.raises(BadNodes, match=words):
        parse_nodes(text)
    assert check_nodes(text) is not None
    with pytest.raises(BadSetting):
        AdminSettings.load(environment={}, overrides={"adminNodes": text})
