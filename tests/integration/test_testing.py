"""A broker for the tests of applications: the examples of docs/testing.md, and what becomes of the process."""

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tandemmq.client import RequestFailed, StoreClient
from tandemmq.testing import BrokerContainer, BrokerNotStarted, NameTaken, TemporaryBroker
from tests.faults.pair_process import until
from tests.integration.test_up import is_alive

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "testing.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def broker() -> Iterator[TemporaryBroker]:
    with TemporaryBroker() as broker:
        yield broker


def run_tests(directory: Path, **files: str) -> str:
    """A run of pytest as a user has it; whether the plugin's entry point is installed here does not matter."""
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:tandemmq", "-p", "tandemmq.testing.plugin"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(directory), str(directory)],
        capture_output=True, text=True, cwd=directory, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    tests = {f"test_{number}": text for number, text in enumerate(EXAMPLES) if "def test_" in text}
    assert len(tests) == 2
    assert "3 passed" in run_tests(tmp_path, **tests)


@pytest.mark.slow
def test_the_example_with_settings_works(tmp_path: Path) -> None:
    (conftest,) = (text for text in EXAMPLES if "def tandem_settings" in text)
    refused = (
        "import pytest\nfrom tandemmq.client import RequestFailed, StoreClient\n\n"
        "def test_no_topic_is_made_by_sending(tandem_broker):\n"
        "    with StoreClient(tandem_broker.address) as client, pytest.raises(RequestFailed):\n"
        "        client.send('nobody-made-it', b'x')\n"
    )
    assert "1 passed" in run_tests(tmp_path, conftest=conftest, test_refused=refused)


@pytest.mark.slow
def test_the_example_without_pytest_works(tmp_path: Path) -> None:
    (program,) = (text for text in EXAMPLES if "with TemporaryBroker(" in text)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=110, check=True
    )
    assert done.stdout == "0\n"


def test_pip_finds_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"tandemmq": "tandemmq.testing.plugin"}
    assert project["optional-dependencies"]["testing"] == ["tandemmq[server]", "pytest>=8"]


def test_the_plugin_is_cheap() -> None:
    """Every run of pytest in the environment imports it."""
    program = "import sys, tandemmq.testing.plugin; print({'grpc', 'google.protobuf', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


def test_topics_and_groups_have_names_of_their_own(broker: TemporaryBroker) -> None:
    first, second = broker.create_topic(), broker.create_topic(queues=2, message_type="fifo")
    assert first != second
    assert broker.create_group() != broker.create_group(fifo=True, retries=0)
    with StoreClient(broker.address) as client:
        assert client.send(first, b"x", queue_id=7).queue_id == 7
        assert client.send(second, b"x", queue_id=1).queue_id == 1
    group = broker.create_group()
    for create, what in (
        (partial(broker.create_topic, first), f"topic {first}"),
        (partial(broker.create_group, group), f"group {group}"),
    ):
        with pytest.raises(NameTaken, match=f"there is a {what} already") as raised:
            create()
        assert "leave the name out" in raised.value.explain()
    with pytest.raises(RequestFailed) as refused:
        broker.create_topic("no good")
    assert refused.value.code == "INVALID_ARGUMENT"


@pytest.mark.slow
def test_it_goes_on_after_a_crash_on_the_same_port_and_leaves_nothing() -> None:
    with TemporaryBroker() as broker:
        address, directory, classic = broker.address, broker.directory, broker.classic_port
        with StoreClient(address) as client:
            client.send("kept", b"before", queue_id=0)
        broker.kill()
        assert broker.ended
        broker.start()
        broker.restart()
        assert (broker.address, broker.classic_port) == (address, classic)
        socket.create_connection(("127.0.0.1", classic), 60).close()
        with StoreClient(address) as client:
            assert [one.body for one in client.pull("kept", 0, 0).records] == [b"before"]
            client.send("kept", b"after", queue_id=0)
        assert not broker.ended
    assert not directory.exists()
    assert broker.ended


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import time; from tandemmq.testing import TemporaryBroker; broker = TemporaryBroker().start(); "
        "print(broker.process_id, broker.directory, flush=True); time.sleep(100)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert owner.stdout is not None
    pid, directory = owner.stdout.readline().split()
    assert is_alive(int(pid))
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    until(lambda: not is_alive(int(pid)), 60, "the broker is gone")
    subprocess.run(["rm", "-r", directory], check=True)


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(BrokerNotStarted, match="maxMessageSize"):
        TemporaryBroker({"maxMessageSize": "large"}).start()


def test_a_container_serves_at_the_port_that_is_published_whatever_its_settings_say(tmp_path: Path) -> None:
    docker, told = tmp_path / "docker", tmp_path / "told"
    docker.write_text(f'#!/bin/sh\n[ "$1" != run ] || printf "%s\\n" "$@" >{told}\nexit 1\n')
    docker.chmod(0o755)
    broker = BrokerContainer({"grpcPort": 9000, "brokerName": "other"}, docker=str(docker))
    with pytest.raises(BrokerNotStarted):
        broker.start()
    words = told.read_text().splitlines()
    assert "--set=brokerName=other" in words
    [serves] = [word.partition("grpcPort=")[2] for word in words if "grpcPort" in word]
    assert [word for word in words if word.startswith("--publish=127.0.0.1:") and word.endswith(f":{serves}")]


@pytest.mark.slow
def test_mistakes_are_told() -> None:
    with pytest.raises(BrokerNotStarted, match="was not started"):
        assert TemporaryBroker().directory is not None
    with TemporaryBroker() as broker, pytest.raises(BrokerNotStarted, match="runs already"):
        broker.start()
