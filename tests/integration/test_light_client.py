"""`pip install tandemmq` alone: a small wheel from the sdist for any machine, whose client needs no broker."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tandemmq.testing import TemporaryBroker
from tools.install_pinned import names_of

pytestmark = [pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
MOST_OF_A_FILE = 4_000_000
MOST_INSTALLED = 50_000_000

PROGRAM = """
import sys
from tandemmq.client import Consumer, Producer

with Producer(sys.argv[1]) as producer:
    producer.send("orders", b"two teas", tag="tea", keys=["order-17"])
with Consumer(sys.argv[1], group="billing", topic="orders") as consumer:
    message = next(iter(consumer))
    message.ack()
print(message.body.decode(), message.tag)
"""


def run(*command: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=120, check=False, cwd="/",
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == code, (done.stdout + done.stderr)[-4_000:]
    return done


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("light") / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for name in ("src", "services", "spark"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    command = "import os, runpy, sys; os.chdir(sys.argv.pop(1)); runpy.run_path('setup.py', run_name='__main__')"
    run(sys.executable, "-c", command, source, "--quiet", "sdist", "--dist-dir", source.parent, TANDEMMQ_PURE="1")
    [made] = source.parent.glob("tandemmq-*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    how = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", sdist.parent)
    run(sys.executable, "-m", "pip", "wheel", *how, sdist, TANDEMMQ_PURE="1")
    [made] = sdist.parent.glob("tandemmq-*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """Of an environment with the wheel and what it asks for without extras, which is linked from the one here."""
    home = wheel.parent / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    [packages] = home.glob("lib/python*/site-packages")
    [installed] = importlib.metadata.distributions(path=[str(packages)])
    wanted, linked = names_of(installed.requires or ()), set[str]()
    while missing := wanted - linked:
        for one in missing:
            found = importlib.metadata.distribution(one)
            for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
                (packages / top).symlink_to(Path(str(found.locate_file(top))))
            linked.add(one)
            wanted |= names_of(found.requires or ())
    return python


def test_it_is_small_and_for_any_machine(sdist: Path, wheel: Path, python: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert max(path.stat().st_size for path in (sdist, wheel)) < MOST_OF_A_FILE
    [packages] = python.parents[1].glob("lib/python*/site-packages")
    sizes = [
        Path(folder, name).stat().st_size if not name.endswith(".pyc") else 0
        for folder, _, names in os.walk(packages, followlinks=True)
        for name in names
    ]
    assert sum(sizes) < MOST_INSTALLED
    others = {path.name.partition("-")[0] for path in packages.glob("*.dist-info")}
    assert others == {"tandemmq", "grpcio", "protobuf", "typing_extensions"}


@pytest.mark.slow
def test_its_client_sends_and_consumes(python: Path) -> None:
    with TemporaryBroker() as broker:
        assert run(python, "-c", PROGRAM, broker.address).stdout == "two teas tea\n"


def test_its_command_says_what_installs_the_rest(python: Path) -> None:
    told = run(python.with_name("tandem"), "up", code=2).stderr
    assert told.startswith("tandem: ")
    assert "pip install 'tandemmq[server]'" in told
    assert len(told.splitlines()) == 1
    told = run(python.with_name("tandem"), "send", "orders", "x", "--json", code=2).stderr
    assert "tandemmq[server]" in json.loads(told)["error"]["message"]


@pytest.mark.parametrize("service", ["store", "replicator", "metasync", "admin", "gateway", "naming"])
def test_a_service_says_what_installs_it(python: Path, service: str) -> None:
    told = run(python, "-m", f"tandemmq.{service}", code=2).stderr
    assert told.startswith(f"tandemmq.{service}: the client of TandemMQ is installed")
    assert "pip install 'tandemmq[server]'" in told
    assert len(told.splitlines()) == 1


def test_its_command_tells_the_version(python: Path) -> None:
    assert run(python.with_name("tandem"), "--version").stdout.startswith("tandem ")


def test_a_broker_for_tests_says_what_installs_it(python: Path) -> None:
    program = "from tandemmq.testing import TemporaryBroker; TemporaryBroker().start()"
    told = run(python, "-c", program, code=1).stderr
    assert "pip install 'tandemmq[testing]'" in told


def test_each_module_of_the_client_can_be_imported(python: Path) -> None:
    """But for two, which are for programs that have Prometheus or OpenTelemetry."""
    program = (
        "import importlib, pkgutil, tandemmq.client as client\n"
        "for one in pkgutil.iter_modules(client.__path__):\n"
        "    try: importlib.import_module(f'tandemmq.client.{one.name}')\n"
        "    except ModuleNotFoundError as error: print(one.name, error.name.partition('.')[0])\n"
    )
    assert run(python, "-c", program).stdout.splitlines() == ["metrics prometheus_client", "tracing opentelemetry"]
