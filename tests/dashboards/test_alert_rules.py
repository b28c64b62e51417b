"""The alert rules as files: promtool's checks, and its unit tests, which every alert must have."""

import re
from pathlib import Path

import pytest

from tests.dashboards.prometheus import ALERTS, CONFIGURATION, promtool

UNIT_TESTS = Path(__file__).with_name("alerts_test.yml")


def alert_names() -> list[str]:
    """The alerts of alerts.yml, in their order."""
    return re.findall(r"- alert: (\w+)", ALERTS.read_text())


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
