"""The clients that are there: when they come, when they are gone, and which of them is asked."""

import json
from dataclasses import dataclass, field

import pytest

from tandemmq.common.log_output import JsonFormatter
from tandemmq.store.delivery.members.sessions import Command, GroupChanged, Member, Sessions
from tests.manual_timers import ManualTimers


@dataclass
class Line:
    """A connection that takes commands, as long as it has room."""

    room: bool = True
    asked: list[Command] = field(default_factory=list)

    def ask(self, command: Command) -> bool:
        if self.room:
            self.asked.append(command)
        return self.room


def producer(name: str, line: Line | None = None, group: str = "g") -> Member:
    return Member(name, group, line, producer=True)


def kit() -> tuple[Sessions, ManualTimers, list[str]]:
    timers = ManualTimers()
    sessions = Sessions(timers)
    told: list[str] = []
    sessions.listen(lambda member: told.append(member.client_id))
    return sessions, timers, told


COMMAND = GroupChanged("g")


def test_producers_are_asked_in_turn() -> None:
    sessions, _, _ = kit()
    lines = [Line(), Line(), Line()]
    for number, line in enumerate(lines):
        sessions.register(producer(f"c{number}", line))
    assert all(sessions.ask_producer("g", COMMAND) for _ in range(6))
    assert [len(line.asked) for line in lines] == [2, 2, 2]


def test_a_full_line_is_passed_over_and_nobody_left_is_said() -> None:
    sessions, _, _ = kit()
    full, free = Line(room=False), Line()
    sessions.register(producer("full", full))
    sessions.register(producer("silent"))
    sessions.register(producer("free", free))
    sessions.register(Member("consumer", "g", Line()))
    assert [sessions.ask_producer("g", COMMAND) for _ in range(3)] == [True] * 3
    assert len(free.asked) == 3
    free.room = False
    assert not sessions.ask_producer("g", COMMAND)
    assert not sessions.ask_producer("nobody", COMMAND)


def test_consumers_of_a_group_are_told_and_its_producers_not() -> None:
    sessions, _, _ = kit()
    consumer, other, sender = Line(), Line(room=False), Line()
    sessions.register(Member("a", "g", consumer))
    sessions.register(Member("b", "g", other))
    sessions.register(producer("a", sender))
    assert sessions.ask_consumers("g", COMMAND) == 1
    assert (consumer.asked, sender.asked) == ([COMMAND], [])
    assert [one.client_id for one in sessions.consumers("g")] == ["a", "b"]
    assert [one.client_id for one in sessions.producers("g")] == ["a"]


async def test_a_member_that_is_silent_for_two_minutes_is_gone() -> None:
    sessions, timers, told = kit()
    lively, silent = producer("lively"), producer("silent")
    sessions.register(lively)
    sessions.register(silent)
    await timers.advance(60)
    assert sessions.heard_of(lively)
    await timers.advance(59)
    assert len(sessions.members("g")) == 2
    await timers.advance(1)
    assert sessions.members("g") == [lively]
    assert not sessions.heard_of(silent)
    await timers.advance(60)
    assert (sessions.members("g"), sessions.groups()) == ([], [])
    assert told == ["lively", "silent", "silent", "lively"]
    sessions.register(silent)
    await timers.advance(119)
    assert sessions.get("g", "silent", producer=True) is silent
    await timers.advance(1)
    assert sessions.members("g") == []


def test_a_client_that_comes_back_is_not_ended_by_its_old_connection() -> None:
    sessions, _, told = kit()
    before, after = producer("c", Line()), producer("c", Line())
    sessions.register(before)
    sessions.register(after)
    sessions.unregister(before)
    assert not sessions.heard_of(before)
    assert sessions.members("g") == [after]
    assert told == ["c"]
    sessions.unregister(after)
    assert told == ["c", "c"]
    assert sessions.members("g") == []


def test_another_subscription_is_told() -> None:
    sessions, _, told = kit()
    for expression in ("*", "*", "a || b"):
        sessions.register(Member("c", "g", subscriptions={"T": expression}))
    assert told == ["c", "c"]


async def test_silent_clients_are_told_by_name_and_many_by_their_number(caplog: pytest.LogCaptureFixture) -> None:
    sessions, timers, _ = kit()
    for number in range(3):
        sessions.register(Member(f"few-{number}", "g"))
    await timers.advance(121)
    formatter = JsonFormatter()
    said = [json.loads(formatter.format(record)) for record in caplog.records]
    assert [one["client"] for one in said] == ["few-0", "few-1", "few-2"]
    caplog.clear()
    for number in range(1_000):
        sessions.register(Member(f"many-{number}", "g"))
    await timers.advance(121)
    said = [json.loads(formatter.format(record)) for record in caplog.records]
    assert len(said) == 6
    assert said[-1]["clients"] == 1_000
