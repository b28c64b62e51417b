"""A power cut takes whole pages: records that lie across the border of one that is gone, and one that is there.

Both were found by the state machine (TANDEM_SEED=2606253597).
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.store.format.record import record_size
from tandemmq.store.log.message_store import MessageStore
from tests.faults.harness import QUEUES, audit, message, records_on_disk, settle
from tests.faults.power_disk import PAGE
from tests.faults.test_bad_directories import opened
from tests.faults.test_traps import NEVER

ONE = replace(message(QUEUES[0], "c1-p0-0"), body=b"")


def fill_up_to(store: MessageStore, end: int) -> None:
    """Append messages so that the log ends at exactly this offset."""
    while store.commit_log.max_offset < end:
        room = end - store.commit_log.max_offset
        room = room if room < 1_000 else 500
        store.append(replace(ONE, body=b"x" * (room - record_size(ONE))))
    assert store.commit_log.max_offset == end


def lose_page(root: Path, number: int) -> None:
    path = root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[number * PAGE : (number + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(data)
    # Nobody looks behind a current manifest.
    for name in ("tandem.manifest", "checkpoint"):
        (root / name).unlink()


@pytest.mark.parametrize("before", [1, 2, 3])
async def test_a_record_whose_length_begins_with_zeros_on_the_page_before(tmp_path: Path, before: int) -> None:
    """The page that is gone held nothing of it but zeros: the record is whole, for the store and for its judge."""
    async with opened(tmp_path, **NEVER) as store:
        fill_up_to(store, 2 * PAGE - before)
        at = store.append(message(QUEUES[1], "c1-p1-0")).physical_offset
        await settle(store)
    lose_page(tmp_path, 1)
    async with opened(tmp_path, **NEVER) as store:
        found = await audit(store)
        assert [record.physical for record in found.records if record.queue == QUEUES[1]] == [at]
        assert found.queues[QUEUES[1]].messages[0][0] == "c1-p1-0"


async def test_a_record_whose_last_properties_are_gone_stays_damage(tmp_path: Path) -> None:
    """Its body is whole. What recovery called damaged once must not be served after the next start."""
    split = message(QUEUES[1], "c1-p1-0")
    async with opened(tmp_path, **NEVER) as store:
        fill_up_to(store, 2 * PAGE + 20 - record_size(split))
        torn = store.append(split)
        fill_up_to(store, 4 * PAGE)
        await settle(store)
    assert torn.end_offset == 2 * PAGE + 20
    lose_page(tmp_path, 2)
    for _ in range(3):
        async with opened(tmp_path, **NEVER) as store:
            await settle(store)
            assert store.read_record(torn.physical_offset) is None
            assert [known.begin for known in store.damage] == [torn.physical_offset]
    assert torn.physical_offset not in [physical for physical, _, _ in records_on_disk(tmp_path)]
