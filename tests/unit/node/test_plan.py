"""Which services a node runs, with which settings, on which ports."""

import socket
from pathlib import Path

import pytest

from tandemmq.common.settings.settings import UnknownSetting
from tandemmq.node.errors import BadPlan, PortTaken
from tandemmq.node.plan import START_ORDER, NodePlan, node_directories, plan_node, services_in, with_admin, with_names
from tandemmq.node.ports import AdminPorts, NamesPorts, Ports, check_free, dialled, is_taken
from tandemmq.node.processes import Layout, processes_of


def pair(**given: str) -> tuple[NodePlan, NodePlan]:
    ports, others = Ports.from_base(8081), Ports.from_base(8181)
    master = plan_node("a", Path("m"), ports, given=given, peer=others)
    return master, plan_node("b", Path("s"), others, given=given, peer=ports, is_slave=True)


def test_the_usual_base_gives_the_ports_that_services_have_by_themselves() -> None:
    from tandemmq.admin.settings import AdminSettings
    from tandemmq.metasync.settings import MetasyncSettings
    from tandemmq.naming.settings import NamingSettings
    from tandemmq.replicator.settings import ReplicatorSettings
    from tandemmq.store.settings import StoreSettings

    store, replicator, metasync, admin = StoreSettings(), ReplicatorSettings(), MetasyncSettings(), AdminSettings()
    ports = Ports.from_base(8081)
    assert (ports.store, ports.store_metrics) == (store.grpc_port, store.metrics_port)
    assert (ports.metasync, ports.metasync_metrics) == (metasync.grpc_port, metasync.metrics_port)
    assert (ports.replicator, ports.replicator_metrics) == (replicator.grpc_port, replicator.metrics_port)
    assert ports.ha == replicator.ha_listen_port == store.ha_listen_port
    assert ports.remoting == store.listen_port
    assert replicator.store_address == f"127.0.0.1:{ports.internal}"
    assert AdminPorts.from_base(8081) == (admin.grpc_port, admin.console_port, admin.metrics_port)
    names = NamingSettings()
    assert NamesPorts.from_base(8081) == (names.names_port, names.grpc_port, names.metrics_port)


def test_two_nodes_share_no_port() -> None:
    ports = [
        *(*Ports.from_base(8081), *Ports.from_base(8181)),
        *(*AdminPorts.from_base(8081), *AdminPorts.from_base(8181)),
        *(*NamesPorts.from_base(8081), *NamesPorts.from_base(8181)),
    ]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("base", [-1, 0, 62_705, 70_000])
def test_a_base_without_room_is_refused(base: int) -> None:
    with pytest.raises(BadPlan):
        Ports.from_base(base)
    with pytest.raises(BadPlan):
        AdminPorts.from_base(base)


def test_free_ports_are_free_and_different() -> None:
    ports = Ports.free()
    assert len(set(ports)) == len(ports)
    assert not any(is_taken(port) for port in ports)
    assert not set(ports) & set(Ports.free(other_than=ports))


def test_ports_that_are_taken_are_named() -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen(1)
        taken = somebody.getsockname()[1]
        ports = Ports.free()
        check_free({"a": ports})
        with pytest.raises(PortTaken) as raised:
            check_free({"a": ports, "b": Ports.free()._replace(ha=taken)})
    assert str(raised.value) == f"port {taken} (b ha) of 127.0.0.1 is taken"
    assert "--port" in raised.value.explain()
    assert "--no-admin" not in raised.value.explain()


def test_of_many_ports_that_are_taken_the_first_are_named() -> None:
    """Another node has them: what counts is that it runs."""
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen(1)
        taken = somebody.getsockname()[1]
        with pytest.raises(PortTaken) as raised:
            check_free({"a": Ports(*[taken] * len(Ports._fields))})
    first = f"{taken} (a store), {taken} (a metasync), {taken} (a replicator)"
    assert str(raised.value) == f"ports of 127.0.0.1 are taken: {first} and {len(Ports._fields) - 3} more"
    assert "does a node run here already?" in raised.value.explain()


def test_a_port_of_the_admin_that_is_taken() -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen(1)
        taken = somebody.getsockname()[1]
        with pytest.raises(PortTaken) as raised:
            check_free({"a": Ports.free(), "admin": AdminPorts.free()._replace(console=taken)})
    assert str(raised.value) == f"port {taken} (admin console) of 127.0.0.1 is taken"
    assert "--no-admin" in raised.value.explain()


def test_a_name_server_beside_the_nodes() -> None:
    """It starts first and stops last, and every store registers there."""
    nodes = with_names(pair(), NamesPorts.from_base(8081), Path("n"), given={"orderMessageEnable": "true"})
    assert [node.services["store"].settings["namesrvAddr"] for node in nodes] == ["127.0.0.1:9876"] * 2
    assert {node.services["store"].settings["listenPort"] for node in nodes} == {"10911", "11011"}
    assert services_in(START_ORDER, nodes[0])[0].service == "names"
    names = nodes[0].services["names"].settings
    assert names["namesPort"] == "9876"
    assert names["orderMessageEnable"] == "true"
    assert "names" not in nodes[1].services
    assert nodes[0].addresses()["names"] == "127.0.0.1:9876"


def test_each_service_is_told_only_what_it_knows() -> None:
    master, _ = pair(flushDiskType="SYNC_FLUSH", haTransferBatchSize="1", logLevel="ERROR")
    store, replicator = master.services["store"].settings, master.services["replicator"].settings
    assert store["flushDiskType"] == "SYNC_FLUSH"
    assert "flushDiskType" not in replicator
    assert replicator["haTransferBatchSize"] == "1"
    assert "haTransferBatchSize" not in store
    assert {one.settings["logLevel"] for one in master.services.values()} == {"ERROR"}


def test_a_setting_that_nobody_knows_is_refused_and_the_nearest_is_named() -> None:
    with pytest.raises(UnknownSetting) as raised:
        pair(flushDisktype="SYNC_FLUSH")
    assert raised.value.remedy == "did you mean flushDiskType?"


def test_a_slave_is_told_where_its_master_is() -> None:
    _, slave = pair(brokerRole="SYNC_MASTER")
    replicator, metasync = slave.services["replicator"].settings, slave.services["metasync"].settings
    assert replicator["haMasterAddress"] == "127.0.0.1:10912"
    assert replicator["haMasterReplicatorAddress"] == "127.0.0.1:8084"
    assert replicator["storeAddress"] == "127.0.0.1:9181"
    assert replicator["brokerId"] == "1"
    assert metasync["metasyncMasterAddress"] == "127.0.0.1:8082"
    assert slave.services["store"].settings["brokerRole"] == "SLAVE"


def test_a_master_knows_its_slave_for_the_day_when_roles_change() -> None:
    master, _ = pair()
    assert master.services["replicator"].settings["haMasterAddress"] == "127.0.0.1:11012"
    assert master.services["metasync"].settings["metasyncMasterAddress"] == "127.0.0.1:8182"
    assert "brokerRole" not in master.services["store"].settings


def test_one_admin_looks_after_all_nodes() -> None:
    from tandemmq.admin.cluster.node_addresses import NodeAddresses
    from tandemmq.admin.settings import AdminSettings

    first, second = with_admin(pair(), AdminPorts.from_base(8081), Path("a"), given={"jobsKept": "7"})
    assert "admin" not in second.services
    assert first.addresses()["admin"] == "127.0.0.1:8083"
    settings = AdminSettings.load(environment={}, overrides=first.services["admin"].settings)
    assert (settings.grpc_port, settings.console_port, settings.jobs_kept) == (8083, 8080, 7)
    assert settings.admin_directory == Path("a")
    assert settings.nodes == (
        NodeAddresses("a", "127.0.0.1:8081", "127.0.0.1:8082", "127.0.0.1:8084", Path("m")),
        NodeAddresses("b", "127.0.0.1:8181", "127.0.0.1:8182", "127.0.0.1:8184", Path("s")),
    )


def test_a_directory_whose_name_would_end_an_entry_is_not_named_to_the_admin() -> None:
    from tandemmq.admin.settings import AdminSettings

    node = plan_node("a", Path("a, b"), Ports.from_base(8081), given={})
    (node,) = with_admin([node], AdminPorts.from_base(8081), Path("a"), given={})
    settings = AdminSettings.load(environment={}, overrides=node.services["admin"].settings)
    assert settings.nodes[0].files is None


def test_every_service_starts_with_the_settings_of_its_plan() -> None:
    from tandemmq.metasync.settings import MetasyncSettings
    from tandemmq.replicator.settings import ReplicatorSettings
    from tandemmq.store.settings import StoreSettings

    for node in pair(maxMessageSize="1048576"):
        store = StoreSettings.load(environment={}, overrides=node.services["store"].settings)
        replicator = ReplicatorSettings.load(environment={}, overrides=node.services["replicator"].settings)
        metasync = MetasyncSettings.load(environment={}, overrides=node.services["metasync"].settings)
        ports = (store.grpc_port, replicator.grpc_port, metasync.grpc_port)
        assert ports == (node.ports.store, node.ports.replicator, node.ports.metasync)
        assert replicator.store_address == f"127.0.0.1:{node.ports.internal}"


@pytest.mark.parametrize(
    "name", ["grpcPort", "storePathRootDir", "haMasterAddress", "brokerId", "adminNodes", "consolePort", "listenPort"]
)
def test_what_the_node_chooses_cannot_be_set(name: str) -> None:
    with pytest.raises(BadPlan, match=name):
        pair(**{name: "1"})


def test_a_command_carries_configuration_and_settings(tmp_path: Path) -> None:
    master = plan_node("a", tmp_path, Ports.from_base(1000), given={}, config=tmp_path / "broker.conf")
    command = master.services["store"].command()
    assert command[2:7] == ["tandemmq.cli.main", "serve", "store", "--json", "--config"]
    assert f"storePathRootDir={tmp_path}" in command


def test_the_first_node_has_the_directory_that_a_store_alone_has(tmp_path: Path) -> None:
    assert node_directories(tmp_path) == (tmp_path, tmp_path / "b")


def test_nodes_of_earlier_versions_stay_where_they_are(tmp_path: Path) -> None:
    for name in ("master", "slave"):
        (tmp_path / name / "commitlog").mkdir(parents=True)
    assert node_directories(tmp_path) == (tmp_path / "master", tmp_path / "slave")


@pytest.mark.parametrize(("now", "earlier"), [("", "master"), ("b", "slave")])
def test_a_node_that_lies_in_two_places_is_not_chosen_for_you(now: str, earlier: str, tmp_path: Path) -> None:
    for name in (now, earlier):
        (tmp_path / name / "commitlog").mkdir(parents=True)
    with pytest.raises(BadPlan, match="is a store's directory, and so is") as raised:
        node_directories(tmp_path)
    assert f"{tmp_path / earlier}" in raised.value.explain()


def test_clients_are_served_where_the_host_says_and_the_nodes_own_services_stay_at_home() -> None:
    ports = Ports.from_base(8081)
    node = plan_node("a", Path("m"), ports, given={}, host="0.0.0.0")
    (node,) = with_admin([node], AdminPorts.from_base(8081), Path("x"), given={})
    (node,) = with_names([node], NamesPorts.from_base(8081), Path("n"), given={})
    hosts = {name: plan.settings.get("grpcHost") for name, plan in node.services.items()}
    assert hosts == {"store": "0.0.0.0", "metasync": None, "replicator": None, "admin": None, "names": None}
    assert node.services["names"].settings["namesHost"] == "0.0.0.0"
    assert node.services["store"].settings["internalHost"] == "127.0.0.1"
    assert node.services["store"].settings["namesrvAddr"] == "127.0.0.1:9876"
    assert node.addresses()["store"] == "127.0.0.1:8081"
    elsewhere = plan_node("a", Path("m"), ports, given={}, host="10.0.0.5")
    (elsewhere,) = with_admin([elsewhere], AdminPorts.from_base(8081), Path("x"), given={}, host="10.0.0.5")
    assert elsewhere.addresses()["store"] == "10.0.0.5:8081"
    assert elsewhere.addresses()["admin"] == "10.0.0.5:8083"
    assert elsewhere.addresses()["replicator"] == "127.0.0.1:8084"
    assert elsewhere.services["admin"].settings["consoleHost"] == "10.0.0.5"
    assert "a=10.0.0.5:8081" in elsewhere.services["admin"].settings["adminNodes"]


@pytest.mark.parametrize(
    ("host", "address"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("[::]", "[::1]"), ("fe80::1", "[fe80::1]"), ("10.0.0.5", "10.0.0.5")],
)
def test_what_listens_everywhere_is_dialled_at_home(host: str, address: str) -> None:
    assert dialled(host) == address


def test_two_processes_run_a_node_unless_one_wants_more_or_fewer() -> None:
    first, second = with_names(
        with_admin(pair(), AdminPorts.from_base(8081), Path("a"), given={}),
        NamesPorts.from_base(8081),
        Path("n"),
        given={},
    )

    def shown(node: NodePlan, layout: Layout) -> list[list[str]]:
        return [[plan.service for plan in one.services] for one in processes_of(node, layout)]

    assert shown(first, Layout.PAIRED) == [["names", "metasync", "admin"], ["store", "replicator"]]
    assert shown(second, Layout.PAIRED) == [["metasync"], ["store", "replicator"]]
    assert shown(first, Layout.SINGLE) == [list(START_ORDER)]
    assert shown(first, Layout.APART) == [[service] for service in START_ORDER]


def test_a_process_of_two_services_carries_the_options_of_both(tmp_path: Path) -> None:
    node = plan_node("a", tmp_path, Ports.from_base(1000), given={}, config=tmp_path / "broker.conf")
    both = processes_of(node, Layout.PAIRED)[1]
    command = both.command()
    assert both.name == "a store and replicator"
    assert command[3:5] == ["store", "--config"]
    between = command.index("+")
    assert command[between + 1] == "replicator"
    assert "grpcPort=1000" in command[:between]
    assert "haListenPort=3831" in command[between:]


def test_a_line_of_such_a_process_says_whose_it_is(tmp_path: Path) -> None:
    both = processes_of(plan_node("a", tmp_path, Ports.from_base(1000), given={}), Layout.PAIRED)[1]
    plan, line = both.said("replicator\tlinked  to=a\tb")
    assert (plan.service, line) == ("replicator", "linked  to=a\tb")
    plan, line = both.said("a warning of Python\tof nobody")
    assert (plan.service, line) == ("store", "a warning of Python\tof nobody")
