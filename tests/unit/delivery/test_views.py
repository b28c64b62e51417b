"""Looks at delivery, in the first moment of a store and where nothing is given out."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.views import Views
from tests.unit.delivery.delivery_kit import delivering


async def test_who_asks_while_the_journal_is_read_waits_for_it(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        await at.send("orders", 3)
    async with delivering(tmp_path, ready=False) as at:
        assert not at.delivery.delivering
        await Views(at.delivery).check()
        assert at.delivery.delivering


async def test_a_slave_says_at_once_that_it_gives_out_nothing(tmp_path: Path) -> None:
    async with delivering(tmp_path, ready=False, broker_role="SLAVE", broker_id=1) as at:
        with pytest.raises(NotDelivering, match="no master"):
            await asyncio.wait_for(Views(at.delivery).groups(), 4)
