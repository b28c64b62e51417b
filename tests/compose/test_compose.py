"""docker-compose.yml as a new user has it: up, send and pull from the host, crashes, down and up again."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tandemmq.client import StoreClient
from tandemmq.common.documents import java_json
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.v1 import store_pb2
from tests.compose import engine
from tests.compose.cluster import SERVICES, Cluster, Producer
from tests.compose.engine import docker
from tests.compose.waiting import PATIENCE, eventually
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.interop.remoting import GET_ALL_TOPIC_CONFIG, GET_BROKER_CLUSTER_INFO, SUCCESS, Remoting

pytestmark = [pytest.mark.compose, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def cluster(image: str, measured: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The project, up and healthy; nothing of it is left behind."""
    output = tmp_path_factory.mktemp("compose") / "output.txt"
    volumes = set(docker("volume", "ls", "--quiet").split())
    found = Cluster(engine.compose_command(), (*SERVICES, "prometheus"), output)
    try:
        measured["`up` until all are healthy"] = f"{found.up():.1f} s"
        yield found
    finally:
        found.compose("down", "--volumes", "--remove-orphans", "--timeout", "60")
        assert set(docker("volume", "ls", "--quiet").split()) == volumes, "something is left behind"


def test_send_and_pull_from_the_host(cluster: Cluster) -> None:
    with StoreClient(cluster.master) as client:
        # Healthy services have answered; that the slave follows by then is nowhere said.
        wait_for(lambda: client.send("warm-up", b"x", queue_id=0).status == store_pb2.PUT_OK, otherwise="no slave")
        receipt = client.send("greetings", b"from the client", queue_id=0)
    assert receipt.status == store_pb2.PUT_OK, "both nodes have it"
    address = bytes(map(int, cluster.host.split("."))).hex().upper()
    assert receipt.message_id.startswith(address), "ids hold the address that is advertised"
    tandem(cluster.master, "send", "greetings", "from the command line", "--queue", "0")
    for store in (cluster.master, cluster.slave):
        wait_for(lambda: len(pulled(store)) == 2)  # noqa: B023 - waits here
        assert pulled(store) == ["from the client", "from the command line"]


def test_a_gateway_serves_clients_of_rocketmq_5(cluster: Cluster) -> None:
    cluster.compose("--profile", "gateway", "up", "--detach", "--no-build", "gateway")
    try:
        eventually(lambda: cluster.is_healthy("gateway"), PATIENCE, lambda: cluster.log("gateway"))
        with V2Client(f"{cluster.host}:8281") as client:
            assert {one.broker.endpoints.addresses[0].port for one in client.route("orders5").message_queues} == {8281}
            client.receive("readers5", "orders5", wait=0)
            wait_for(lambda: client.send(message("orders5")).status.code == pb.OK)
            [one] = client.take("readers5", "orders5", 1)
            assert client.acknowledge("readers5", one).status.code == pb.OK
    finally:
        cluster.compose("rm", "--stop", "--force", "gateway")


def test_only_what_is_meant_is_published(cluster: Cluster) -> None:
    published = {
        (binding["HostIp"], port)
        for service in cluster.services
        for (container,) in (cluster.containers(service),)
        for port, bindings in container["NetworkSettings"]["Ports"].items()
        for binding in bindings or ()
    }
    assert {address for address, _ in published} == {cluster.host}
    assert {port for _, port in published}.isdisjoint({"9081/tcp", "10912/tcp"})


def test_prometheus_scrapes_every_service(cluster: Cluster) -> None:
    def down() -> list[str]:
        try:
            with urllib.request.urlopen(f"http://{cluster.host}:9090/api/v1/targets", timeout=60) as answer:
                targets = json.load(answer)["data"]["activeTargets"]
        except OSError as error:  # it has only just been started, or is slow
            return [str(error)]
        return [one["scrapeUrl"] for one in targets if one["health"] != "up"] if targets else ["none at all"]

    wait_for(lambda: not down(), otherwise=lambda: f"not scraped: {down()}")


def test_classic_clients_find_both_nodes(cluster: Cluster) -> None:
    """As they see them from the host: the name server tells published ports, and the master answers there."""

    def addresses() -> dict[str, str]:
        with Remoting(9876, host=cluster.host) as names:
            answer = names.call(GET_BROKER_CLUSTER_INFO)
        table = java_json.loads(answer.body)["brokerAddrTable"]
        return dict(table["broker"]["brokerAddrs"]) if table else {}

    expected = {"0": f"{cluster.host}:10911", "1": f"{cluster.host}:10921"}
    wait_for(lambda: addresses() == expected, otherwise=lambda: f"the name server knows {addresses()}")
    with Remoting(10911, host=cluster.host) as master:
        assert master.call(GET_ALL_TOPIC_CONFIG).code == SUCCESS


def test_console_answers(cluster: Cluster) -> None:
    def page(path: str) -> str:
        with urllib.request.urlopen(f"http://{cluster.host}:8080{path}", timeout=60) as answer:
            assert answer.status == 200, path
            return str(answer.read().decode())

    parts = re.findall(r'(?:src|href)="(/static/[^"]+)"', page("/"))
    assert {Path(part).suffix for part in parts} == {".js", ".css", ".svg"}
    assert all(page(part) for part in parts)


def test_a_rebuild_beside_the_running_store(cluster: Cluster) -> None:
    """As admin's jobs do it: in admin's container, which sees the files of both nodes."""
    name = cluster.state("admin")["Name"]
    words = ["--running", "a-store:8081", "--master", "processes", "--json"]
    docker("exec", name, "tandem", "rebuild", "/nodes/a", *words, "--yes")
    audited = json.loads(docker("exec", name, "tandem", "audit", "/nodes/a", *words))
    assert audited["faults"] == 0, audited["findings"]


def test_nothing_is_lost_while_containers_crash(cluster: Cluster, measured: dict[str, str]) -> None:
    with Producer(cluster.master) as producer:
        for service in SERVICES:
            measured[f"{service} healthy after kill -9"] = f"{crash(cluster, service):.1f} s"
            before = len(producer.acknowledged)
            wait_for(lambda: len(producer.acknowledged) > before, otherwise="nothing is stored any more")  # noqa: B023
    measured["messages sent meanwhile"] = f"{len(producer.acknowledged):,} ({producer.failures} failed and sent again)"
    assert_has_all(cluster, producer.acknowledged)


def test_down_and_up_again(cluster: Cluster, measured: dict[str, str]) -> None:
    with Producer(cluster.master) as producer:
        wait_for(lambda: len(producer.acknowledged) >= 100)
    before = cluster.stored(cluster.master)
    assert set(producer.acknowledged) <= set(before)
    begin = time.monotonic()
    cluster.compose("stop")
    measured["stopped in"] = f"{time.monotonic() - begin:.1f} s"
    assert {service: cluster.state(service)["ExitCode"] for service in SERVICES} == dict.fromkeys(SERVICES, 0)
    cluster.compose("down")
    assert not any(map(cluster.containers, SERVICES))
    measured["`up` again until all are healthy"] = f"{cluster.up():.1f} s"
    assert "after a clean stop" in cluster.log("a-store")
    assert_has_all(cluster, before)


def crash(cluster: Cluster, service: str) -> float:
    """Kills a container; seconds from its restart until it is healthy."""
    before = cluster.state(service)["RestartCount"]
    cluster.kill(service)
    wait_for(lambda: cluster.state(service)["RestartCount"] > before)
    return wait_for(lambda: cluster.is_healthy(service), otherwise=cluster.complaints)


def assert_has_all(cluster: Cluster, bodies: list[bytes]) -> None:
    """Master and slave hold the same, and every acknowledged message among it."""
    stored = cluster.stored(cluster.master)
    assert set(bodies) <= set(stored)
    wait_for(lambda: cluster.stored(cluster.slave) == stored, otherwise="the slave does not get what its master has")


def pulled(address: str) -> list[str]:
    """What the topic of the first test holds, as the command line has it."""
    return [json.loads(line)["body"] for line in tandem(address, "pull", "greetings", "--json").splitlines()]


def tandem(address: str, *arguments: str) -> str:
    """What the command line prints, run on the host."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
    return subprocess.run(
        [sys.executable, "-m", "tandemmq.cli.main", *arguments, "--address", address],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def wait_for(
    condition: Callable[[], object], *, seconds: float = PATIENCE, otherwise: str | Callable[[], str] = "in time"
) -> float:
    """See eventually."""
    return eventually(condition, seconds, otherwise)
