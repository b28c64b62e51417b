"""The wheel in a fresh virtual environment has all that is needed, and its fixtures start a broker for any client."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300

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


def run(*command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=SECONDS, check=False, cwd="/"
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel; what the wheel depends on is that of these tests."""
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for name in ("src", "services"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    how = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", directory)
    run(sys.executable, "-m", "pip", "wheel", *how, source)
    run(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    [wheel] = directory.glob("tandemmq-*.whl")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    [packages] = (directory / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])  # behind the environment's own
    return python


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_the_compiled_core_is_in_it(python: Path) -> None:
    asked = "from tandemmq.store.compiled_core import core_problem; print(core_problem())"
    assert run(python, "-c", asked).strip() == ""


def test_what_is_imported_is_the_wheel(python: Path) -> None:
    assert "/wheel" in run(python, "-c", "import tandemmq; print(tandemmq.__file__)")
    assert run(python.with_name("tandem"), "--version").startswith("tandem ")


def test_the_fixtures_start_a_broker(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_application.py").write_text(TEST)
    told = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path)
    assert "3 passed" in told
