"""Damaged traffic against the transport's layers: 200,000 inputs, nothing raised, nothing illegal, nothing kept.

`TANDEM_SEED=<n>` replays the inputs; a failure prints the one that did it, made small, and how to run it alone.
"""

import re
from typing import Any

import pytest

from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.faults import transport_target
from tests.faults.campaign import run_campaign
from tests.faults.harness import SEED
from tests.faults.transport_fuzz import chance_of, fuzz, repr_of, smaller
from tests.faults.transport_mutations import Mutator
from tests.faults.transport_target import Target

INPUTS = 200_000
RUNS = 4


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("run", range(RUNS))
def test_damaged_traffic_breaks_no_rule(run: int) -> None:
    inputs = INPUTS // RUNS
    options = ["--record", "--seed", SEED, "--first", run * inputs, "--inputs", inputs]
    report = run_campaign("transport_fuzz", *options, timeout=570)
    assert "fault" not in report
    assert report["inputs"] == inputs


# ------------------------------------------------------------------------------------------------- the fuzzer itself


class Fragile(Connection):
    """A transport with a fault: it stumbles over an unknown frame on stream 3."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        known = self.reader._handlers[0x2]

        def stumble(data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
            if stream_id == 3:
                raise KeyError("stumbled")
            known(data, begin, stop, flags, stream_id)

        self.reader._handlers[0x2] = stumble


class Leaking(Connection):
    """A transport that forgets to give back what a cancelled stream held."""

    def _forget(self, stream: Any) -> None:
        held, stream.held = stream.held, 0
        super()._forget(stream)
        stream.held = held


class Talkative(Connection):
    """A transport that writes a frame of the wrong size."""

    def _on_ping(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        self.sender.control(b"\0\0\x07\x06\x01\0\0\0\0" + data[begin : begin + 7])


SIZES = "wrong size|ends inside a frame"
"""What is said of a frame that is shorter than it should be, or than it says, by what was in it."""


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("transport", "fault"), [(Fragile, "KeyError"), (Leaking, "held"), (Talkative, SIZES)])
def test_the_fuzzer_finds_planted_faults(
    transport: type[Connection], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_target, "Connection", transport)
    found = fuzz(SEED, 0, 20_000, [])["fault"]
    assert re.search(fault, found["error"])
    arguments, parts = parts_of(found["smallest"])
    with pytest.raises((KeyError, AssertionError), match=fault if fault != "KeyError" else "stumbled"):
        Target(chance_of(int(arguments[1]), int(arguments[3]))).run(parts)
    # How small depends on what the fault needs, and on the tries there are: never more than there was, and mostly less.
    _, whole = parts_of(found["replay"])
    assert len(parts) == len(whole)
    assert all(len(part) <= len(before) for part, before in zip(parts, whole, strict=True))


def parts_of(replay: str) -> tuple[list[str], list[bytes]]:
    """The arguments that replay an input, and its parts."""
    arguments = replay.split()
    return arguments, [bytes.fromhex(part) for part in arguments[-1].split(",")]


def test_an_input_is_made_as_small_as_its_fault_allows() -> None:
    def run(parts: list[bytes]) -> BaseException | None:
        return KeyError("both") if b"A" in parts[0] and b"Z" in parts[1] else None

    parts = [b"x" * 700 + b"A" + b"y" * 300, b"z" * 50 + b"Z" * 5, b"w" * 90]
    assert smaller(parts, repr_of(KeyError("both")), run) == [b"A", b"Z", b""]


def test_the_same_number_gives_the_same_input() -> None:
    one, other = Mutator(SEED), Mutator(SEED)
    first = [one.make(number) for number in range(200)]
    assert [other.make(number) for number in reversed(range(200))] == first[::-1]
    assert [Mutator(SEED + 1).make(number) for number in range(200)] != first


@pytest.mark.slow
def test_inputs_reach_what_they_are_meant_for() -> None:
    """Not all of them die at the door: calls are made, answered and reset, and connections fail in many ways."""
    mutator = Mutator(SEED)
    seen: dict[str, int] = {}
    for number in range(0, 6000, 2):
        target = Target(chance_of(SEED, number))
        target.run(mutator.make(number))
        connection = target.connection
        failed = connection.failed
        seen[f"failed {failed.name}" if failed is not None else "lived"] = 1 + seen.get(f"failed {failed}", 0)
        for call in target.calls:
            name = "reset" if call.was_reset else "answered"
            seen[name] = seen.get(name, 0) + 1
    assert seen.keys() >= {"lived", "reset", "answered", "failed PROTOCOL_ERROR", "failed FRAME_SIZE_ERROR"}
    assert seen.keys() >= {"failed ENHANCE_YOUR_CALM", "failed COMPRESSION_ERROR", "failed FLOW_CONTROL_ERROR"}
    assert seen["answered"] > 3000
    assert Limits() in transport_target.LIMITS
