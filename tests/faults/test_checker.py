"""The checker itself: an honest history passes, and for each of its eleven points a forged one does not."""

from collections.abc import Callable

import pytest

from tests.faults.checker import Ack, Audit, Checker, LogRecord, Queue, QueueView

QUEUE: Queue = ("orders", 0)
SIZE = 100


def place(number: int) -> int:
    return number * SIZE


def ack(number: int) -> Ack:
    return Ack(f"c1-p0-{number}", "c1-p0", number, QUEUE, number, place(number), SIZE, 1000 + number)


def record(number: int) -> LogRecord:
    return LogRecord(place(number), SIZE, 1000 + number, QUEUE, number, f"c1-p0-{number}", "c1-p0", number)


def honest(count: int = 5) -> tuple[Checker, Audit]:
    checker = Checker()
    checker.begin(1)
    for number in range(count):
        checker.ack(ack(number))
    view = QueueView(0, count, {number: (f"c1-p0-{number}", place(number), SIZE) for number in range(count)})
    return checker, Audit(0, place(count), [record(number) for number in range(count)], {QUEUE: view})


def test_an_honest_history_passes() -> None:
    checker, audit = honest()
    checker.poll("g", QUEUE, 0, [(0, "c1-p0-0"), (1, "c1-p0-1")])
    checker.poll("g", QUEUE, 2, [(2, "c1-p0-2")])
    checker.audit(audit)
    assert checker.problems == []
    assert checker.acked_total == 5


def test_expired_messages_are_no_loss() -> None:
    checker, audit = honest()
    audit.log_min = place(2)
    del audit.records[:2]
    audit.queues[QUEUE] = QueueView(2, 5, {at: audit.queues[QUEUE].messages[at] for at in (2, 3, 4)})
    checker.audit(audit)
    assert checker.problems == []
    assert checker.expired_total == 2


def read_what_failed(checker: Checker, audit: Audit) -> None:
    checker.fail("c1-p0-9")
    checker.poll("g", QUEUE, 0, [(5, "c1-p0-9")])


def read_what_nobody_sent(checker: Checker, audit: Audit) -> None:
    checker.poll("g", QUEUE, 0, [(5, "")])


def two_at_one_offset(checker: Checker, audit: Audit) -> None:
    checker.poll("g", QUEUE, 0, [(3, "c1-p1-0")])


def lose_one_in_the_middle(checker: Checker, audit: Audit) -> None:
    del audit.queues[QUEUE].messages[2]
    checker.audit(audit)


def one_at_two_offsets(checker: Checker, audit: Audit) -> None:
    checker.poll("g", QUEUE, 0, [(7, "c1-p0-3")])


def poll_backwards(checker: Checker, audit: Audit) -> None:
    checker.poll("g", QUEUE, 0, [(3, "c1-p0-3")])
    checker.poll("g", QUEUE, 0, [(2, "c1-p0-2")])


def poll_with_a_skip(checker: Checker, audit: Audit) -> None:
    checker.poll("g", QUEUE, 0, [(0, "c1-p0-0")])
    checker.poll("g", QUEUE, 0, [(2, "c1-p0-2")])


def turn_the_order_round(checker: Checker, audit: Audit) -> None:
    first, second = audit.records[1], audit.records[2]
    audit.records[1] = first._replace(value=second.value, number=second.number)
    audit.records[2] = second._replace(value=first.value, number=first.number)
    checker.audit(audit)


def lose_the_last(checker: Checker, audit: Audit) -> None:
    del audit.queues[QUEUE].messages[4]
    checker.audit(audit)


def change_a_byte(checker: Checker, audit: Audit) -> None:
    audit.records[1] = audit.records[1]._replace(crc=7)
    checker.audit(audit)


def leave_a_unit_without_a_record(checker: Checker, audit: Audit) -> None:
    audit.queues[QUEUE].messages[5] = ("c1-p2-0", place(5), SIZE)
    checker.audit(audit)


def leave_a_record_without_a_unit(checker: Checker, audit: Audit) -> None:
    audit.records.append(record(5))
    checker.audit(audit)


def forget_a_key(checker: Checker, audit: Audit) -> None:
    audit.missing_keys.append("k1")
    checker.audit(audit)


def move_the_first_offset_back(checker: Checker, audit: Audit) -> None:
    checker.offsets(place(1), place(5), {QUEUE: (1, 5)})
    checker.audit(audit)


def move_the_end_back(checker: Checker, audit: Audit) -> None:
    checker.offsets(0, place(6), {QUEUE: (0, 6)})
    checker.audit(audit)


def bring_a_deleted_message_back(checker: Checker, audit: Audit) -> None:
    checker.audit(audit)
    checker.begin(2)
    checker.audit(audit)
    assert not checker.problems
    checker.begin(3)
    audit.records.append(record(5))
    audit.queues[QUEUE].messages[5] = ("c1-p0-5", place(5), SIZE)
    audit.queues[QUEUE].max_offset = 6
    audit.log_max = place(6)
    checker.audit(audit)


@pytest.mark.parametrize(
    ("point", "forge"),
    [
        (1, read_what_failed),
        (1, read_what_nobody_sent),
        (2, two_at_one_offset),
        (3, lose_one_in_the_middle),
        (4, one_at_two_offsets),
        (5, poll_backwards),
        (5, poll_with_a_skip),
        (6, turn_the_order_round),
        (7, lose_the_last),
        (8, change_a_byte),
        (9, leave_a_unit_without_a_record),
        (9, leave_a_record_without_a_unit),
        (10, forget_a_key),
        (11, move_the_first_offset_back),
        (11, move_the_end_back),
        (11, bring_a_deleted_message_back),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_a_forged_history_is_rejected(point: int, forge: Callable[[Checker, Audit], None]) -> None:
    checker, audit = honest()
    forge(checker, audit)
    assert point in {problem.point for problem in checker.problems}
