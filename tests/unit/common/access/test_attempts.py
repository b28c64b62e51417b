"""How often somebody may guess: by user and address, by address, and altogether."""

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.access.attempts import OF_ALL, PER_ADDRESS, PER_USER_AND_ADDRESS, AttemptBudgets, address_of


def failures(attempts: AttemptBudgets, user: str, address: str, now: float) -> int:
    """Guesses until one is not let through."""
    count = 0
    while not attempts.take(user, address, now):
        count += 1
    return count


def test_a_user_at_an_address_has_few_guesses_and_gets_them_back_with_time() -> None:
    attempts = AttemptBudgets()
    assert failures(attempts, "alice", "1.2.3.4", 0.0) == PER_USER_AND_ADDRESS.burst
    assert attempts.take("alice", "1.2.3.4", 0.0) == 1 / PER_USER_AND_ADDRESS.per_second
    assert attempts.take("alice", "1.2.3.4", 9.0) > 0
    assert attempts.take("alice", "1.2.3.4", 10.1) == 0
    assert failures(attempts, "alice", "1.2.3.4", 10_000.0) == PER_USER_AND_ADDRESS.burst


def test_elsewhere_the_same_user_still_gets_in() -> None:
    attempts = AttemptBudgets()
    failures(attempts, "alice", "1.2.3.4", 0.0)
    assert attempts.take("alice", "5.6.7.8", 0.0) == 0


def test_an_address_that_tries_many_names_is_held_up() -> None:
    attempts = AttemptBudgets()
    assert sum(not attempts.take(f"user{n}", "1.2.3.4", 0.0) for n in range(1000)) == PER_ADDRESS.burst


def test_many_addresses_together_are_held_up() -> None:
    attempts = AttemptBudgets()
    assert sum(not attempts.take("alice", f"10.0.{n // 250}.{n % 250}", 0.0) for n in range(1000)) == OF_ALL.burst


def test_who_is_right_uses_nothing_up() -> None:
    attempts = AttemptBudgets()
    for _ in range(1000):
        assert attempts.take("alice", "1.2.3.4", 0.0) == 0
        attempts.succeeded("alice", "1.2.3.4", 0.0)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.floats(0, 5)), max_size=400))
def test_in_any_time_no_more_than_the_budget_of_all_is_let_through(tries: list[tuple[int, int, float]]) -> None:
    attempts = AttemptBudgets()
    now, let_through = 0.0, 0
    for user, address, pause in tries:
        now += pause
        let_through += not attempts.take(f"u{user}", f"a{address}", now)
    assert let_through <= OF_ALL.burst + now * OF_ALL.per_second + 1


def test_what_is_kept_is_bounded() -> None:
    attempts = AttemptBudgets()
    for n in range(11_000):
        attempts.take(f"u{n}", f"a{n}", n * 1.0)
    assert len(attempts._left) <= 10_000
    failures(attempts, "alice", "1.2.3.4", 11_000.0)
    assert attempts.take("alice", "1.2.3.4", 11_000.0) > 0


def test_addresses() -> None:
    assert address_of("ipv4:1.2.3.4:5678") == "1.2.3.4"
    assert address_of("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:5678") == "2001:db8:1:2::"
    assert address_of("ipv6:[2001:db8:1:2::9]:1") == "2001:db8:1:2::"
    assert address_of("ipv6:%5Bfe80::1%25eth0%5D:1") == "fe80::"
    assert address_of("unix:") == "unix:"
    assert address_of("ipv6:nonsense") == ""
