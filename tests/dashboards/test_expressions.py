"""Every expression of every panel, variable and alert finds something in a real Prometheus over real services."""

import re
from typing import Any

import pytest

from tests.dashboards.boards import NAMES, expressions, filled, load, measured
from tests.dashboards.scene import NODES, Scene

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("prometheus")]

OF_THE_MACHINE = {"TandemDiskFilling", "TandemDiskFullSoon", "TandemFlushSlow", "TandemSendLatencyHigh"}
"""They tell how full and how slow the machine is on which the test runs."""

_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")
_LABEL = re.compile(r"\$labels\.(\w+)|\{\{(\w+)\}\}")


@pytest.mark.parametrize("name", NAMES)
def test_no_panel_is_empty(scene: Scene, name: str) -> None:
    empty = [one for one in expressions(name) if not scene.prometheus.query(measured(one.text))]
    assert not empty


@pytest.mark.parametrize("name", NAMES)
def test_legends_name_labels_that_the_series_have(scene: Scene, name: str) -> None:
    wrong = []
    document = load(name)
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            found = scene.prometheus.query(measured(filled(target["expr"], document)))
            wanted = {label for pair in _LABEL.findall(target["legendFormat"]) for label in pair if label}
            wrong += [(panel["title"], wanted, one["metric"]) for one in found if not wanted <= one["metric"].keys()]
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_is_chosen_is_the_only_one_shown(scene: Scene, name: str) -> None:
    document = load(name)
    strangers = []
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            found = scene.prometheus.query(measured(filled(target["expr"], document, node="a")))
            strangers += [(panel["title"], one["metric"]) for one in found if one["metric"].get("node") == "b"]
    assert not strangers


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_has_values(scene: Scene, name: str) -> None:
    document = load(name)
    values = {}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            found = _LABEL_VALUES.fullmatch(variable["query"]["query"])
            assert found is not None
            selector = filled(found[1], document)
            values[variable["name"]] = scene.prometheus.get(f"label/{found[2]}/values", **{"match[]": selector})
    assert values["cluster"] == ["faults"]
    assert values["node"] == list(NODES)
    assert all(values.values())


def test_every_alert_looks_at_something(scene: Scene) -> None:
    rules = scene.prometheus.rules()
    assert {rule["health"] for rule in rules} == {"ok"}
    assert [rule["name"] for rule in rules if not scene.prometheus.query(measured(rule["query"]))] == []


def test_alerts_speak_of_labels_that_the_series_have(scene: Scene) -> None:
    wrong = []
    for rule in scene.prometheus.rules():
        wanted = {label for text in rule["annotations"].values() for label in labels_of(text)}
        found = scene.prometheus.query(measured(rule["query"]))
        wrong += [(rule["name"], one["metric"]) for one in found if not wanted <= one["metric"].keys()]
    assert not wrong


def labels_of(text: str) -> set[str]:
    """Labels that an annotation names."""
    return {pair[0] for pair in _LABEL.findall(text) if pair[0]}


def test_no_alert_is_raised_in_health(scene: Scene) -> None:
    raised = {name for name, state in scene.alerts_in_health.items() if state != "inactive"}
    assert raised <= OF_THE_MACHINE


def test_a_store_that_is_killed_is_told_and_forgotten_when_it_is_back(scene: Scene) -> None:
    def alerts() -> dict[str, Any]:
        return {one["labels"]["alertname"]: one["labels"] for one in scene.prometheus.get("alerts")["alerts"]}

    scene.pair.slave.store.kill()
    scene.wait_scraped()
    told = alerts()
    assert told["TandemStoreDown"]["node"] == "b"
    assert told["TandemStoreDown"]["severity"] == "critical"
    assert told["TandemReplicatorUnlinked"]["node"] == "b"
    scene.pair.heal()
    scene.wait_scraped()
    assert not {"TandemStoreDown", "TandemReplicatorUnlinked"} & alerts().keys()
