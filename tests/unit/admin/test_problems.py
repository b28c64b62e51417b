"""What is wrong, in words."""

import pytest

from tandemmq.admin.cluster.problems import add_problems
from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2, store_pb2


def node(name: str = "one", role: int = pb.MASTER, version: str = "1.2.0", **more: object) -> pb.Node:
    """A node that is well."""
    found = pb.Node(name=name, broker_name="alpha", role=role, **more)  # type: ignore[arg-type]
    for service in ("store", "replicator", "metasync"):
        state = found.services.add(service=service, address="h:1", answers=True, serving=True)
        state.description.version = version
    if not found.HasField("log"):
        found.log.writable = True
    return found


def problems(*nodes: pb.Node) -> list[list[str]]:
    add_problems(nodes)
    return [list(one.problems) for one in nodes]


def test_nothing_is_wrong() -> None:
    assert problems(node(), node("two", pb.SLAVE)) == [[], []]


def test_services() -> None:
    found = node()
    found.services[0].answers = found.services[0].serving = False
    found.services[0].reason = "refused"
    found.services[1].serving = False
    found.services[1].reason = "it says that it does not serve now"
    found.services[2].reason = "no answer in time"
    assert problems(found) == [
        [
            "the store at h:1 does not answer: refused",
            "the replicator does not serve: it says that it does not serve now",
            "the metasync answers only in part: no answer in time",
        ]
    ]


def test_what_a_service_says_of_its_surroundings() -> None:
    found = node()
    found.services[0].description.problems.append("name server h:9876: it does not answer")
    assert problems(found) == [["name server h:9876: it does not answer"]]


def test_a_store_that_takes_no_messages() -> None:
    log = store_pb2.LogState(not_writable_reason="the disk is full")
    assert problems(node(log=log)) == [["the store takes no messages: the disk is full"]]
    assert problems(node(role=pb.SLAVE, log=log)) == [[]], "a slave never does"


def replaced(host: str, *masters: pb.Node) -> str:
    """What is said of a master on `host` that was replaced."""
    old = node("old", pb.FENCED)
    old.services[1].address = f"{host}:8084"
    old.replication.identity.fenced_by_epoch = 2
    return problems(old, *masters)[0][0]


def master(name: str, address: str, epoch: int, port: int = 10912) -> pb.Node:
    found = node(name, epoch=epoch)
    found.services[1].address, found.replication.ha_port = address, port
    return found


def test_a_master_that_was_replaced_is_told_where_its_new_master_is() -> None:
    newer, newest = master("newer", "10.0.0.2:8084", 2), master("newest", "10.0.0.3:8084", 3, port=10999)
    told = replaced("10.0.0.1", newer, newest)
    assert "a newer master has replaced this one: it takes no messages; let it follow newest: " in told
    assert "`tandem replica follow 10.0.0.3:10999 --address 10.0.0.1:8084`" in told
    ipv6 = replaced("[fe80::1]", master("new", "[fe80::2]:8084", 2))
    assert "`tandem replica follow [fe80::2]:10912 --address [fe80::1]:8084`" in ipv6


def test_no_address_is_told_that_leads_elsewhere() -> None:
    told = replaced("10.0.0.1", master("new", "127.0.0.1:8084", 2))
    assert told.endswith("let it follow new, which accepts slaves on port 10912 of admin's machine")
    here = replaced("127.0.0.2", master("new", "127.0.0.1:8084", 2))
    assert "`tandem replica follow 127.0.0.1:10912 --address 127.0.0.2:8084`" in here
    elsewhere = replaced("10.0.0.1", master("new", "10.0.0.2:8184", 2))
    assert "`tandem replica follow 10.0.0.2:10912 --replicator 10.0.0.2:8184 --address 10.0.0.1:8084`" in elsewhere
    for known in ([], [master("new", "10.0.0.2:8084", 2, port=0)], [master("older", "10.0.0.2:8084", 1)]):
        assert replaced("10.0.0.1", *known).endswith("when it does, the command to follow it stands here")
    other = master("other", "10.0.0.2:8084", 2)
    other.broker_name = "beta"
    assert "10.0.0.2" not in replaced("10.0.0.1", other)


def test_damage_and_a_full_disk() -> None:
    damaged = [store_pb2.DamagedRange(begin_offset=4096, end_offset=4096 + (3 << 20), reason="rot: bad CRC")]
    found = node(log=store_pb2.LogState(writable=True, damaged=damaged))
    found.disk.directory, found.disk.total_bytes, found.disk.free_bytes = "/data", 100 << 30, 4 << 30
    assert problems(found) == [
        [
            "the log has 1 damaged range, 3.1 MB, which are skipped; the first begins at 4096: rot: bad CRC",
            "the disk of /data is 96% full: 4.3 GB are left",
        ]
    ]
    found = node()
    found.disk.total_bytes, found.disk.free_bytes = 100 << 30, 6 << 30
    assert problems(found) == [[]]


@pytest.mark.parametrize(
    ("follower", "words"),
    [
        ({"state": replication_pb2.FOLLOWING}, []),
        ({"state": replication_pb2.CONNECTING, "problem": "refused"}, ["does not reach its master at m:1: refused"]),
        ({"state": replication_pb2.REFUSED, "problem": "fork"}, ["somebody must act at m:1: fork"]),
        (
            {"state": replication_pb2.FOLLOWING, "master_max_offset": 300 << 20, "received_offset": 1 << 20},
            ["the slave has a lag of 313.5 MB"],
        ),
    ],
)
def test_a_slave(follower: dict[str, object], words: list[str]) -> None:
    status = replication_pb2.FollowerStatus(master_address="m:1", **follower)  # type: ignore[arg-type]
    (found,) = problems(node(role=pb.SLAVE, replication=replication_pb2.StatusResponse(follower=status)))
    assert len(found) == len(words)
    assert all(word in one for word, one in zip(words, found, strict=True))


def test_tables() -> None:
    found = node(role=pb.SLAVE)
    found.metadata.tables.add(table=1, problem="the disk is full")
    found.metadata.tables.add(table=3, sync_age_seconds=75)
    found.metadata.tables.add(table=4, sync_age_seconds=5)
    assert problems(found) == [
        [
            "metadata, topics: the disk is full",
            "metadata, consumer offsets: not compared with the master's for 75 s",
        ]
    ]


def test_versions_differ() -> None:
    assert problems(node(version="1.9.0"), node("two", pb.SLAVE, "1.10.0"), node("three", pb.SLAVE, "1.10.0.dev1")) == [
        ["version 1.9.0 runs here, and 1.10.0 elsewhere"],
        [],
        ["version 1.10.0.dev1 runs here, and 1.10.0 elsewhere"],
    ]


def test_two_masters() -> None:
    first, second, other = node(epoch=1), node("two", epoch=2), node("three")
    other.broker_name = "beta"
    found = problems(first, second, other)
    assert "another master: two (epoch 2); this one is the older: " in found[0][0]
    assert "another master: one (epoch 1)" in found[1][0]
    assert found[1][0].endswith("only the one with the greater epoch may go on")
    assert found[2] == []
    old, new = master("old", "10.0.0.1:8084", 1), master("new", "10.0.0.2:8084", 2)
    assert "`tandem replica follow 10.0.0.2:10912 --address 10.0.0.1:8084`" in problems(old, new)[0][0]


def test_a_master_that_waits_for_slaves_and_has_none() -> None:
    identity = replica_log_pb2.LogIdentity(role=replica_log_pb2.SYNC_MASTER)
    alone = replication_pb2.StatusResponse(identity=identity)
    assert "no slave is in sync" in problems(node(replication=alone))[0][0]
    assert problems(node(replication=replication_pb2.StatusResponse(identity=identity, in_sync=1))) == [[]]
