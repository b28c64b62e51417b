"""Events tell everybody who listens, and nobody who has left."""

from tandemmq.store.log.event import Event


def test_all_listeners_are_told_in_order_until_they_leave() -> None:
    event, told = Event(), list[str]()
    end_first = event.listen(lambda: told.append("first"))
    event.listen(lambda: told.append("second"))
    event()
    end_first()
    end_first()
    event()
    assert told == ["first", "second", "second"]


def test_one_that_leaves_while_it_is_told_keeps_no_other_from_being_told() -> None:
    event, told = Event(), list[str]()

    def once() -> None:
        told.append("once")
        end()

    end = event.listen(once)
    event.listen(lambda: told.append("always"))
    event()
    event()
    assert told == ["once", "always", "always"]
