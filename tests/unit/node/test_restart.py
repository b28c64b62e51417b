"""When a service is started again: soon, then later, then no more; a healthy life forgives."""

import pytest

from tandemmq.node.restart import RestartPolicy, RestartRules

RULES = RestartRules(first_pause=1.0, longest_pause=4.0, healthy_after=10.0, deaths_in_a_row=5)


def test_pauses_double_up_to_the_longest_and_then_it_is_given_up() -> None:
    policy = RestartPolicy(RULES)
    assert [policy.died(0.0) for _ in range(6)] == [1.0, 2.0, 4.0, 4.0, 4.0, None]
    assert policy.deaths == 6


@pytest.mark.parametrize(("served", "pause"), [(9.9, 4.0), (10.0, 1.0), (1e6, 1.0)])
def test_a_healthy_life_forgives_earlier_deaths(served: float, pause: float) -> None:
    policy = RestartPolicy(RULES)
    policy.died(0.0)
    policy.died(0.5)
    assert policy.died(served) == pause


def test_many_deaths_with_healthy_lives_between_are_never_given_up() -> None:
    policy = RestartPolicy(RULES)
    assert {policy.died(11.0) for _ in range(100)} == {1.0}


def test_the_rules_give_a_service_a_minute() -> None:
    """A disk that is full, or a port in use, is often free again after some seconds."""
    rules = RestartRules()
    policy = RestartPolicy(rules)
    pauses = [policy.died(0.0) or 0.0 for _ in range(rules.deaths_in_a_row)]
    assert 30 < sum(pauses) < 90
