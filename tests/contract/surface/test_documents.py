"""What running services say of their settings and metrics is what docs/settings.md and docs/metrics.md say."""

import re
import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.contract.surface.scene import Scene

pytestmark = pytest.mark.xdist_group("surface")

Spoil = Callable[[str], AbstractContextManager[Scene]]

DOCS = Path(__file__).resolve().parents[3] / "docs"
SERVICES = ["store", "replicator", "metasync", "admin"]
SHARED = "Every service"

COMMON_LABELS = {"cluster", "node_type", "node_id", "le"}

RARE = {
    "replicator": {"tandem_follower_lag_bytes"},
    "store": {
        "tandem_damaged_bytes", "tandem_damaged_ranges",
        "tandem_recovery_done_bytes", "tandem_recovery_progress_ratio", "tandem_recovery_size_bytes",
    },
}  # fmt: skip
"""Metrics that are there in damage, in recovery, and where a slave has a master, only."""


class Row(NamedTuple):
    """A line of a table in a document."""

    name: str
    cells: list[str]


def rows(page: str, section: str) -> list[Row]:
    """The lines of the table below the heading that begins with `section`."""
    text = (DOCS / page).read_text()
    found = re.search(rf"^## {re.escape(section)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/{page} has no section {section}"
    lines = re.findall(r"^\| `([^`]+)` \|(.*)\|$", found[1], re.MULTILINE)
    return [
        Row(name, [one.strip().replace("\\|", "|") for one in re.split(r"(?<!\\)\|", rest)]) for name, rest in lines
    ]


class Family(NamedTuple):
    """A metric of a running service."""

    name: str
    type: str
    labels: set[str]
    meaning: str


def scraped(port: int) -> Iterator[Family]:
    """What a service shows; a family without samples too."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = str(answer.read(), "utf-8")
    for family in text_string_to_metric_families(text):
        if not all(sample.name.endswith("_created") for sample in family.samples) or not family.samples:
            labels = {label for sample in family.samples for label in sample.labels} - COMMON_LABELS
            name = family.name + ("_total" if family.type == "counter" else "")
            yield Family(name, family.type, labels, family.documentation)


@pytest.fixture(scope="module")
def families(node: Scene, log_bytes: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Family]]:
    """Of all services by name; the replicator's of a master and of a slave together."""
    node.ports["store"].call("/tandemmq.store.v1.Store/Send", [node.good("store", "/tandemmq.store.v1.Store/Send")])
    return {service: {one.name: one for one in scraped(port)} for service, port in node.metrics.items()}


def documented(service: str) -> dict[str, Row]:
    return {row.name: row for section in (service, SHARED) for row in rows("metrics.md", section)}


@pytest.mark.parametrize("service", SERVICES)
def test_every_metric_that_is_shown_is_in_the_document(families: dict[str, dict[str, Family]], service: str) -> None:
    said = documented(service)
    for name, family in families[service].items():
        assert name in said, f"docs/metrics.md has no {name} of {service}"
        kind, labels, meaning = said[name].cells
        assert (kind, meaning) == (family.type, family.meaning), name
        assert family.labels <= set(re.findall(r"`([^`]+)`", labels)), name


@pytest.mark.parametrize("service", SERVICES)
def test_every_metric_of_the_document_is_shown(
    families: dict[str, dict[str, Family]], spoil: Spoil, service: str
) -> None:
    shown = set(families[service])
    if service == "replicator":
        with spoil("slave") as slave:
            shown |= {family.name for family in scraped(slave.metrics[service])}
    missing = set(documented(service)) - shown - RARE.get(service, set())
    assert not missing, f"docs/metrics.md has what {service} does not show"


@pytest.mark.parametrize("service", SERVICES)
def test_settings_are_those_of_the_document(node: Scene, service: str) -> None:
    answer = node.ports[service].ask("/tandemmq.node.v1.Node/Describe", settings=True)
    said = {row.name: row.cells for section in (SHARED, service) for row in rows("settings.md", section)}
    own_ports = {"grpcPort", "metricsPort"}
    assert {one.name for one in answer.settings} | own_ports == set(said) | own_ports
    for one in answer.settings:
        _environment, default, allowed, effect = said[one.name]
        assert (allowed, effect) == (one.allowed, one.doc), one.name
        value = one.default_value.replace(str(Path.home()), "~")
        wanted = "*host name*" if value == socket.gethostname() else f"`{value}`" if value else "*none*"
        assert default == wanted, one.name
