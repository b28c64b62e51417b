"""What requests of delivery.proto mean, and what is said of those that mean nothing."""

import pytest

from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.delivery.errors import BadDelivery
from tandemmq.store.delivery.port import FilterKind, Subscription
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules, check_wish
from tandemmq.store.fronts.native.delivery_requests import check_count, subscription, wish
from tandemmq.store.fronts.native.limits import PullLimits


@pytest.mark.parametrize("kind", [delivery_pb2.TAG, delivery_pb2.SQL92])
def test_an_empty_expression_is_for_all_messages_whatever_its_kind(kind: delivery_pb2.FilterKind.ValueType) -> None:
    assert subscription(delivery_pb2.Filter(kind=kind)) == Subscription("*", FilterKind.TAG)


def test_a_refusal_says_how_many_messages_were_asked_for() -> None:
    """Not the limit of pulls, to which they were cut."""
    asked = wish(delivery_pb2.ReceiveRequest(group="workers", topic="orders", max_messages=1_000_000), PULLS)
    with pytest.raises(BadDelivery, match="1 to 1,024 messages: 1,000,000 were asked for"):
        check_wish(asked, ReceiveRules())


def test_who_names_no_handle_is_not_told_to_make_several_requests() -> None:
    with pytest.raises(BadDelivery) as refused:
        check_count("handles", [], 1_024)
    assert refused.value.remedy == "Name the handles that are meant."


PULLS = PullLimits(32_768, 1 << 20)
