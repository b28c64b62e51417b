"""Every expression of every panel, variable and alert finds something in a real Prometheus over real services."""

import re

import pytest

from tests.dashboards.boards import NAMES, expressions, filled, load, measured
from tests.dashboards.scene import NODES, OF_THE_MACHINE, PATIENCE, Scene
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.serial]

_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")
_LABEL = re.compile(r"\$labels\.(\w+)|\{\{(\w+)\}\}")


@pytest.mark.parametrize("name", NAMES)
def test_no_panel_is_empty(scene: Scene, name: str) -> None:
    empty = list(expressions(name))

    def has_shown_all() -> bool:
        """A target whose scrape comes late on a busy machine has no series for a moment."""
        empty[:] = [one for one in empty if not scene.prometheus.query(measured(one.text))]
        return not empty

    until(has_shown_all, PATIENCE, lambda: f"no panel is empty: {empty}")


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
    blind = {rule["name"]: measured(rule["query"]) for rule in rules}

    def has_seen_all() -> bool:
        for name, query in list(blind.items()):
            if scene.prometheus.query(query):
                del blind[name]
        return not blind

    until(has_seen_all, PATIENCE, lambda: f"every alert looks at something: {blind}")


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
    assert scene.alerts_in_health
    assert scene.raised_in_health() <= OF_THE_MACHINE


def test_a_store_that_is_killed_is_told_and_forgotten_when_it_is_back(scene: Scene) -> None:
    """Of the other node there may be alerts too: a scrape that comes late on a busy machine."""

    def alerts() -> set[tuple[str, str, str]]:
        found = (one["labels"] for one in scene.prometheus.get("alerts")["alerts"])
        return {(one["alertname"], one.get("node", ""), one["severity"]) for one in found}

    def told() -> set[tuple[str, str]]:
        return {(name, node) for name, node, _ in alerts()}

    wanted = {("TandemStoreDown", "b"), ("TandemReplicatorUnlinked", "b")}
    scene.pair.slave.store.kill()
    until(lambda: wanted <= told(), PATIENCE, lambda: f"both are told: {alerts()}")
    assert {severity for name, _, severity in alerts() if name == "TandemStoreDown"} == {"critical"}
    scene.pair.heal()
    until(lambda: not wanted & told(), PATIENCE, lambda: f"both are forgotten: {alerts()}")
