"""A Prometheus of our own on the repository's configuration, with the addresses of a test and a quick scrape."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.faults.pair_process import free_port, until

DIRECTORY = Path(__file__).resolve().parents[2] / "dashboards"
CONFIGURATION = DIRECTORY / "prometheus" / "prometheus.yml"
ALERTS = DIRECTORY / "prometheus" / "alerts.yml"
SCRAPE_SECONDS = 1.0
"""Also how long a service may take to answer a scrape: less, and on a busy machine it counts as down."""

_INTERVALS = re.compile(r"(scrape|evaluation)_interval: \S+")


def tool(name: str) -> str:
    """Where `prometheus` or `promtool` is; skips the test where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: on Debian it comes with `apt-get install prometheus`")
    return found


def promtool(*arguments: str | Path) -> str:
    """Runs promtool; gives what it says, and fails with that."""
    outcome = subprocess.run([tool("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def configuration(addresses: Mapping[str, str]) -> str:
    """The repository's prometheus.yml with other addresses and times; every target must get one."""
    text = _INTERVALS.sub(rf"\1_interval: {int(SCRAPE_SECONDS * 1000)}ms", CONFIGURATION.read_text())
    targets = re.findall(r"targets: \[([^\]]+)\]", text)
    assert set(targets) == set(addresses)
    for target, address in addresses.items():
        text = text.replace(f"[{target}]", f"[{address}]")
    return text.replace("- alerts.yml", f"- {ALERTS}")


class Prometheus:
    """A process with an empty database, within `with`. `addresses`: where each target of the file really is."""

    def __init__(self, directory: Path, addresses: Mapping[str, str]) -> None:
        directory.mkdir(parents=True)
        self.address = f"127.0.0.1:{free_port()}"
        self._config = directory / "prometheus.yml"
        self._config.write_text(configuration(addresses))
        self._log = directory / "prometheus.log"
        self._command = [
            tool("prometheus"),
            f"--config.file={self._config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={self.address}",
            "--log.level=warn",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until(self._ready, 100, lambda: f"Prometheus is ready: {self._log.read_text()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an API call; fails with what Prometheus says is wrong."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now, each with `metric` and `value`."""
        data = self.get("query", query=expression)
        assert data["resultType"] == "vector", expression
        return list(data["result"])

    def rules(self) -> list[dict[str, Any]]:
        """All alert rules with their state."""
        return [rule for group in self.get("rules", type="alert")["groups"] for rule in group["rules"]]
