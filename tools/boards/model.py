"""Panels, rows and dashboards, and their form as Grafana's JSON (schema 39, which Grafana 10 and later read)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SENDS = 'request_code=~"send|sendbatch|sendmessage|send_message|send_message_v2|send_batch_message"'
"""Calls that send messages, of all protocols, in `rocketmq_rpc_latency_milliseconds`."""

WIDTH = 24
"""Columns of Grafana's grid."""
_SELECTORS = {
    "{@": '{cluster=~"$cluster",node=~"$node"',
    "{#": '{job=~"tandem.*",node=~"$node"',
    "{%": '{cluster=~"$cluster"',
}
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TAG = "tandemmq"
BASE_COLOUR = "green"


@dataclass(frozen=True)
class Query:
    """One expression and the name of its series."""

    expression: str
    legend: str = "{{node}}"

    @property
    def promql(self) -> str:
        """The expression with its short forms written out."""
        text = self.expression
        for short, selector in _SELECTORS.items():
            text = text.replace(short, selector)
        return text


@dataclass(frozen=True)
class Panel:
    """One panel. `says`: what it means and what is bad, for somebody who sees it for the first time."""

    title: str
    unit: str
    says: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    steps: tuple[tuple[str, float], ...] = ()
    """Colours from a value on; below all of them it is `base`."""
    base: str = BASE_COLOUR
    stacked: bool = False
    names: bool = False
    """A stat shows the series' name, not its value."""
    words: tuple[tuple[int, str, str], ...] = ()
    """Values that have a meaning of their own: value, word, colour."""
    at_least: float | None = 0
    at_most: float | None = None


@dataclass(frozen=True)
class Row:
    """A heading and what is below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Choice:
    """A variable at the top of a dashboard: the values of a label of a metric."""

    name: str
    label: str
    metric: str
    word: str


CLUSTER = Choice("cluster", "cluster", "tandem_build_info", "Cluster")
NODE = Choice("node", "node", 'tandem_build_info{cluster=~"$cluster",service!~"admin|gateway|names"}', "Node")


@dataclass(frozen=True)
class Dashboard:
    """One dashboard: one JSON file. The uid is `tandem-NAME` for ever, so that links to it hold."""

    name: str
    title: str
    says: str
    rows: tuple[Row, ...]
    choices: tuple[Choice, ...] = field(default=(CLUSTER, NODE))

    @property
    def uid(self) -> str:
        """What Grafana knows it by."""
        return f"tandem-{self.name}"


def stat(title: str, unit: str, says: str, expression: str, legend: str = "", **more: Any) -> Panel:
    """One number, coloured."""
    return Panel(title, unit, says, (Query(expression, legend),), **{"kind": "stat", "width": 4, "height": 4, **more})


def lines(title: str, unit: str, says: str, *queries: tuple[str, str] | str, **more: Any) -> Panel:
    """Series over time; each as an expression, or an expression and its legend."""
    made = tuple(Query(one) if isinstance(one, str) else Query(*one) for one in queries)
    return Panel(title, unit, says, made, **more)


def render(dashboard: Dashboard, alerts: Mapping[int, Sequence[str]]) -> Json:
    """The JSON of a dashboard. `alerts`: by a panel's number, the names of those that it shows."""
    return {
        "annotations": {"list": [_alerts_as_annotations()]},
        "description": dashboard.says,
        "editable": True,
        "graphTooltip": 1,
        "links": [_links()],
        "panels": [_named(panel, alerts.get(panel["id"], ())) for panel in _place(dashboard.rows)],
        "refresh": "10s",
        "schemaVersion": 39,
        "tags": [_TAG],
        "templating": {"list": [_datasource_choice(), *map(_choice, dashboard.choices)]},
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "title": f"TandemMQ / {dashboard.title}",
        "uid": dashboard.uid,
        "version": 1,
    }


def placed_panels(dashboard: Dashboard) -> Iterator[tuple[int, Panel]]:
    """The panels of a dashboard with the numbers that Grafana knows them by: headings of rows are counted too."""
    number = 0
    for row in dashboard.rows:
        number += 1
        for panel in row.panels:
            number += 1
            yield number, panel


def _named(panel: Json, alerts: Sequence[str]) -> Json:
    """A panel that says which alerts it shows."""
    if not alerts:
        return panel
    return {**panel, "description": f"{panel['description']} Alerts, see docs/runbook.md: {', '.join(alerts)}."}


def _place(rows: tuple[Row, ...]) -> list[Json]:
    """Panels from left to right, as many as fit, below the heading of their row."""
    placed: list[Json] = []
    y = 0
    for row in rows:
        grid = {"h": 1, "w": WIDTH, "x": 0, "y": y}
        placed.append({"collapsed": False, "gridPos": grid, "id": len(placed) + 1, "panels": [], "title": row.title,
                       "type": "row"})  # fmt: skip
        y += 1
        x = height = 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            grid = {"h": panel.height, "w": panel.width, "x": x, "y": y}
            placed.append({"gridPos": grid, "id": len(placed) + 1, **_panel(panel)})
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return placed


def _panel(panel: Panel) -> Json:
    steps: list[Json] = [{"color": panel.base, "value": None}]
    steps += [{"color": colour, "value": value} for colour, value in panel.steps]
    defaults: Json = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.at_least is not None:
        defaults["min"] = panel.at_least
    if panel.at_most is not None:
        defaults["max"] = panel.at_most
    if panel.words:
        options = {str(value): {"text": word, "color": colour, "index": at}
                   for at, (value, word, colour) in enumerate(panel.words)}  # fmt: skip
        defaults["mappings"] = [{"type": "value", "options": options}]
    if panel.kind == "timeseries":
        defaults["custom"] = _lines(panel)
    else:
        defaults["color"] = {"mode": "thresholds"}
    return {
        "datasource": _DATASOURCE,
        "description": panel.says,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel),
        "targets": [_target(at, query, panel.kind) for at, query in enumerate(panel.queries)],
        "title": panel.title,
        "type": panel.kind,
    }


def _lines(panel: Panel) -> Json:
    return {
        "drawStyle": "line",
        "fillOpacity": 30 if panel.stacked else 8,
        "lineWidth": 1,
        "showPoints": "never",
        "stacking": {"mode": "normal" if panel.stacked else "none"},
        "thresholdsStyle": {"mode": "line" if panel.steps else "off"},
    }


def _options(panel: Panel) -> Json:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "stat":
        text = "name" if panel.names else "value_and_name" if "{{" in panel.queries[0].legend else "value"
        return {"colorMode": "background", "graphMode": "none", "reduceOptions": reduced, "textMode": text}
    if panel.kind == "state-timeline":
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
        return {"legend": legend, "mergeValues": True, "rowHeight": 0.8, "showValue": "auto"}
    if panel.kind == "gauge":
        return {"reduceOptions": reduced, "showThresholdLabels": False, "showThresholdMarkers": True}
    legend = {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def _target(at: int, query: Query, kind: str) -> Json:
    now = kind in ("stat", "gauge")
    return {
        "datasource": _DATASOURCE,
        "editorMode": "code",
        "expr": query.promql,
        "instant": now,
        "legendFormat": query.legend or "__auto",
        "range": not now,
        "refId": chr(ord("A") + at),
    }


def _datasource_choice() -> Json:
    return {
        "current": {},
        "hide": 0,
        "label": "Prometheus",
        "name": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "type": "datasource",
    }


def _choice(choice: Choice) -> Json:
    query = f"label_values({choice.metric}, {choice.label})"
    return {
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "datasource": _DATASOURCE,
        "definition": query,
        "hide": 0,
        "includeAll": True,
        "label": choice.word,
        "multi": True,
        "name": choice.name,
        "query": {"query": query, "refId": choice.name},
        "refresh": 2,
        "sort": 1,
        "type": "query",
    }


def _links() -> Json:
    """The other dashboards, with the same time and the same choices."""
    return {
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "tags": [_TAG],
        "targetBlank": False,
        "title": "TandemMQ",
        "type": "dashboards",
    }


def _alerts_as_annotations() -> Json:
    return {
        "datasource": _DATASOURCE,
        "enable": True,
        "expr": 'ALERTS{alertname=~"Tandem.*",alertstate="firing"}',
        "iconColor": "red",
        "name": "Alerts",
        "textFormat": "{{node}} {{service}}",
        "titleFormat": "{{alertname}}",
    }
