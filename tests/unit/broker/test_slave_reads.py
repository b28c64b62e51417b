"""Pulls from a slave: it may be behind, so it corrects nothing of its own accord, and says whom to ask."""

from pathlib import Path

import pytest

from tandemmq.store.broker.pulled import PullAnswer, PullStatus
from tandemmq.store.broker.slave_reads import MASTER, SLAVE, SlaveReadRules, SlaveReads, lag_max
from tandemmq.store.log.message_store import MessageStore
from tests.unit.log.replica_kit import message, opened

TOO_SMALL, BADLY, ONE, NO_QUEUE = (
    PullStatus.OFFSET_TOO_SMALL,
    PullStatus.OFFSET_OVERFLOW_BADLY,
    PullStatus.OFFSET_OVERFLOW_ONE,
    PullStatus.NO_MATCHED_LOGIC_QUEUE,
)


def reads(store: MessageStore, **rules: object) -> SlaveReads:
    return SlaveReads(store, SlaveReadRules(**rules))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "check", "status", "corrected", "told", "next_offset"),
    [
        ("ASYNC_MASTER", False, BADLY, 10, BADLY, 10),
        ("SLAVE", False, BADLY, 10, ONE, 50),
        ("SLAVE", True, BADLY, 10, BADLY, 10),
        ("SLAVE", False, TOO_SMALL, 60, TOO_SMALL, 50),
        ("SLAVE", True, TOO_SMALL, 60, TOO_SMALL, 60),
        ("SLAVE", False, NO_QUEUE, 0, NO_QUEUE, 50),
        ("SLAVE", False, ONE, 50, ONE, 50),
    ],
)
async def test_offsets_that_a_slave_does_not_have(
    tmp_path: Path, role: str, check: bool, status: PullStatus, corrected: int, told: PullStatus, next_offset: int
) -> None:
    store = opened(tmp_path, role)
    answer = reads(store, check_offsets=check).place(PullAnswer(status, corrected, 0, 10), 50)
    assert (answer.status, answer.next_offset) == (told, next_offset)
    await store.close()


async def test_a_consumer_that_lags_far_behind_is_sent_to_a_slave(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(50):
        store.append(message(number, 1_000))
    first, last = store.read_record(0), store.read_record(store.append(message(1)).physical_offset)
    assert first is not None
    assert last is not None

    def advice(records: bytes, **rules: object) -> int:
        return reads(store, **rules).advice(PullAnswer(PullStatus.FOUND, 1, 0, 9, 1, records))

    assert advice(first, slave_read=True, lag_max=10_000) == SLAVE
    assert advice(last, slave_read=True, lag_max=10_000) == MASTER
    assert advice(first, slave_read=False, lag_max=10_000) == MASTER
    assert advice(b"", slave_read=True, lag_max=0) == MASTER
    await store.close()


def test_the_ratio_is_of_the_machines_memory() -> None:
    assert lag_max(40, lambda: 1_000) == 400
    assert lag_max(40) > 1 << 20
