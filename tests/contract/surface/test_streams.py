"""Streams that are cancelled, or whose requests end too early, leave nothing behind: the next is served as before."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from tests.contract.surface.reflected import Port
from tests.contract.surface.scene import Scene, places
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("surface")

Spoil = Callable[[str], AbstractContextManager[Scene]]

AGAIN_SECONDS = 60.0
"""How long a service may take to notice that a caller has gone."""


@pytest.fixture(params=["node", "store"])
def streaming(
    request: pytest.FixtureRequest, node: Scene, spoil: Spoil
) -> Iterator[tuple[Scene, list[tuple[str, str]]]]:
    """A scene and its methods that stream answers, requests or both."""
    with ExitStack() as stack:
        scene = node if request.param == "node" else stack.enter_context(spoil(request.param))
        found = []
        for port, path in places(request.param):
            method = scene.ports[port].methods[path]
            if method.server_streaming or method.client_streaming:
                found.append((port, path))
        assert found
        yield scene, found


def answered(scene: Scene, port: str, path: str) -> bool:
    outcome = scene.ports[port].call(path, [scene.good(port, path)], hold=True)
    # The last caller's place is not free yet; or bytes that it sent have moved the end of the log.
    assert outcome.code in ("OK", "ALREADY_EXISTS", "FAILED_PRECONDITION"), (path, outcome)
    return outcome.code == "OK" and len(outcome.answers) == 1


def abandon(port: Port, path: str, request: bytes) -> None:
    """Makes a call and goes before anything can have come of it."""
    port.begin(path, iter([request])).cancel()


def wait_answered(scene: Scene, port: str, path: str) -> None:
    until(lambda: answered(scene, port, path), AGAIN_SECONDS, f"{path} is served")


def test_who_goes_leaves_nothing_behind(streaming: tuple[Scene, list[tuple[str, str]]]) -> None:
    scene, methods = streaming
    for port, path in methods:
        request = scene.good(port, path).SerializeToString()
        for _ in range(10):
            abandon(scene.ports[port], path, request)
        for _ in range(3):  # each ends in the middle, behind its first answer
            wait_answered(scene, port, path)
    scene.check_alive()


def test_many_requests_and_then_gone(streaming: tuple[Scene, list[tuple[str, str]]]) -> None:
    scene, methods = streaming
    for port, path in methods:
        if scene.ports[port].methods[path].client_streaming:
            outcome = scene.ports[port].call(path, [scene.good(port, path)] * 200, hold=True)
            assert outcome.code not in ("UNKNOWN", "INTERNAL"), (path, outcome)
            wait_answered(scene, port, path)
    scene.check_alive()


def test_requests_that_end_before_the_first(streaming: tuple[Scene, list[tuple[str, str]]]) -> None:
    scene, methods = streaming
    for port, path in methods:
        if scene.ports[port].methods[path].client_streaming:
            outcome = scene.ports[port].call(path, [])
            assert outcome.code not in ("UNKNOWN", "INTERNAL", "DEADLINE_EXCEEDED"), (path, outcome)
            assert outcome.code == "OK" or outcome.details, (path, outcome)
    scene.check_alive()


@pytest.mark.slow
def test_who_has_asked_all_still_gets_the_answers(streaming: tuple[Scene, list[tuple[str, str]]]) -> None:
    scene, methods = streaming
    for port, path in methods:
        outcome = scene.ports[port].call(path, [scene.good(port, path)], seconds=2.0)
        if not outcome.answers:  # a busy machine is given more; else not, as some wait on behind their answers
            wait_answered(scene, port, path)
            outcome = scene.ports[port].call(path, [scene.good(port, path)], seconds=30.0)
        assert outcome.accepted, (path, outcome)
        assert outcome.answers, (path, outcome)
    scene.check_alive()
