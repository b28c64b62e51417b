"""The programs of examples/ do what they say, against real stores; a worker survives a kill of the store."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tandemmq.client import Producer
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

SAID = {
    "send.py": ["stored, PUT_OK", "999 more"],
    "consume.py": ["cocoa, delivery 2", "coffee, delivery 1", "dead: nobody drinks that"],
    "once.py": ["42"],
    "outbox.py": ["refused", "two teas"],
    "replay.py": ["new 0", "new 1", "new 2"],
}
"""What each prints; lines of messages in different queues come in any order."""

BY_ITSELF = "async_worker.py"


def test_every_example_is_run_and_listed() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {*SAID, BY_ITSELF}
    listed = (EXAMPLES / "README.md").read_text()
    assert [name for name in names if f"[{name}]({name})" not in listed] == []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> "StoreProcess":
    return StoreProcess(tmp_path_factory.mktemp("examples") / "store", grpc_port=free_port())


@pytest.mark.parametrize("name", SAID)
def test_an_example(store: StoreProcess, name: str) -> None:
    with store:
        command = [sys.executable, str(EXAMPLES / name), store.address]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(ran.stdout.splitlines()) == sorted(SAID[name])


@pytest.mark.slow
def test_the_worker_goes_on_over_a_kill_of_the_store(store: StoreProcess) -> None:
    command = [sys.executable, str(EXAMPLES / BY_ITSELF)]
    with store, Producer(store.address, keep_trying=60) as producer:
        producer.send("jobs", "first")
        worker = subprocess.Popen([*command, store.address], stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        try:
            assert worker.stdout.readline() == "done first\n"
            store.restart(signal.SIGKILL)
            producer.send("jobs", "second")
            producer.send("jobs", "third", tag="later")
            assert {worker.stdout.readline() for _ in range(2)} == {"done second\n", "done third\n"}
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 0
            assert "dead=0" in worker.stdout.read()
        finally:
            worker.kill()
            worker.wait()
            worker.stdout.close()
