"""The hour that admin remembers: what it takes, and how long the console waits for the charts of a topic.

No hour is waited for: the rounds of one are noted one after the other.
"""

import os
import statistics
import time

from bench.context import Context
from bench.model import Case, Contestant, Sample
from bench.process import memory_mb
from tandemmq.admin.history.history import SHORTEST_STEP, SPAN_SECONDS, HourHistory, SeriesName
from tandemmq.admin.history.history_answer import tell_history
from tandemmq.admin.v1 import admin_pb2

TOPICS, GROUPS = 1_000, 10_000
HOUR = "an hour of 1,000 topics"
_OF_A_TOPIC = ("messages_in", "bytes_in")
_OF_A_GROUP = ("consumed", "lag")
_BEGUN = 1_700_000_000.0
_ASKED = 60


def hour(context: Context) -> None:
    """`us`: a round; `p50_us`: the answer about one topic; `anon_mb`: what the hour takes."""
    title = f"The hour of {TOPICS:,} topics and {GROUPS:,} groups"
    context.run([Case("admin.hour", title, "p50_us", [Contestant(HOUR, _remember)], rounds=3)])


def _remember() -> Sample:
    before = memory_mb(os.getpid())[1]
    history = HourHistory(SHORTEST_STEP)
    names = [SeriesName("topic", f"topic-{n:05}", one) for n in range(TOPICS) for one in _OF_A_TOPIC]
    names += [SeriesName("group", f"group-{n:05}", one) for n in range(GROUPS) for one in _OF_A_GROUP]
    rounds = int(SPAN_SECONDS / SHORTEST_STEP)
    begun = time.process_time()
    for at in range(rounds):
        history.note(_BEGUN + at * SHORTEST_STEP, {}, dict.fromkeys(names, float(at)))
    noted = (time.process_time() - begun) / rounds
    request, times = admin_pb2.GetHistoryRequest(topic="topic-00042"), list[float]()
    answer = tell_history(history, request)
    for _ in range(_ASKED):
        begun = time.perf_counter()
        answer = tell_history(history, request)
        times.append(time.perf_counter() - begun)
    assert [len(one.values) for one in answer.series] == [rounds] * len(_OF_A_TOPIC)
    used = memory_mb(os.getpid())[1] - before
    return {"p50_us": statistics.median(times) * 1e6, "us": noted * 1e6, "anon_mb": used}
