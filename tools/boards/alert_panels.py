"""Which panel shows what an alert is about: the one that asks for most of the same metrics, and for little else."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from boards.alert_model import Alert
from boards.model import Dashboard, Panel, placed_panels

_METRIC = re.compile(r"\b(?:tandem|rocketmq|process|up)\w*\b(?=\s*[\[{)]|\s|$)")
_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)")
_PARTS = ("_bucket", "_sum", "_count")


class PanelPlace(NamedTuple):
    """Where a panel is."""

    dashboard: Dashboard
    number: int
    """Grafana's, which links need."""
    panel: Panel

    @property
    def link(self) -> str:
        """Where a Grafana shows this panel alone."""
        return f"/d/{self.dashboard.uid}?viewPanel={self.number}"


def alerts_on(alerts: Iterable[Alert], dashboard: Dashboard, dashboards: Sequence[Dashboard]) -> dict[int, list[str]]:
    """Names of the alerts that panels of a dashboard show, by the panel's number."""
    found: dict[int, list[str]] = {}
    for alert in alerts:
        place = panel_of(alert, dashboards)
        if place is not None and place.dashboard is dashboard:
            found.setdefault(place.number, []).append(alert.name)
    return found


def panel_of(alert: Alert, dashboards: Iterable[Dashboard]) -> PanelPlace | None:
    """None where no panel shows any of the alert's metrics."""
    wanted = _metrics(alert.expression)
    if alert.panel:
        return next((place for place in _places(dashboards) if place.panel.title == alert.panel), None)
    best: tuple[tuple[int, int], PanelPlace] | None = None
    for place in _places(dashboards):
        shown = frozenset[str]().union(*(_metrics(query.promql) for query in place.panel.queries))
        common = wanted & shown
        rank = (len(common), -len(shown - wanted))
        if common and (best is None or rank > best[0]):
            best = rank, place
    return None if best is None else best[1]


def _places(dashboards: Iterable[Dashboard]) -> Iterator[PanelPlace]:
    for dashboard in dashboards:
        for number, panel in placed_panels(dashboard):
            yield PanelPlace(dashboard, number, panel)


def _metrics(expression: str) -> frozenset[str]:
    names = _METRIC.findall(_LABELS.sub(" ", expression))
    return frozenset(re.sub(rf"({'|'.join(_PARTS)})$", "", name) for name in names)
