"""One script against grpcio's server and ours: what differs, from each other or from the model, is a fault.

    python -m tests.faults.transport_oracle [--seed 7] [--examples 1000]

Who is right when they differ: the model where it has an opinion, otherwise grpcio.
"""

import argparse
import json
import random
import sys
import time
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, note, seed, settings

from tests.faults.transport_probe import PATIENCE, RawClient, Served, serving
from tests.faults.transport_scripts import Call, Script, scripts
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.reading import Answer

LAST_PING = b"all done"


class Got(NamedTuple):
    """What a client has of a call in the end; `details` only when the model names them."""

    messages: tuple[bytes, ...]
    status: int | None
    details: str | None
    trailers: tuple[tuple[bytes, bytes], ...]


def compare(grpcio: Served, fast: Served, script: Script) -> None:
    """Plays a script to both; raises AssertionError for what differs."""
    theirs, ours = run(grpcio, script.unpadded()), run(fast, script)
    for stream, call in script.streams().items():
        note(f"stream {stream}: {call}\n    ours {ours.get(stream)}\n    grpcio {theirs.get(stream)}")
    for stream, call in script.streams().items():
        if call.reset_after is None:
            assert got(ours[stream], call) == got(theirs[stream], call)
            check(ours[stream], call)
        else:
            check_reset(ours.get(stream, Answer()), call)
            check_reset(theirs.get(stream, Answer()), call, waits_for_the_end=False)


def run(served: Served, script: Script) -> dict[int, Answer]:
    """Plays a script; the answers when every call has ended that nobody reset."""
    client = RawClient(served)
    deadline = time.monotonic() + PATIENCE
    try:
        client.send(script.hello())
        while client.reading.settings is None:
            assert client.read_once(deadline), "no SETTINGS of the server"
        client.send(*script.assembled(), wire.ping(LAST_PING))
        wanted = [stream for stream, call in script.streams().items() if call.reset_after is None]
        answers = client.reading.answers
        while not (LAST_PING in client.reading.pongs and all(is_over(answers.get(stream)) for stream in wanted)):
            assert client.read_once(deadline), (client.reading.goaways, {at: answers.get(at) for at in wanted})
        assert not client.reading.goaways
        check_connection(client, script)
        return answers
    finally:
        client.close()


def is_over(answer: Answer | None) -> bool:
    return answer is not None and (answer.ended or answer.reset is not None)


def check_connection(client: RawClient, script: Script) -> None:
    """PINGs are answered in order; nothing comes for a stream that was reset before the last one."""
    sent = [payload[9:] for payload in script.noise if payload[3] == wire.Type.PING]
    assert sorted(client.reading.pongs) == sorted([*sent, LAST_PING])
    assert client.reading.settings_acks == 2 + sum(payload[3] == wire.Type.SETTINGS for payload in script.noise)


def got(answer: Answer, call: Call) -> Got:
    details = None if call.expected.details is None else answer.details
    last = answer.headers if answer.trailers is None else answer.trailers
    trailers = tuple((name, value) for name, value in last if name.startswith(b"x-"))
    messages = tuple(answer.messages) if call.method != "Mirror" else ()
    return Got(messages, answer.status, details, trailers)


def check(answer: Answer, call: Call) -> None:
    """Against the model."""
    expected = call.expected
    assert answer.status == expected.status
    assert got(answer, call)[2:] == (expected.details, expected.trailers)
    if expected.messages is not None:
        assert tuple(answer.messages) == expected.messages
    if answer.status == 0:
        assert answer.http_status == b"200"
        assert answer.reset in (None, wire.Code.NO_ERROR)


def check_reset(answer: Answer, call: Call, *, waits_for_the_end: bool = True) -> None:
    """Nothing but the beginning of what the call would have got; nothing at all when it never was a whole request.

    grpcio does not wait for the end of a request with one message: it may have answered before it hears of the reset.
    """
    if call.expected.messages is not None:
        assert tuple(answer.messages) == call.expected.messages[: len(answer.messages)]
    if waits_for_the_end and not call.ends and call.method not in ("Converse", "Nowhere"):
        assert not answer.messages or call.expected.messages is None
    if answer.status is not None and call.ends:
        assert answer.status == call.expected.status


def many(seed_number: int, examples: int) -> None:
    """So many scripts; Hypothesis makes the first bad one small and raises what it raised."""
    with serving("grpcio") as grpcio, serving("fast") as fast:

        @seed(seed_number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow],  # it may: there are other tests beside this one
        )
        @given(scripts)
        def run_all(script: Script) -> None:
            compare(grpcio, fast, script)

        run_all()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--examples", type=int, default=1000)
    options = parser.parse_args()
    begun = time.monotonic()
    many(options.seed, options.examples)
    report = {"seed": options.seed, "examples": options.examples, "seconds": round(time.monotonic() - begun, 1)}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
