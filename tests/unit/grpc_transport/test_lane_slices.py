"""A lane whose slices end anywhere, and a connection alone, whose slices end elsewhere: the same comes of it."""

import asyncio
import logging
import random
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import strategies as st

from tandemmq.common.grpc_transport import Limits
from tandemmq.store.compiled_core import core_problem
from tests.campaigns import examples
from tests.unit.grpc_transport.lane_kit import One, outside_of_tasks, run_by_hand
from tests.unit.grpc_transport.test_lane import SAID, SMALL, spoken

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

BY_TURNS = ("said", "behind", "_progressed", "given", "size", "account")
"""What depends on when things happen, and not only on what."""


def outcome(
    parts: list[bytes], limits: Limits, chance: random.Random, often: float, *, lane: bool
) -> dict[str, object]:
    async def go() -> dict[str, object]:
        one = One(limits, lane=lane, enough=lambda: chance.random() < often)
        for part in parts:
            if one.protocol._transport is None or one.transport.is_closing():
                break
            await outside_of_tasks(partial(one.protocol.data_received, part))
            while one.connection.reader.behind:
                await asyncio.sleep(0)
        for _ in range(6):
            await asyncio.sleep(0)
        while one.short.held:
            one.short.answer_one()
        for _ in range(6):
            await asyncio.sleep(0)
        found = {name: value for name, value in one.state().items() if name not in BY_TURNS}
        await outside_of_tasks(partial(one.protocol.connection_lost, None))
        if one.server.tasks:
            await asyncio.wait(one.server.tasks)
        return {**found, "left": (one.server.active, one.connection.buffered)}

    logging.disable(logging.CRITICAL)  # faults of handlers are part of the game
    try:
        return run_by_hand(go())
    finally:
        logging.disable(logging.NOTSET)


@examples(
    25,
    3_000,
    SAID,
    st.lists(st.integers(0, 1 << 16), max_size=5),
    st.integers(0, 1 << 30),
    st.sampled_from([0.2, 0.5, 1.0]),
    st.sampled_from([Limits(), SMALL]),
)
def test_it_does_not_matter_where_slices_end(
    said: list[tuple[str, object]], cuts: list[int], seed: int, often: float, limits: Limits
) -> None:
    sent = spoken(said, True)
    for of_turns, of_none in ((b"/Wait", b"/Echo"), (b"/Repeat", b"/Absent"), (b"0n", b"9S")):
        sent = sent.replace(of_turns, of_none)  # what comes of the first, turns decide; 0n: a time-out that is over
    parts = [sent[a:b] for a, b in pairwise(sorted({cut % len(sent) for cut in cuts} | {0, len(sent)}))]
    theirs = outcome(parts, limits, random.Random(seed + 1), often, lane=False)
    ours = outcome(parts, limits, random.Random(seed), often, lane=True)
    assert not {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]}
