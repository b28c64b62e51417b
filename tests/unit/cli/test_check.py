"""What `tandem check` makes of a cluster."""

import pytest
from typer.testing import CliRunner

from tandemmq.admin.v1 import admin_pb2
from tandemmq.cli.main import app
from tandemmq.cli.processes.check import CRITICAL, OK, UNKNOWN, WARNING, Bounds, Finding, figures, look
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.node.v1 import node_pb2
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import store_pb2

BOUNDS = Bounds(disk=(80, 90), slave_lag=(64, 256), lag=(0, 0))


def service(name: str, *, answers: bool = True, serving: bool = True, reason: str = "") -> admin_pb2.ServiceState:
    return admin_pb2.ServiceState(service=name, address="h:1", answers=answers, serving=serving, reason=reason)


def node(
    name: str = "a",
    *,
    role: "admin_pb2.NodeRole.ValueType" = admin_pb2.MASTER,
    writable: bool = True,
    damaged: int = 0,
    free: int = 50,
    behind: int = 0,
    services: tuple[admin_pb2.ServiceState, ...] = (),
    problems: tuple[str, ...] = (),
) -> admin_pb2.Node:
    told = admin_pb2.Node(
        name=name,
        role=role,
        services=services or [service(one) for one in ("store", "replicator", "metasync")],
        log=store_pb2.LogState(
            writable=writable,
            not_writable_reason="" if writable else "disk full",
            damaged=[store_pb2.DamagedRange(begin_offset=1, end_offset=2)] * damaged,
        ),
        disk=node_pb2.Disk(directory="/d", total_bytes=100, free_bytes=free),
        problems=problems,
    )
    if role == admin_pb2.SLAVE:
        told.replication.CopyFrom(
            replication_pb2.StatusResponse(
                follower=replication_pb2.FollowerStatus(
                    master_address="m:1", acked_offset=1_000, master_max_offset=1_000 + behind
                )
            )
        )
    return told


def findings(*nodes: admin_pb2.Node, bounds: Bounds = BOUNDS, behind: int = 0) -> list[Finding]:
    groups = [admin_pb2.Group(config=metadata_pb2.SubscriptionGroupConfig(name="g"), lag=behind)] if behind else []
    return look(admin_pb2.Cluster(nodes=nodes), groups, bounds)


def test_a_cluster_that_is_well_has_no_findings() -> None:
    assert findings(node(), node("b", role=admin_pb2.SLAVE)) == []


@pytest.mark.parametrize(
    ("found", "level", "words"),
    [
        (node(writable=False), CRITICAL, "takes no messages: disk full"),
        (node(damaged=2), WARNING, "2 damaged ranges"),
        (node(free=20), WARNING, "disk of a is 80 % full"),
        (node(free=10), CRITICAL, "disk of a is 90 % full"),
        (node(role=admin_pb2.SLAVE, behind=64_000_000), WARNING, "has a lag of 64.0 MB"),
        (node(role=admin_pb2.SLAVE, behind=256_000_000), CRITICAL, "has a lag of 256.0 MB"),
        (node(services=(service("store", serving=False),)), CRITICAL, "store of a is not serving"),
        (
            node(services=(service("store", answers=False, serving=False, reason="refused"),)),
            CRITICAL,
            "store of a does not answer: refused",
        ),
        (node(problems=("two masters",)), WARNING, "a: two masters"),
    ],
)
def test_each_trouble_is_found_at_its_level(found: admin_pb2.Node, level: int, words: str) -> None:
    (finding,) = findings(found)
    assert finding.level == level
    assert words in finding.what


def test_a_slave_takes_no_messages_of_clients_and_that_is_well() -> None:
    assert findings(node(role=admin_pb2.SLAVE, writable=False)) == []


def test_the_worst_comes_first() -> None:
    found = findings(node(damaged=1), node("b", writable=False))
    assert [one.level for one in found] == [CRITICAL, WARNING]


@pytest.mark.parametrize(
    ("lag", "bounds", "levels"),
    [
        (100, (0, 0), []),
        (100, (100, 0), [WARNING]),
        (99, (100, 0), []),
        (100, (0, 100), [CRITICAL]),
        (100, (50, 1000), [WARNING]),
        (1000, (50, 1000), [CRITICAL]),
    ],
)
def test_groups_are_looked_at_when_bounds_are_given(lag: int, bounds: tuple[int, int], levels: list[int]) -> None:
    found = findings(node(), bounds=BOUNDS._replace(lag=bounds), behind=lag)
    assert [one.level for one in found] == levels


@pytest.mark.parametrize("address", ["foo", "127.0.0.1:1"])
def test_what_cannot_be_asked_is_unknown(address: str) -> None:
    assert CliRunner().invoke(app, ["check", "--address", address]).exit_code == UNKNOWN


def test_figures_are_those_of_the_worst() -> None:
    cluster = admin_pb2.Cluster(nodes=[node(free=30), node("b", role=admin_pb2.SLAVE, behind=7)])
    assert figures(cluster, []) == {
        "nodes": 2,
        "services_serving": 6,
        "disk_used_percent": 70.0,
        "slave_lag_bytes": 7,
        "compiled_stores": 0,
        "group_lag_messages": 0,
    }
    assert "group_lag_messages" not in figures(cluster, None), "nobody has looked at groups: that is not 0"
    assert OK == 0


@pytest.mark.parametrize("name", ["slave-lag", "behind"])
def test_the_lag_of_a_slave_is_bounded_by_either_spelling(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = admin_pb2.Cluster(nodes=[node("b", role=admin_pb2.SLAVE, behind=7_000_000)])
    monkeypatch.setattr("tandemmq.cli.processes.check._ask", lambda *_: (cluster, None))
    for warning, critical, state in ((8, 9, OK), (7, 9, WARNING), (6, 7, CRITICAL)):
        words = ["check", f"--{name}-warning", str(warning), f"--{name}-critical", str(critical)]
        assert CliRunner().invoke(app, words).exit_code == state


def test_the_old_spelling_is_not_shown() -> None:
    assert "--behind" not in CliRunner().invoke(app, ["check", "--help"]).output
