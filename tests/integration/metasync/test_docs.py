"""The Python of docs/metadata.md does what it says."""

import re
import subprocess
import sys
from pathlib import Path

from tests.metasync_process import MetasyncProcess, wait_until

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "metadata.md"


def programs(address: str) -> list[str]:
    found = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return [program.replace("127.0.0.1:8082", address) for program in found]


def test_the_programs_run(master: MetasyncProcess) -> None:
    put, watch = programs(master.address)
    outcome = subprocess.run([sys.executable, "-c", put], capture_output=True, text=True, check=True, timeout=100)
    assert outcome.stdout.splitlines() == ["COMMITTED", "orders {0: 42}"]
    with subprocess.Popen([sys.executable, "-u", "-c", watch], stdout=subprocess.PIPE, text=True) as watcher:
        try:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == "version 1: 1 topics\n"
            with master.stub() as stub:
                from tandemmq.metadata.v1 import metadata_pb2 as pb

                stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="more")]))
            assert watcher.stdout.readline() == "version 2: 2 topics\n"
        finally:
            watcher.kill()
    wait_until(lambda: master.names() == {"orders", "more"}, "there")
