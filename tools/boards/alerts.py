"""Alert rules, and their form as Prometheus' YAML."""

import json
from itertools import groupby

from boards.alert_model import Alert
from boards.alert_panels import panel_of
from boards.client_alerts import CLIENT_ALERTS
from boards.dashboards import DASHBOARDS
from boards.pair_alerts import PAIR_ALERTS
from boards.store_alerts import STORE_ALERTS

ALERTS: tuple[Alert, ...] = (*STORE_ALERTS, *PAIR_ALERTS, *CLIENT_ALERTS)

_HEAD = """# Alerts of TandemMQ, for Prometheus 2.42 or later. Each has an entry in docs/runbook.md.
#
# Made by tools/generate_dashboards.py from tools/boards; tested with real services by tests/dashboards. Take a copy to
# change thresholds for yourself. They need the labels `node` and `service` of prometheus.yml beside this file.
#
# dashboard: the panel that shows it, behind the address of a Grafana that has dashboards/grafana.
# severity: critical wakes somebody up, warning is for the next working hour, info is for whoever looks.

groups:
"""


def alerts_file() -> str:
    """The content of alerts.yml."""
    return _HEAD + "".join(
        f"  - name: tandemmq-{group}\n    rules:\n" + "\n".join(map(_rule, alerts))
        for group, alerts in groupby(ALERTS, key=lambda alert: alert.group)
    )


def _rule(alert: Alert) -> str:
    place = panel_of(alert, DASHBOARDS)
    if place is None:
        raise LookupError(f"no panel shows what {alert.name} is about")
    pending = f"        for: {alert.lasting}\n" if alert.lasting else ""
    expression = "".join(f"          {line}\n" for line in alert.expression.splitlines())
    return (
        f"      - alert: {alert.name}\n        expr: |\n{expression}{pending}"
        f"        labels:\n          severity: {alert.severity}\n"
        f"        annotations:\n"
        f"          summary: {json.dumps(alert.summary)}\n"
        f"          description: {json.dumps(alert.description)}\n"
        f"          runbook: {json.dumps(alert.runbook)}\n"
        f"          dashboard: {json.dumps(place.link)}\n"
    )
