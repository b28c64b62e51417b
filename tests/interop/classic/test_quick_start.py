"""docs/quick-start-classic.md does what it says: its programs with clients of 4.9 and 5.3, its project with Maven."""

import os
import re
import shutil
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
POM = re.compile(r"^`pom.xml`:\n\n```xml\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    (mvn .*-Dexec\.mainClass=(\w+))$", re.MULTILINE)
UNREACHABLE = re.compile(r"Could not transfer|Unknown host|UnknownHost|offline mode|Connection (refused|timed out)")
"""What Maven says where it cannot ask a repository; of what no repository has it says that it could not be found."""
START = re.compile(r"(\w+)\.start\(\);")
PATIENT = r"\1.setMqClientApiTimeout(60_000); \g<0>"
"""By default a client gives up after three seconds, which a busy machine may take."""
OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m"]
SECONDS = 180


GOT = {"got hello 0", "got hello 1", "got hello 2"}


@pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])
def test_the_programs_of_the_page(tmp_path: Path, version: str) -> None:
    need_rocketmq(version)
    jars = class_path(version)
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        files = programs(tmp_path, names.address)
        javac = ["javac", "-nowarn", "-proc:none", "-cp", jars, "-d", str(tmp_path), *files]
        subprocess.run(javac, check=True, capture_output=True, timeout=SECONDS)
        names.until_route("TBW102", {"ours": {"0": address_of(store)}})
        java = ["java", *OPTIONS, f"-Duser.home={tmp_path}", "-cp", f"{tmp_path}{os.pathsep}{jars}"]
        sends_and_consumes([*java, "Sends"], [*java, "Consumes"], tmp_path)


def test_the_project_of_the_page(tmp_path: Path) -> None:
    """Its pom and its commands, word for word; in the programs only the name server's port is another."""
    poms = POM.findall(PAGE.read_text())
    assert len(poms) == 1
    (tmp_path / "pom.xml").write_text(poms[0])
    commands = {name: line.split() for line, name in COMMAND.findall(PAGE.read_text())}
    if shutil.which("mvn") is None:
        pytest.skip("there is no Maven")
    prepared = maven(tmp_path, "-q", "compile", "exec:help")
    if prepared.returncode and UNREACHABLE.search(prepared.stdout):
        pytest.skip("Maven does not bring rocketmq-client and its plugins here")
    assert prepared.returncode == 0, prepared.stdout  # a pom that is wrong too
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        (tmp_path / "src" / "main" / "java").mkdir(parents=True)
        programs(tmp_path / "src" / "main" / "java", names.address)
        names.until_route("TBW102", {"ours": {"0": address_of(store)}})
        sends_and_consumes(commands["Sends"], commands["Consumes"], tmp_path)


def maven(directory: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs Maven there."""
    command = ["mvn", "-B", *words]
    return subprocess.run(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def programs(directory: Path, names: str) -> list[str]:
    """Writes the programs of the page; their files. They wait longer than the page's, and ask the name server there."""
    found = dict(PROGRAM.findall(PAGE.read_text()))
    assert set(found) == {"Sends", "Consumes"}
    for name, text in found.items():
        local = text.replace("localhost:9876", names)
        local = local.replace("producer.start();", "producer.setSendMsgTimeout(60_000); producer.start();")
        (directory / f"{name}.java").write_text(START.sub(PATIENT, local))
    return [str(directory / f"{name}.java") for name in found]


def sends_and_consumes(sends: list[str], consumes: list[str], directory: Path) -> None:
    """What the page says that one sees."""
    sent = subprocess.run(sends, cwd=directory, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert sent.stdout.count("sendStatus=SEND_OK") == 3, sent.stdout + sent.stderr
    with subprocess.Popen(consumes, cwd=directory, stdout=subprocess.PIPE, text=True) as consumer:
        try:
            assert consumer.stdout is not None
            got: set[str] = set()
            for line in consumer.stdout:
                if line.startswith("got "):
                    got.add(line.strip())
                if len(got) == len(GOT):
                    break
        finally:
            consumer.kill()
    assert got == GOT
