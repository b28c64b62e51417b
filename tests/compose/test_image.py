"""The image alone: what is in it, a whole node by one command, and brokers for tests from it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.client import StoreClient
from tandemmq.common.documents import java_json
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.testing import BrokerContainer, BrokerNotStarted
from tests.compose.engine import docker
from tests.compose.waiting import PATIENCE, eventually
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.interop.remoting import GET_BROKER_CLUSTER_INFO, Remoting

pytestmark = [pytest.mark.compose, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(1200)]

_MEGABYTE = 1_000_000
_LARGEST_IMAGE = 300 * _MEGABYTE


def test_image_is_small_and_holds_no_tools(image: str, measured: dict[str, str]) -> None:
    size, user = docker("image", "inspect", image, "--format", "{{.Size}} {{.Config.User}}").split()
    measured["image size"] = f"{int(size) / _MEGABYTE:.1f} MB"
    assert int(size) < _LARGEST_IMAGE
    assert user == "10001:10001"
    files = docker("run", "--rm", image, "find", "/", "-xdev", "-type", "f", "-o", "-type", "l").splitlines()
    names = {path.rpartition("/")[2] for path in files}
    assert names.isdisjoint({"pip", "pip3", "apt", "apt-get", "dpkg", "gcc", "cc", "ld", "make"})
    assert not [path for path in files if "/site-packages/pip/" in path or "/apt/" in path]
    assert docker("run", "--rm", image, "tandem", "--version").startswith("tandem ")


def test_kernels_are_compiled_in_the_image(image: str, measured: dict[str, str]) -> None:
    program = (
        "import time; begin = time.monotonic(); from tandemmq.store.log.segments.walkers import Walkers; "
        "print(Walkers('always').loaded, time.monotonic() - begin)"
    )
    loaded, seconds = docker("run", "--rm", image, "python", "-c", program).split()
    measured["compiled walker loaded in"] = f"{float(seconds):.2f} s"
    assert loaded == "True"


class Node:
    """A container with what the image does by itself, its ports published on an address of this machine's."""

    host = "127.77.8.1"

    def __init__(self, name: str) -> None:
        self.name = name

    def log(self) -> str:
        """What it says."""
        done = subprocess.run(["docker", "logs", self.name], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def run(self, image: str, *words: str) -> None:
        """Start it, with other words than its own if there are any; until it is up."""
        published = [f"--publish={self.host}:{port}:{port}" for port in (8080, 8081, 9876, 10911)]
        given = ("--env=TANDEM_ACCESS_OPEN=true", f"--env=TANDEM_BROKER_IP1={self.host}", "--hostname=broker-a")
        limits = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", f"--volume={self.name}:/data")
        docker("run", "--detach", f"--name={self.name}", *published, *given, *limits, image, *words)
        eventually(lambda: "The node is up" in self.log(), PATIENCE, self.log)


@pytest.fixture
def node(image: str) -> Iterator[Node]:
    """Not started; nothing is left of it."""
    found = Node(f"tandem-test-image-{os.getpid()}")
    yield found
    subprocess.run(["docker", "rm", "--force", "--volumes", found.name], capture_output=True, check=False)
    subprocess.run(["docker", "volume", "rm", "--force", found.name], capture_output=True, check=False)


def test_it_is_a_whole_node_whose_published_ports_work(image: str, node: Node) -> None:
    node.run(image)
    with StoreClient(f"{node.host}:8081") as client:
        receipt = client.send("orders", b"from the host", queue_id=0)
        assert [one.body for one in client.pull("orders", 0, 0).records] == [b"from the host"]
    assert receipt.message_id.startswith(bytes(map(int, node.host.split("."))).hex().upper()), "what is advertised"
    with V2Client(f"{node.host}:8081") as client:
        endpoints = {
            (address.host, address.port)
            for queue in client.route("orders5").message_queues
            for address in queue.broker.endpoints.addresses
        }
        assert endpoints == {(node.host, 8081)}, "clients of RocketMQ 5 are sent where they came"
        assert client.send(message("orders5")).status.code == pb.OK
    with urllib.request.urlopen(f"http://{node.host}:8080/", timeout=60) as page:
        assert page.status == 200
    assert json.loads(docker("exec", node.name, "tandem", "cluster", "show", "--json"))
    docker("stop", node.name)
    assert "Everything has stopped." in node.log()
    docker("start", node.name)
    eventually(lambda: node.log().count("The node is up") == 2, PATIENCE, node.log)
    with StoreClient(f"{node.host}:8081") as client:
        assert [one.body for one in client.pull("orders", 0, 0).records] == [b"from the host"]


def test_classic_clients_find_it_by_its_name_server(image: str, node: Node) -> None:
    node.run(image, "tandem", "up", "--host", "0.0.0.0", "--data", "/data", "--names")

    def brokers() -> dict[str, str]:
        with Remoting(9876, host=node.host) as names:
            answer = names.call(GET_BROKER_CLUSTER_INFO)
        table = java_json.loads(answer.body)["brokerAddrTable"]
        return dict(table["broker-a"]["brokerAddrs"]) if table else {}

    eventually(lambda: brokers() == {"0": f"{node.host}:10911"}, PATIENCE, lambda: f"it knows {brokers()}")


def left_over() -> str:
    """Containers and volumes of brokers for tests."""
    label = "label=tandemmq.testing"
    volumes = [one for one in docker("volume", "ls", "--quiet").split() if one.startswith("tandemmq.testing-")]
    return docker("ps", "--all", "--quiet", "--filter", label) + " ".join(volumes)


def test_a_broker_for_tests_from_the_image(image: str, measured: dict[str, str]) -> None:
    before = left_over()
    with BrokerContainer({"maxMessageSize": 1 << 20}, image=image) as broker:
        address = broker.address
        topic = broker.create_topic(queues=2)
        with StoreClient(address) as client:
            client.send(topic, b"before", queue_id=1)
        broker.kill()
        assert broker.ended
        broker.start()
        broker.restart()
        assert broker.address == address
        with StoreClient(address) as client:
            assert [one.body for one in client.pull(topic, 1, 0).records] == [b"before"]
        assert not broker.ended
    assert left_over() == before


def test_a_container_ends_with_the_process_that_started_it(image: str, tmp_path: Path) -> None:
    program = (
        "import time; from tandemmq.testing import BrokerContainer; broker = BrokerContainer().start(); "
        "print(broker.name, flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        assert name in docker("ps", "--format", "{{.Names}}")
        os.kill(owner.pid, signal.SIGKILL)
    eventually(lambda: name not in docker("ps", "--all", "--format", "{{.Names}}"), PATIENCE, "it runs on")
    docker("volume", "rm", name.rpartition("-")[0])


def test_a_container_that_cannot_start_says_why(image: str) -> None:
    with pytest.raises(BrokerNotStarted, match="maxMessageSize"):
        BrokerContainer({"maxMessageSize": "large"}, image=image).start()
