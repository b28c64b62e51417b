"""What rocketmq-exporter and rocketmq-dashboard ask a broker and its name server, by the admin client of 5.3."""

import os
import subprocess
from pathlib import Path

import pytest

from bench.model import Unavailable
from bench.peers.rocketmq_broker import class_path
from tests.integration.test_registration import address_of, store_under
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "Watching.java"
VERSION = "5.3.3"
OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m", "-Drocketmq.client.rebalance.waitInterval=1000"]
SECONDS = 240


def test_exporter_and_dashboard_are_answered(tmp_path: Path) -> None:
    try:
        jars = class_path(VERSION, 120.0, ("tools",))
    except Unavailable as reason:
        pytest.skip(str(reason))
    javac = ["javac", "-nowarn", "-proc:none", "-cp", jars, "-d", str(tmp_path), str(SOURCE)]
    subprocess.run(javac, check=True, capture_output=True, timeout=SECONDS)
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        names.until_route("TBW102", {"ours": {"0": address_of(store)}})
        classes = f"{tmp_path}{os.pathsep}{jars}"
        command = [
            "java",
            *OPTIONS,
            f"-Duser.home={tmp_path}",
            "-cp",
            classes,
            "Watching",
            names.address,
            address_of(store),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    assert said == []
    assert "OK" in done.stdout.splitlines(), (done.stdout + done.stderr)[-3_000:]
