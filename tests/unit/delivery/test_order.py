"""Order by message group: only the first of a line goes, with those directly behind it."""

from tandemmq.store.delivery.ledger.order import MessageGroups


def groups(*messages: tuple[int, int, str]) -> MessageGroups:
    made = MessageGroups()
    for queue, offset, key in messages:
        made.add((queue, offset), key)
    return made


def test_only_the_first_of_a_line_may_go() -> None:
    lines = groups((0, 5, "a"), (0, 6, "a"), (0, 7, "b"))
    assert lines.may_go((0, 5))
    assert not lines.may_go((0, 6))
    assert lines.may_go((0, 7))
    assert lines.may_go((0, 6), {(0, 5)})


def test_what_is_dealt_with_lets_the_next_go() -> None:
    lines = groups((0, 5, "a"), (0, 6, "a"), (0, 7, "a"))
    lines.hold((0, 6))
    lines.hold((0, 7))
    assert lines.dealt([(0, 5)]) == ([(0, 6)], [])
    assert lines.may_go((0, 6))
    assert len(lines.held[0]) == 1
    assert lines.dealt([(0, 7)]) == ([], []), "one in the middle was dealt with: the first is as it was"
    assert lines.dealt([(0, 6)]) == ([], [])
    assert len(lines) == 0


def test_a_line_is_one_over_all_queues() -> None:
    lines = groups((2, 9, "a"), (0, 1, "a"))
    lines.hold((0, 1))
    assert not lines.may_go((0, 1), {(2, 9)})
    assert lines.dealt([(2, 9)]) == ([(0, 1)], [])
    assert lines.may_go((0, 1))


def test_what_many_acknowledgements_settle_is_given_once() -> None:
    lines = groups(*((0, offset, "ab"[offset % 2]) for offset in range(200)))
    assert lines.acknowledge((0, offset) for offset in range(2, 200)) == []
    settled = lines.acknowledge([(0, 0), (0, 0)])
    assert settled == [(0, offset) for offset in range(0, 200, 2)]
    assert lines.dealt(settled) == ([], [])
    assert lines.dealt([(0, 1)]) == ([], [(0, offset) for offset in range(3, 200, 2)])


def test_what_comes_late_takes_its_place() -> None:
    lines = groups((0, 9, "a"), (0, 5, "a"), (0, 7, "a"), (0, 7, "a"))
    assert lines.may_go((0, 7), {(0, 5)})
    assert not lines.may_go((0, 9), {(0, 5)})
    assert len(lines) == 3
