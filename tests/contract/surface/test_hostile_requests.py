"""Hostile requests get a status that blames them, in words and in time; nothing changes, and the service goes on."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from tests.campaigns import rows_in_campaigns
from tests.contract.surface.hostile import FIXED, garbage, messages
from tests.contract.surface.reflected import ANSWER_SECONDS, Outcome, Port
from tests.contract.surface.scene import Entry, Scene, places, table

pytestmark = [pytest.mark.xdist_group("surface"), pytest.mark.timeout(600)]

Spoil = Callable[[str], AbstractContextManager[Scene]]

WAIT_SECONDS = 0.4
"""How long a call that may wait is waited for."""

UNREADABLE = "Exception deserializing request!"
"""What gRPC says, with INTERNAL, of bytes that are not the message (its document on status codes wants that)."""


@pytest.fixture
def places_of(node: Scene, spoil: Spoil) -> Any:
    """The scene where hostile requests of an entry may do what they do; a throw-away one for changes of roles."""
    with ExitStack() as stack:
        yield lambda entry: node if entry.on == "node" else stack.enter_context(spoil(entry.on))


class Trial:
    """Calls of one method, with a look at everything after each that is refused."""

    def __init__(self, scene: Scene, port: str, entry: Entry) -> None:
        self.scene = scene
        self.port: Port = scene.ports[port]
        self.entry = entry
        self.before = scene.state()

    def call(self, request: Message | bytes) -> Outcome:
        """One hostile request; fails when the answer is none that such a request should get."""
        seconds = WAIT_SECONDS if self.entry.waits else ANSWER_SECONDS
        outcome = self.port.call(self.entry.path, [request], seconds=seconds)
        if outcome.code == "DEADLINE_EXCEEDED":
            assert self.entry.waits, f"no answer in {seconds} s"
        assert outcome.code not in ("UNKNOWN", "INTERNAL", "UNIMPLEMENTED") or self.unreadable(request, outcome), (
            outcome
        )
        assert outcome.accepted or outcome.details, outcome
        if outcome.accepted:
            self.scene.arrive(self.entry.path, request)
        if self.entry.changes:
            self.look(accepted=outcome.accepted or self.entry.changes == "always")
        return outcome

    def unreadable(self, request: Message | bytes, outcome: Outcome) -> bool:
        """Whether the request is no message of its type, and this was said of it."""
        if isinstance(request, Message):
            return False
        try:
            GetMessageClass(self.port.request_type(self.entry.path)).FromString(request)
        except DecodeError:
            return (outcome.code, outcome.details) == ("INTERNAL", UNREADABLE)
        return False

    def look(self, *, accepted: bool) -> None:
        """What a call left behind: nothing, if it was refused."""
        after = self.scene.state()
        before, self.before = self.before, after
        assert accepted or after == before

    def end(self) -> None:
        """After all of them."""
        self.look(accepted=bool(self.entry.changes))
        self.scene.check_alive(roles_change=self.entry.on != "node")


OF_ROLES = [place for on in ("slave", "store") for place in places(on)]


@pytest.mark.parametrize(("port", "path"), [*places("node"), *rows_in_campaigns(*OF_ROLES)])
def test_bytes_that_are_no_message(node: Scene, spoilt: Callable[[str], Scene], port: str, path: str) -> None:
    entry = table()[path]
    trial = Trial(node if entry.on == "node" else spoilt(entry.on), port, entry)
    for request in garbage():
        trial.call(request)
    trial.end()


@pytest.mark.parametrize(("port", "path"), [*places("node"), *rows_in_campaigns(*OF_ROLES)])
def test_messages_full_of_edges(places_of: Callable[[Entry], Scene], port: str, path: str) -> None:
    entry = table()[path]
    scene = places_of(entry)
    good = scene.good(port, path)
    trial = Trial(scene, port, entry)

    @FIXED
    @given(hostile=messages(scene.ports[port].request_type(path)), mixed=st.booleans())
    def attempt(hostile: Message, mixed: bool) -> None:
        request = type(good)()
        if mixed and not entry.alone:  # so that the hostile values are not all after the first check
            request.CopyFrom(good)
        request.MergeFrom(hostile)
        trial.call(request)

    attempt()
    trial.end()
