"""The pauses between attempts."""

from tandemmq.common.calling.backoff import Backoff


def test_pauses_double_and_chance_takes_at_most_half() -> None:
    longest = Backoff(0.1, 1.0, uniform=lambda low, high: high)
    fresh = [longest.fresh]
    assert [longest.pause() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    fresh.append(longest.fresh)
    longest.reset()
    assert [*fresh, longest.fresh] == [True, False, True]
    assert longest.pause() == 0.1
    shortest = Backoff(0.1, 1.0, uniform=lambda low, high: low)
    assert [shortest.pause() for _ in range(3)] == [0.05, 0.1, 0.2]
