"""Which metric names of RocketMQ 5 are served by real services, and that the documentation says exactly that."""

import re
from typing import Any

import pytest

from tests.dashboards.prometheus import DIRECTORY, promtool
from tests.dashboards.rocketmq5 import ABSENT, COMMON_LABELS, HISTOGRAMS, LABELS, SERVED
from tests.dashboards.scene import PATIENCE, Scene
from tests.faults.pair_process import until

pytestmark = [pytest.mark.timeout(600)]

SHORT_NAMES = DIRECTORY / "prometheus" / "rocketmq-names.yml"
RENAMED = {
    "rocketmq_consumer_lag_latency",
    "rocketmq_rpc_latency",
    "rocketmq_storage_message_reserve_time",
    "rocketmq_storage_size",
}
"""Instruments whose names RocketMQ's exporter makes longer by their unit."""

_PAGE = (DIRECTORY.parent / "docs" / "monitoring.md").read_text()


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("name", SERVED)
def test_a_name_of_rocketmq_5_is_served_with_its_labels(scene: Scene, name: str) -> None:
    series: list[dict[str, Any]] = []

    def is_served() -> bool:
        """A target whose scrape comes late on a busy machine has no series for a moment."""
        series[:] = scene.prometheus.query(f"{name}_bucket" if name in HISTOGRAMS else name)
        return bool(series)

    until(is_served, PATIENCE, f"{name} is served")
    wanted = COMMON_LABELS | LABELS.get(name, set())
    for one in (each["metric"] for each in series):
        lacking = wanted - one.keys()
        assert lacking == ({"cluster"} if one["node_type"] == "names" else set()), one  # brokers of many may register


@pytest.mark.slow
@pytest.mark.serial
def test_no_other_name_of_rocketmq_is_served(scene: Scene) -> None:
    names = scene.prometheus.get("label/__name__/values", **{"match[]": '{__name__=~"rocketmq_.+"}'})
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert families == SERVED.keys()


def test_the_documentation_lists_what_is_served_and_what_is_not() -> None:
    served = [f"| `{name}` | {service} | {remark} |" for name, (service, remark) in SERVED.items()]
    assert rows("| served | by | remark |") == [row.replace("|  |", "| |") for row in served]
    assert rows("| not served | why |") == [f"| `{name}` | {why} |" for name, why in ABSENT.items()]


def rows(head: str) -> list[str]:
    """Rows of the page's table with this head."""
    table = _PAGE[_PAGE.index(head) :].split("\n\n", 1)[0]
    return table.rstrip("\n").split("\n")[2:]


def test_the_short_names_are_made_of_names_that_are_served() -> None:
    promtool("check", "rules", SHORT_NAMES)
    rules = re.findall(r"record: (\w+)\n +expr: (\w+)\n", SHORT_NAMES.read_text())
    assert len(rules) == SHORT_NAMES.read_text().count("record:")
    suffix = re.compile(r"_(bucket|sum|count)$")
    for short, name in rules:
        assert suffix.sub("", name) in SERVED
        assert suffix.sub("", short) in RENAMED
        assert suffix.sub("", name) in {f"{suffix.sub('', short)}_{unit}" for unit in ("milliseconds", "bytes")}
    assert {suffix.sub("", short) for short, _ in rules} == RENAMED
