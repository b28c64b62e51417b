"""Handles that name their broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.gateway.errors import UnknownToken
from tandemmq.gateway.tokens import Tokens, tag_of


@given(st.text(min_size=1, max_size=200))
def test_a_token_is_read_as_it_was_made_by_another_gateway_too(own: str) -> None:
    made = Tokens(["a", "b"]).made("b", own)
    assert Tokens(["b", "c", "a"]).read(made) == ("b", own)


@pytest.mark.parametrize(
    "text", ["", ".", "handle", "handle.", ".handle", f"{tag_of('other')}.handle", tag_of("a"), "a.b.c"]
)
def test_what_names_no_broker_is_refused(text: str) -> None:
    tokens = Tokens(["a"])
    with pytest.raises(UnknownToken):
        tokens.read(text)
    assert not tokens.names_broker(text)


def test_a_tag_stays_what_it_is() -> None:
    """Clients hold handles while gateways are upgraded."""
    assert tag_of("broker-a") == "EknYUm94"
