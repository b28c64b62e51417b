"""Attempts to keep in touch with another process: how they are repeated, and what the log says of it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

import pytest

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.errors import TandemError

Attempt = Callable[[FollowedPeer], AsyncGenerator[None, None]]


def attempt(*, came: bool = False, succeeds: bool = False, ends_with: Exception | None = None) -> Attempt:
    async def made(peer: FollowedPeer) -> AsyncGenerator[None, None]:
        if came:
            peer.came()
        if succeeds:
            yield
        if ends_with is not None:
            raise ends_with

    return made


refused = attempt(ends_with=TandemError("It refuses.", remedy="Ask another."))
succeeds_and_ends = attempt(came=True, succeeds=True)
succeeds_and_breaks = attempt(came=True, succeeds=True, ends_with=ConnectionError("reset"))
comes_and_breaks = attempt(came=True, ends_with=ConnectionError("reset"))
faulty = attempt(ends_with=KeyError("ours"))


async def followed(*attempts: Attempt) -> tuple[FollowedPeer, list[float], list[tuple[bool, str]]]:
    """All of these attempts, one after another: the pauses between them, and how the peer was after each change."""
    left, pauses, states = list(attempts), list[float](), list[tuple[bool, str]]()
    peer = FollowedPeer("store", "h:1", lambda: states.append((peer.there, peer.problem)))

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if not left:
            raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        await peer.follow(lambda: left.pop(0)(peer), Backoff(1, 4, uniform=lambda low, high: high), pause)
    return peer, pauses, states


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, object]]:
    found = []
    for record in caplog.records:
        values = vars(record)["tandem_values"]
        assert values["peer"] == "store"
        assert values["name"] == "h:1"
        found.append((record.levelname, record.message, values.get("reason")))
    return found


async def test_pauses_grow_until_something_succeeds() -> None:
    _, pauses, _ = await followed(*[refused] * 4, succeeds_and_breaks, refused, comes_and_breaks, succeeds_and_ends)
    assert pauses == [1, 2, 4, 4, 1, 2, 4, 1], "an attempt that reached the peer and did nothing is no success"


async def test_the_log_says_once_what_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    peer, _, _ = await followed(refused, refused, succeeds_and_breaks, comes_and_breaks, succeeds_and_ends)
    there = ("INFO", "peer is there", None)
    assert lines(caplog) == [
        ("WARNING", "peer is away", "It refuses. (Ask another.)"),
        there,
        ("WARNING", "peer is away", "reset"),
        there,
        ("WARNING", "peer is away", "reset"),
        there,
        ("WARNING", "peer is away", "it has ended the call"),
    ]
    assert (peer.there, peer.problem) == (False, "it has ended the call")


async def test_the_log_does_not_hear_of_the_first_failures_of_a_patient_one(caplog: pytest.LogCaptureFixture) -> None:
    peer = FollowedPeer("store", "h:1", patience=2)
    for _ in range(2):
        peer.gone("not yet")
        peer.gone("not yet")
        assert peer.problem == "not yet"
        peer.came()
    for _ in range(4):
        peer.gone("not yet")
    assert lines(caplog) == [("WARNING", "peer is away", "not yet")]


async def test_who_waits_for_the_peer_hears_of_each_change() -> None:
    _, _, states = await followed(refused, succeeds_and_breaks)
    assert states == [(False, "It refuses. (Ask another.)"), (True, ""), (False, "reset")]


async def test_a_fault_of_the_program_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    peer, pauses, _ = await followed(faulty, faulty, succeeds_and_ends)
    assert len(pauses) == 3
    assert [one.levelname for one in caplog.records if one.message == "an attempt failed"] == ["ERROR", "ERROR"]
    assert peer.problem == "it has ended the call"
