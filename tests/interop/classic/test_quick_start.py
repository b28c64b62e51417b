"""The Java programs of docs/quick-start-classic.md do what the page says, with RocketMQ's clients of 4.9 and 5.3."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from bench.peers.rocketmq_broker import class_path
from tests.integration.test_registration import address_of, store_under
from tests.interop.rocketmq import need_rocketmq
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "quick-start-classic.md"
PROGRAM = re.compile(r"^`src/main/java/(\w+)\.java`:\n\n```java\n(.*?)^```", re.MULTILINE | re.DOTALL)
START = re.compile(r"(\w+)\.start\(\);")
PATIENT = r"\1.setMqClientApiTimeout(60_000); \g<0>"
"""By default a client gives up after three seconds, which a busy machine may take."""
OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m"]
SECONDS = 180


@pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])
def test_the_programs_of_the_page(tmp_path: Path, version: str) -> None:
    need_rocketmq(version)
    programs = dict(PROGRAM.findall(PAGE.read_text()))
    assert set(programs) == {"Sends", "Consumes"}
    jars = class_path(version)
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        for name, text in programs.items():
            local = text.replace("localhost:9876", names.address)
            local = local.replace("producer.start();", "producer.setSendMsgTimeout(60_000); producer.start();")
            (tmp_path / f"{name}.java").write_text(START.sub(PATIENT, local))
        files = [str(tmp_path / f"{name}.java") for name in programs]
        javac = ["javac", "-nowarn", "-proc:none", "-cp", jars, "-d", str(tmp_path), *files]
        subprocess.run(javac, check=True, capture_output=True, timeout=SECONDS)
        names.until_route("TBW102", {"ours": {"0": address_of(store)}})
        java = ["java", *OPTIONS, f"-Duser.home={tmp_path}", "-cp", f"{tmp_path}{os.pathsep}{jars}"]
        sent = subprocess.run([*java, "Sends"], capture_output=True, text=True, timeout=SECONDS, check=False)
        assert sent.stdout.count("sendStatus=SEND_OK") == 3, sent.stdout + sent.stderr
        with subprocess.Popen([*java, "Consumes"], stdout=subprocess.PIPE, text=True) as consumer:
            try:
                assert consumer.stdout is not None
                got: set[str] = set()
                for line in consumer.stdout:
                    if line.startswith("got "):
                        got.add(line.strip())
                    if len(got) == 3:
                        break
            finally:
                consumer.kill()
        assert got == {"got hello 0", "got hello 1", "got hello 2"}
