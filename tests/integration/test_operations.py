"""What docs/operations.md tells to type does what it says."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tandemmq.client import Outgoing, StoreClient
from tests.contract.store_process import StoreProcess
from tests.metasync_process import wait_until

pytest.importorskip("pyarrow", reason="the audit needs the extra `spark`")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def blocks() -> list[str]:
    """The blocks of the page that are marked as tested: back-up, restore."""
    return re.findall(r"<!-- tested: .*?-->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(block: str, **variables: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
    environment |= {name: str(value) for name, value in variables.items()}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", block],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def fill(client: StoreClient, first: int, count: int) -> None:
    for at in range(first, first + count, 100):
        messages = [Outgoing("orders", b"%d" % number, keys=[f"k{number}"]) for number in range(at, at + 100)]
        client.send_encoded(messages, queue_id=at // 100 % 3)


def bodies(client: StoreClient) -> Counter[int]:
    found: Counter[int] = Counter()
    for queue in client.offsets("orders"):
        offset = queue.min_offset
        while offset < queue.max_offset:
            pulled = client.pull("orders", queue.queue_id, offset, max_messages=500)
            found.update(int(record.body) for record in pulled.records)
            offset = pulled.next_offset
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("whole", [True, False], ids=["with queues and index", "log and config alone"])
def test_what_was_backed_up_is_there_after_a_restore(tmp_path: Path, whole: bool) -> None:
    backup_block, restore_block = blocks()
    data, backup = tmp_path / "data", tmp_path / "backup"
    with StoreProcess(data) as store, store.client() as client:
        fill(client, 0, 3000)
        assert store.stop() == 0
    said = run(backup_block, data=data, backup=backup)
    assert "fault" in said
    shutil.rmtree(data)
    if not whole:
        shutil.rmtree(backup / "consumequeue")
        shutil.rmtree(backup / "index")
    run(restore_block, data=data, backup=backup)
    with StoreProcess(data) as store, store.client() as client:
        # Queues that were not copied are made while the store serves.
        wait_until(lambda: bodies(client).total() == 3000, "all messages are back", seconds=60)
        assert bodies(client) == Counter(range(3000))
        fill(client, 3000, 100)
        wait_until(lambda: [record.body for record in client.query("orders", key="k17")] == [b"17"], "the index too")
        assert store.stop() == 0
    with StoreProcess(data) as store, store.client() as client:
        assert bodies(client) == Counter(range(3100))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_audit_of_a_damaged_copy_fails(tmp_path: Path) -> None:
    backup_block, _ = blocks()
    data, backup = tmp_path / "data", tmp_path / "backup"
    with StoreProcess(data) as store, store.client() as client:
        fill(client, 0, 1000)
        assert store.stop() == 0
    log = min((data / "commitlog").iterdir())
    with log.open("r+b") as file:
        file.seek(10_000)
        file.write(b"\0" * 100)
    with pytest.raises(AssertionError, match="damage"):
        run(backup_block, data=data, backup=backup)
