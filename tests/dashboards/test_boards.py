"""The dashboards as files: what Grafana would choke on, and what would leave a person without help."""

import json
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from tests.dashboards.boards import NAMES, load, panels
from tests.dashboards.prometheus import CONFIGURATION, DIRECTORY

ROOT = DIRECTORY.parent
MOST_BYTES = 1_000_000
KINDS = {"row", "stat", "timeseries", "state-timeline"}
UNITS = {"short", "bytes", "Bps", "ops", "s", "ms", "percentunit"}
COLUMNS = 24


def test_the_committed_files_are_those_of_the_generator() -> None:
    command = [sys.executable, "tools/generate_dashboards.py", "--check"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr


def test_there_are_exactly_the_named_dashboards() -> None:
    files = sorted(path.stem for path in (DIRECTORY / "grafana").glob("*.json"))
    assert files == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_can_be_loaded_and_linked_to(name: str) -> None:
    path = DIRECTORY / "grafana" / f"{name}.json"
    assert path.stat().st_size < MOST_BYTES
    document = load(name)
    assert document["uid"] == f"tandem-{name}"
    assert document["title"].startswith("TandemMQ / ")
    assert "tandemmq" in document["tags"]
    (link,) = document["links"]
    assert link["type"] == "dashboards"
    assert link["tags"] == ["tandemmq"]
    assert {variable["name"] for variable in document["templating"]["list"]} >= {"datasource", "cluster", "node"}
    assert "id" not in document, "a database's number of another Grafana"


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_numbers_of_their_own_and_do_not_overlap(name: str) -> None:
    document = load(name)
    numbers = Counter(panel["id"] for panel in document["panels"])
    assert max(numbers.values()) == 1
    cells: Counter[tuple[int, int]] = Counter()
    for panel in document["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= COLUMNS
        cells.update(
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        )
    assert max(cells.values()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_says_what_it_shows(name: str) -> None:
    document = load(name)
    assert {panel["type"] for panel in document["panels"]} <= KINDS
    for panel in panels(document):
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


@pytest.mark.parametrize("name", NAMES)
def test_expressions_use_variables_that_exist(name: str) -> None:
    document = load(name)
    known = {variable["name"] for variable in document["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(document["panels"])))
    assert used <= known


def test_every_metric_of_ours_is_on_a_dashboard() -> None:
    shown = " ".join(json.dumps(load(name)) for name in NAMES)
    page = (ROOT / "docs" / "metrics.md").read_text()
    documented = re.findall(r"^\| `((?:rocketmq|tandem)_\w+)` \|", page, re.MULTILINE)
    assert documented
    assert [name for name in documented if not re.search(rf"\b{name}(_bucket|_sum|_count)?\b", shown)] == []


def test_prometheus_scrapes_the_ports_that_the_services_have() -> None:
    targets = re.findall(r"targets: \[(\S+)\]\n +labels: \{node: (\S+), service: (\S+)\}", CONFIGURATION.read_text())
    assert targets == [
        *targets_of("a"),
        *targets_of("b"),
        ("admin:9104", "admin", "admin"),
        ("names:9106", "names", "names"),
    ]


def targets_of(node: str) -> list[tuple[str, str, str]]:
    """The three of a node."""
    ports: dict[str, Any] = {"store": 9101, "replicator": 9102, "metasync": 9103}
    return [(f"{node}-{service}:{port}", node, service) for service, port in ports.items()]


def test_provisioning_names_what_is_there() -> None:
    text = (DIRECTORY / "grafana" / "provisioning" / "datasources" / "prometheus.yml").read_text()
    assert "uid: tandem-prometheus" in text
    interval = re.search(r"scrape_interval: (\S+)", CONFIGURATION.read_text())
    assert interval is not None
    assert f"timeInterval: {interval[1]}" in text
