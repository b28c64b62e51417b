"""What is kept of receives that are made again and again."""

from pathlib import Path

import pytest

from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import Subscription, Wish
from tests.unit.delivery.receiving_kit import GROUP, TOPIC, scene


@pytest.mark.parametrize(("tags", "client", "kept"), [(1, 10, 1), (100_000, 10, 0), (1, 100_000, 0)])
async def test_a_call_is_kept_but_not_its_megabytes(tmp_path: Path, tags: int, client: int, kept: int) -> None:
    """Thousands are kept, each with texts of its own: who gives itself a new name each time would fill the memory."""
    async with scene(tmp_path) as at:
        at.send("a", TAGS="tag0")
        await at.kit.dispatched()
        at.groups.put()
        expression = " || ".join(f"tag{number}" for number in range(tags))
        for name in ("one", "two"):
            wish = Wish(GROUP, TOPIC, subscription=Subscription(expression), most=1, client_id=name * client)
            group = at.groups.get(GROUP)
            assert group is not None
            call = at.receiving._calls.of(wish, group)
            assert call.selection.matches({"TAGS": "tag0"})
            assert (at.receiving._calls.of(wish, group) is call) == bool(kept)
        assert len(at.receiving._calls._known) == 2 * kept


@pytest.mark.parametrize(("minutes", "seconds"), [(3, 180), (0, 900), (-1, 900), (1 << 40, 12 * 3_600)])
def test_messages_are_invisible_though_their_group_has_no_sensible_time(minutes: int, seconds: int) -> None:
    """`tandem group create` wrote 0 into the table: messages came again at once, to everybody."""
    assert GroupConfig(GROUP, consume_timeout_minutes=minutes).invisible_ms == seconds * 1_000
