"""What is around the core, compiled and in Python: the same calls come to the same, and are counted the same."""

import asyncio
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.compiled_core import core_problem, short_way
from tandemmq.store.fronts.native.direct_send import DirectSend
from tandemmq.store.v1 import store_pb2
from tests.campaigns import examples
from tests.unit.fronts.compiled_kit import Way, around_the_core, changed_by_sends, itself
from tests.unit.fronts.direct_caller import DirectCaller
from tests.unit.fronts.test_compiled_send import PEERS, damaged, python_way, request, requests, sending

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

SETTINGS: list[dict[str, str]] = [
    {},
    {"flush_disk_type": "SYNC_FLUSH"},
    {"broker_role": "SYNC_MASTER"},
    {"broker_role": "SYNC_MASTER", "flush_disk_type": "SYNC_FLUSH"},
]
PLAIN = request(queue_id=0, properties={"UNIQ_KEY": "k"}, born_timestamp=9)
NO_WAIT = request(queue_id=0, properties={"UNIQ_KEY": "k"}, born_timestamp=9, no_wait=True)
EVENTS = st.one_of(
    st.tuples(st.sampled_from([PLAIN, PLAIN, NO_WAIT]) | requests | damaged(), st.sampled_from(PEERS)),
    st.sampled_from(["turn", "replicated"]),
)


async def outcome(way: Way, root: Path, events: list[Any], settings: dict[str, str]) -> object:
    async with sending(root, compiled=True, **settings) as (kit, core):
        python_way(kit, PLAIN, PEERS[0])
        transfer = kit.broker.acknowledgement.transfer
        transfer.begin()
        transfer.progress(True, kit.store.commit_log.max_offset, 1)
        direct, calls, said = way(DirectSend(kit.broker, kit.traffic, core)), [], []
        for event in events:
            if event == "turn":
                await asyncio.sleep(0)
            elif event == "replicated":
                transfer.progress(True, kit.store.commit_log.max_offset, 1)
            else:
                message, peer = event
                calls.append(DirectCaller(peer))
                answer = direct(message, calls[-1])
                said.append(_told(answer) if isinstance(answer, bytes) else answer)
        await asyncio.sleep(0)
        await kit.store.wait_flushed(kit.store.commit_log.max_offset)
        transfer.progress(True, kit.store.commit_log.max_offset, 1)
        held = [call for call, answer in zip(calls, said, strict=True) if answer is HELD]
        while any(call.later is None for call in held):
            await asyncio.sleep(0.001)
        counted = {key: sum(times.counts) for key, times in kit.traffic._calls.items()}
        later = [[_told(answer) for answer in call.answers] for call in calls]
        return said, later, counted, changed_by_sends(kit)


def _told(answer: bytes) -> store_pb2.SendResponse:
    """Without a key that the store has made."""
    response = store_pb2.SendResponse.FromString(answer)
    if response.receipt.unique_key.startswith("0A000001"):
        response.receipt.unique_key = "made"
    return response


@examples(25, 200, st.lists(EVENTS, max_size=12), st.sampled_from(SETTINGS))
def test_the_same_comes_of_it(events: list[Any], settings: dict[str, str]) -> None:
    logging.disable(logging.CRITICAL)
    try:
        outcomes = []
        for way in (short_way, itself):
            with TemporaryDirectory() as root:
                outcomes.append(asyncio.run(outcome(way, Path(root), events, settings)))
        assert outcomes[0] == outcomes[1]
    finally:
        logging.disable(logging.NOTSET)


@around_the_core
async def test_calls_are_counted_by_how_long_they_took(tmp_path: Path, way: Way) -> None:
    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        python_way(kit, PLAIN, PEERS[0])
        sends = DirectSend(kit.broker, kit.traffic, core)
        direct = way(sends)
        assert kit.traffic._calls == {}
        assert isinstance(direct(NO_WAIT, DirectCaller()), bytes)
        assert direct(PLAIN, DirectCaller()) is HELD
        turn = sends.when_safe.turn
        assert turn is not None
        turn.held[:] = [(call, answer, begun - 0.0065) for call, answer, begun in turn.held]
        turn.held += [(call, answer, begun - 3600) for call, answer, begun in turn.held]
        turn(PutStatus.PUT_OK)
        times = kit.traffic._calls["grpc", "Send", "SUCCESS", False]
        assert sum(times.counts) == 3
        assert times.counts[-1] == 1
        assert 1 <= sum(times.counts[3:-1]) <= 2, "the one of 6.5 ms, and the first where the machine was slow"
        assert 3_600_006 < times.sum < 3_601_000
        turn.held.clear()


@around_the_core
async def test_a_held_call_that_fails_does_not_take_the_others_along(
    tmp_path: Path, way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(DirectCaller):
        def answer_later(self, answer: bytes) -> None:
            raise RuntimeError("the connection is in pieces")

    async with sending(tmp_path, compiled=True, flush_disk_type="SYNC_FLUSH") as (kit, core):
        python_way(kit, PLAIN, PEERS[0])
        sends = DirectSend(kit.broker, kit.traffic, core)
        direct, calls = way(sends), [DirectCaller(), Broken(), DirectCaller()]
        assert [direct(PLAIN, call) for call in calls] == [HELD] * 3
        turn = sends.when_safe.turn
        assert turn is not None
        with caplog.at_level(logging.ERROR):
            turn(PutStatus.PUT_OK)
        assert [call.later is None for call in calls] == [False, True, False]
        assert "was not answered" in caplog.text
        turn.held.clear()


@around_the_core
async def test_where_the_core_fails_nobody_tries_again(tmp_path: Path, way: Way) -> None:
    """It is stored, perhaps: the handler would store it once more."""

    class Failing:
        waits, end_offset, taken = True, 0, 0

        def answer(self, message: bytes, peer: bytes) -> bytes | None:
            raise TandemError("what follows the log is broken")

    async with sending(tmp_path, compiled=True) as (kit, _):
        sends = DirectSend(kit.broker, kit.traffic, Failing())
        before = changed_by_sends(kit)
        with pytest.raises(TandemError, match="broken"):
            way(sends)(PLAIN, DirectCaller())
        assert changed_by_sends(kit) == before
