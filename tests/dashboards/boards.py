"""The committed dashboards as a test reads them: panels, expressions, variables."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.dashboards.prometheus import DIRECTORY

NAMES = ("overview", "store", "replication", "metasync", "clients")
_COMPARED_WITH_NUMBER = re.compile(r"\s+(==|!=|>=|<=|>|<)\s+-?[0-9.]+(e[+-]?\d+)?(?=\s|\)|$)")
_COMPARED_WITH_SERIES = re.compile(r"\s+(==|>=|<=|>|<)\s+(?=[a-z(])")
RATE_INTERVAL = "2m"
"""Long enough for two scrapes, however seldom a busy machine gets to them."""


class Expression(NamedTuple):
    """One expression of a panel."""

    panel: str
    text: str


def load(name: str) -> dict[str, Any]:
    """A dashboard's JSON."""
    path = DIRECTORY / "grafana" / f"{name}.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def panels(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Its panels without the headings of rows."""
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def expressions(name: str) -> Iterator[Expression]:
    """Every expression of a dashboard, as Grafana would send it with everything chosen."""
    document = load(name)
    for panel in panels(document):
        for target in panel["targets"]:
            yield Expression(panel["title"], filled(target["expr"], document))


def filled(text: str, document: dict[str, Any], **chosen: str) -> str:
    """An expression with the values of variables: everything, unless something is chosen."""
    for variable in document["templating"]["list"]:
        name = variable["name"]
        text = text.replace(f"${name}", chosen.get(name, variable.get("allValue", "")))
    return text.replace("$__rate_interval", RATE_INTERVAL)


def measured(expression: str) -> str:
    """What an expression looks at, without what it asks of it.

    Comparisons with a number go; those of two series become a sum, so that their labels must still match. Alerts that
    fire count as much as those that are about to.
    """
    text = _COMPARED_WITH_NUMBER.sub("", expression)
    text = _COMPARED_WITH_SERIES.sub(" + ", text)
    return text.replace('alertstate="firing"', 'alertstate=~"firing|pending"')
