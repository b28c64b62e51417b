"""`python -m tests.console.hour_admin`: the admin service, which knows an hour of nodes, topics and groups already."""

import math
import sys
import time
from collections.abc import Iterator

from tandemmq.admin.__main__ import serve
from tandemmq.admin.history.history import SPAN_SECONDS, CountedPart, HourHistory, SeriesName
from tandemmq.admin.settings import PROFILES, AdminSettings, load_settings
from tandemmq.common.log_output import configure_logging
from tandemmq.common.processes.command import run_command
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.server import run

TOPICS, GROUPS = 500, 120


def topic_name(number: int) -> str:
    """One of TOPICS."""
    return f"bulk-{number:03}"


def group_name(number: int) -> str:
    """One of GROUPS."""
    return f"crowd-{number:03}"


def filled(nodes: list[str], now: float) -> HourHistory:
    """A history that was noted every 15 s for an hour, until `now`; with a gap in the middle of it."""
    history = HourHistory(15.0)
    points = round(SPAN_SECONDS / history.step)
    for step in range(points + 1):
        if not points // 2 <= step < points // 2 + 8:  # so long admin was away
            at = now - (points - step) * history.step
            history.note(at, dict(_counters(nodes, step)), dict(_gauges(nodes, step)))
    return history


def _counters(nodes: list[str], step: int) -> Iterator[tuple[CountedPart, float]]:
    for node in nodes:
        for measure, factor in (("bytes_in", 4_000_000), ("messages_in", 3_000)):
            yield CountedPart(SeriesName("node", node, measure), ""), factor * _sum(step, 0)
    for number in range(TOPICS):
        for measure, factor in (("messages_in", 1 + number % 90), ("bytes_in", 1_500 * (1 + number % 90))):
            yield CountedPart(SeriesName("topic", topic_name(number), measure), ""), factor * _sum(step, number)
    for number in range(GROUPS):
        yield CountedPart(SeriesName("group", group_name(number), "consumed"), ""), (1 + number) * _sum(step, number)


def _gauges(nodes: list[str], step: int) -> Iterator[tuple[SeriesName, float]]:
    wave = 1 + math.sin(step / 20)
    for node in nodes:
        gauges = {"disk_used": 4e11 + step * 1e8, "send_mean": 0.4 * wave, "send_slowest": 1_900 * wave}
        gauges |= {"replication_lag": 9e8 * wave, "replication_silence": 0.0}
        yield from ((SeriesName("node", node, measure), value) for measure, value in gauges.items())
    for number in range(GROUPS):
        yield SeriesName("group", group_name(number), "lag"), 12_345_678 * wave
        yield SeriesName("group", group_name(number), "waits"), 98_765_432 * wave


def _sum(step: int, number: int) -> float:
    """A counter that grows by 9 to 21 a step."""
    return 15 * step + 60 * math.sin((step + number) / 10)


def _run(settings: AdminSettings) -> None:
    prepare_process()
    configure_logging(settings.log_level, settings.log_format)
    run(serve(settings, history=filled([one.name for one in settings.nodes], time.time())))


if __name__ == "__main__":
    sys.exit(run_command("admin", __doc__ or "", PROFILES, load_settings, _run, None))
