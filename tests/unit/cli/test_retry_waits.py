"""Waits between deliveries: what the option takes is what the broker reads, and is shown as it was written."""

import json

import pytest

from tandemmq.cli.nouns.retry_waits import BadRetryWaits, as_other_json, in_words
from tandemmq.cli.talk.failures import WrongUsage
from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig
from tandemmq.store.delivery.retries.retry_policy import policy_of


def waits(text: str) -> tuple[int, ...]:
    """As the broker takes them."""
    return policy_of(json.loads(as_other_json(text))["groupRetryPolicy"])


def shown(other_json: str) -> str:
    return in_words(SubscriptionGroupConfig(other_json=other_json))


def test_the_broker_waits_as_the_option_says() -> None:
    assert waits("10s,1m, 1.5h") == (10_000, 60_000, 5_400_000)
    assert waits("5s..30s") == (5_000, 10_000, 20_000, 30_000)
    assert waits("1s..1m*10") == (1_000, 10_000, 60_000)
    assert waits("250ms") == (250,)
    assert waits("default") == ()


@pytest.mark.parametrize("text", ["10s,1m,5m", "250ms", "5s..2h*2", "1s..1m*10", "90s,2d"])
def test_it_is_shown_as_it_was_written(text: str) -> None:
    assert shown(as_other_json(text)) == text


def test_what_is_no_policy_is_told_and_no_error() -> None:
    assert shown("") == shown('{"groupRetryPolicy": null}') == shown(as_other_json("default")) == ""
    for odd in ("[]", "no JSON", '{"groupRetryPolicy": 7}', '{"groupRetryPolicy": {"customizedRetryPolicy": [1]}}'):
        assert shown(odd) == "not understood: the default is used"


@pytest.mark.parametrize("text", ["", "soon", "10", "10s,,1m", "10s..", "..5s", "5s..2h*", "41d", "-1s"])
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(WrongUsage):
        as_other_json(text)


def test_waits_that_do_not_grow_are_refused() -> None:
    for text in ("2h..5s", "1s..2s*0", "0s..1m", ",".join(["1s"] * 1001)):
        with pytest.raises(BadRetryWaits):
            as_other_json(text)
