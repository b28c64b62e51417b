"""The event loop's lateness, by timers that the test moves."""

import pytest

from tandemmq.store.loop_lag import LoopLag
from tests.manual_timers import ManualTimers


async def test_it_tells_how_late_each_call_was() -> None:
    timers, told = ManualTimers(), list[float]()
    lag = LoopLag(timers, told.append)
    lag.start()
    await timers.advance(0.12)
    assert told == [0.0, 0.0]
    timers.now += 0.2  # something has kept the loop busy
    await timers.advance(0)
    assert told[2:] == [pytest.approx(0.17)]
    lag.stop()
    await timers.advance(10)
    assert len(told) == 3
