"""The wheel in a fresh virtual environment has all that is needed, and its fixtures start a broker for any client."""

import platform
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.integration.conftest import packaged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800), pytest.mark.xdist_group("packages")]

TEST = """
import socket

import grpc

from tandemmq.client import Consumer, Producer
from tandemmq.rocketmq5.v2 import calls_pb2, resources_pb2


def test_by_our_own_client(tandem_broker):
    topic = tandem_broker.create_topic()
    with Producer(tandem_broker.address) as producer:
        producer.send(topic, b"two teas")
    with Consumer(tandem_broker.address, group="billing", topic=topic) as consumer:
        assert next(iter(consumer)).body == b"two teas"


def test_by_its_port_as_clients_of_rocketmq_5_come(tandem_broker):
    with grpc.insecure_channel(tandem_broker.address) as channel:
        ask = channel.unary_unary(
            "/apache.rocketmq.v2.MessagingService/QueryRoute",
            calls_pb2.QueryRouteRequest.SerializeToString,
            calls_pb2.QueryRouteResponse.FromString,
        )
        request = calls_pb2.QueryRouteRequest(topic=resources_pb2.Resource(name="orders"))
        answer = ask(request, metadata=[("x-mq-client-id", "one")], timeout=60)
    assert answer.status.code == resources_pb2.OK
    assert answer.message_queues


def test_by_the_port_of_classic_clients(tandem_broker):
    socket.create_connection(("127.0.0.1", tandem_broker.classic_port), 60).close()
"""


@pytest.fixture(scope="module")
def python(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with this machine's wheel; what the wheel depends on is that of these tests."""
    if platform.machine() not in wheels:
        pytest.skip(f"wheels of {platform.machine()} have no core")
    directory = tmp_path_factory.mktemp("wheel")
    packaged(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    packaged(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheels[platform.machine()])
    [packages] = (directory / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])  # behind the environment's own
    return python


def test_the_compiled_core_is_in_it(python: Path) -> None:
    asked = "from tandemmq.store.compiled_core import core_problem; print(core_problem())"
    assert packaged(python, "-c", asked).strip() == ""


def test_what_is_imported_is_the_wheel(python: Path) -> None:
    assert "/wheel" in packaged(python, "-c", "import tandemmq; print(tandemmq.__file__)")
    assert packaged(python.with_name("tandem"), "--version").startswith("tandem ")


def test_the_fixtures_start_a_broker(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_application.py").write_text(TEST)
    told = packaged(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path)
    assert "3 passed" in told
