"""Locks of queues: whose they are, and how they end."""

from tandemmq.store.delivery.members.queue_locks import LEASE_SECONDS, QueueLocks

ONE, TWO = ("topic", 0), ("topic", 1)


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_lock_is_one_clients_until_it_gives_it_back() -> None:
    locks = QueueLocks(Time())
    assert locks.lock("g", "a", [ONE]) == [ONE]
    assert locks.lock("g", "b", [ONE, TWO]) == [TWO]
    assert locks.lock("other", "b", [ONE]) == [ONE], "another group's"
    locks.unlock("g", "b", [ONE])
    assert locks.holder("g", ONE) == "a"
    locks.unlock("g", "a", [ONE])
    assert locks.holder("g", ONE) is None
    assert locks.lock("g", "b", [ONE]) == [ONE]


def test_a_lock_that_is_not_renewed_ends() -> None:
    time = Time()
    locks = QueueLocks(time)
    locks.lock("g", "a", [ONE, TWO])
    time.now = LEASE_SECONDS - 1
    locks.lock("g", "a", [ONE])
    time.now = LEASE_SECONDS + 1
    assert (locks.holder("g", ONE), locks.holder("g", TWO)) == ("a", None)
    assert locks.lock("g", "b", [ONE, TWO]) == [TWO]
    assert locks.any("g")
    time.now = 3 * LEASE_SECONDS
    assert not locks.any("g")
    locks.unlock("g", "b", [TWO])
    assert locks.lock("g", "c", [ONE, TWO]) == [ONE, TWO]
