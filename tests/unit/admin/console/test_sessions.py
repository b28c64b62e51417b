"""Sessions: when they end, and how many there are."""

import pytest

from tandemmq.admin.console.sessions import LIFE, MOST, ConsoleSessions
from tandemmq.common.access.errors import Unauthenticated
from tandemmq.common.access.principal import Principal

IDLE = 60.0
ALICE = Principal("alice", (), "hash", None)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> ConsoleSessions:
    return ConsoleSessions(IDLE, lambda principal: principal, clock)


def test_an_idle_session_ends_although_its_pages_refresh(sessions: ConsoleSessions, clock: Clock) -> None:
    name = sessions.open(ALICE)
    clock.now += IDLE - 1
    assert sessions.find(name, used=True).principal is ALICE
    clock.now += IDLE - 1
    sessions.find(name, used=False)
    clock.now += 1
    with pytest.raises(Unauthenticated, match="has ended"):
        sessions.find(name, used=False)
    assert len(sessions) == 0


def test_a_busy_session_ends_too(sessions: ConsoleSessions, clock: Clock) -> None:
    name = sessions.open(ALICE)
    for _ in range(2 * LIFE - 1):
        clock.now += IDLE / 2
        sessions.find(name, used=True)
    clock.now += IDLE / 2
    with pytest.raises(Unauthenticated, match="has ended"):
        sessions.find(name, used=True)


def test_the_table_is_bounded_and_the_longest_silent_goes(sessions: ConsoleSessions) -> None:
    first, second = sessions.open(ALICE), sessions.open(ALICE)
    sessions.find(first, used=True)
    for _ in range(MOST - 1):
        sessions.open(ALICE)
    assert len(sessions) == MOST
    sessions.find(first, used=True)
    with pytest.raises(Unauthenticated, match="no such session"):
        sessions.find(second, used=True)


def test_ended_sessions_make_room_first(sessions: ConsoleSessions, clock: Clock) -> None:
    for _ in range(MOST):
        sessions.open(ALICE)
    clock.now += IDLE
    sessions.open(ALICE)
    assert len(sessions) == 1


def test_a_session_that_was_ended_is_no_more(sessions: ConsoleSessions) -> None:
    session = sessions.find(sessions.open(ALICE), used=True)
    sessions.end(session)
    with pytest.raises(Unauthenticated):
        sessions.still(session)


def test_who_is_no_user_any_more_has_no_session(clock: Clock) -> None:
    def gone(principal: Principal) -> Principal:
        raise Unauthenticated(f"user {principal.name} was removed")

    sessions = ConsoleSessions(IDLE, gone, clock)
    name = sessions.open(ALICE)
    with pytest.raises(Unauthenticated, match="was removed"):
        sessions.find(name, used=True)
    assert len(sessions) == 0


@pytest.mark.parametrize("name", ["", "x", "\udcff", "a" * 10_000])
def test_names_that_are_none(sessions: ConsoleSessions, name: str) -> None:
    sessions.open(ALICE)
    with pytest.raises(Unauthenticated):
        sessions.find(name, used=True)
