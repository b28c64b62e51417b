"""The alert rules as files: promtool's checks, and its unit tests, which every alert must have."""

import re
from pathlib import Path

import pytest

from tandemmq.store.metrics import SENDS
from tests.dashboards.boards import load, panels
from tests.dashboards.prometheus import ALERTS, CONFIGURATION, promtool

UNIT_TESTS = Path(__file__).with_name("alerts_test.yml")


def alert_names() -> list[str]:
    """The alerts of alerts.yml, in their order."""
    return re.findall(r"- alert: (\w+)", ALERTS.read_text())


def panel_links() -> dict[str, tuple[str, int]]:
    """Dashboard and number of the panel that each alert names, by the alert."""
    links = re.findall(
        r'- alert: (\w+)\n(?:(?!- alert).*\n)*? +dashboard: "/d/tandem-(\w+)\?viewPanel=(\d+)"', ALERTS.read_text()
    )
    return {alert: (board, int(number)) for alert, board, number in links}


def test_promtool_accepts_configuration_and_rules() -> None:
    promtool("check", "config", CONFIGURATION)
    promtool("check", "rules", "--lint-fatal", ALERTS)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_alerts_fire_in_trouble_and_not_in_health() -> None:
    assert "SUCCESS" in promtool("test", "rules", UNIT_TESTS)


def test_every_alert_has_a_unit_test() -> None:
    names = alert_names()
    assert names
    assert sorted(re.findall(r"- name: (\w+)", UNIT_TESTS.read_text())) == sorted(names)


def test_every_alert_says_what_it_is_and_where_to_read_on() -> None:
    rules = ALERTS.read_text().split("- alert: ")[1:]
    for rule in rules:
        name = rule.split("\n", 1)[0]
        assert re.search(r"severity: (critical|warning|info)\n", rule), name
        assert re.search(r'summary: "[^"]{10,}"\n', rule), name
        assert re.search(r'description: "[^"]{40,}"\n', rule), name
        assert f'runbook: "docs/runbook.md#{name.lower()}"' in rule


@pytest.mark.parametrize("alert", ["TandemSendLatencyHigh", "TandemSendsFail"])
def test_an_alert_about_sends_is_about_those_of_every_protocol(alert: str) -> None:
    (rule,) = (one for one in ALERTS.read_text().split("- alert: ") if one.startswith(f"{alert}\n"))
    told = re.findall(r'request_code=~"([^"]*)"', rule)
    assert told
    assert {frozenset(one.split("|")) for one in told} == {frozenset(map(str.lower, SENDS))}


@pytest.mark.parametrize("name", alert_names())
def test_the_panel_of_an_alert_shows_what_it_is_about(name: str) -> None:
    board, number = panel_links()[name]
    (panel,) = (one for one in panels(load(board)) if one["id"] == number)
    (rule,) = (one for one in ALERTS.read_text().split("- alert: ") if one.startswith(f"{name}\n"))
    metrics = set(re.findall(r"\b(?:tandem_|rocketmq_|process_)\w+|\bup\b", rule.partition("labels:")[0]))
    assert any(metric in target["expr"] for target in panel["targets"] for metric in metrics)
    assert name in panel["description"]
