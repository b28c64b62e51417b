"""RocketMQ's clients of 4.9 and 5.3 with their traces switched on: `tandem message trace` tells what they did."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.admin_process import AdminProcess, lone_node, running
from tests.faults.pair_process import free_port
from tests.interop.classic.programs import command_of
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE = 60
SOON = "-Drocketmq.client.rebalance.waitInterval=1000"


def trace(admin: AdminProcess, key: str, *, steps: int) -> dict[str, Any]:
    """What the command says, as soon as it says so much: its clients tell of things behind them."""
    command = [sys.executable, "-m", "tandemmq.cli.main", "message", "trace", key, "--json", "--address", admin.address]
    deadline = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode == 0 and len(json.loads(done.stdout)["steps"]) >= steps:
            return dict(json.loads(done.stdout))
        assert time.monotonic() < deadline, done.stdout + done.stderr
        time.sleep(0.5)


@pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])
def test_the_way_of_a_message_as_java_clients_tell_it(tmp_path: Path, version: str) -> None:
    command = command_of(version, f"-Duser.home={tmp_path}", SOON)
    with NamesProcess(tmp_path / "names") as names:
        classic = {
            "remotingMode": "on",
            "listenPort": free_port(),
            "namesrvAddr": names.address,
            "brokerIP1": "127.0.0.1",
        }
        node = lone_node(tmp_path / "node", store=classic)
        with running(node), AdminProcess(tmp_path / "admin", {"one": node}) as admin:
            names.until_route("TBW102", {"alpha": {"0": f"127.0.0.1:{classic['listenPort']}"}})
            done = subprocess.run(
                [*command, names.address, "traced", "topic-t", "group-t"],
                env=dict(os.environ), capture_output=True, text=True, timeout=180, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
            ids = dict(line.split() for line in done.stdout.splitlines() if line.startswith(("plain ", "decided ")))
            plain, decided = trace(admin, ids["plain"], steps=3), trace(admin, "key-decided", steps=3)
    assert [(one["kind"], one["group"], one["status"], one["retry_times"]) for one in plain["steps"]] == [
        ("PUBLISHED", "group-t_producers", "success", 0),
        ("CONSUMED", "group-t", "failed", 0),
        ("CONSUMED", "group-t", "success", 1),
    ]
    assert {one["message_id"] for one in plain["steps"]} == {ids["plain"]}
    assert {one["client"].rpartition(":")[0] for one in plain["steps"]} == {"127.0.0.1"}
    assert [(one["message"]["topic"], one["message"]["unique_key"]) for one in plain["messages"]] == [
        (topic, ids["plain"])
        for topic in ("topic-t", "%RETRY%group-t")  # the copy of what has failed once
    ]
    assert {(one["kind"], one["status"]) for one in decided["steps"]} == {
        ("PUBLISHED", "success"),
        ("TRANSACTION_ENDED", "COMMIT_MESSAGE"),
        ("CONSUMED", "success"),
    }
    assert (plain["unreadable"], decided["unreadable"]) == (0, 0)
