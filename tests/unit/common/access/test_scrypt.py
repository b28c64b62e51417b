"""Secrets as text: what fits, what is refused, and which costs a server takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemmq.common.access.credentials import Credentials, parse_basic
from tandemmq.common.access.scrypt import CHOSEN, GENERATED, Costs, fits, generate, hash_secret, is_hash
from tandemmq.common.identity.credentials import authorization

CHEAP = Costs(2, 1, 1)


@settings(max_examples=50)
@given(st.text(max_size=40), st.text(max_size=40))
def test_a_secret_fits_its_own_hash_alone(secret: str, other: str) -> None:
    text = hash_secret(secret, CHEAP)
    assert is_hash(text)
    assert secret not in text or len(secret) < 20
    assert fits(secret, text)
    assert fits(other, text) == (other == secret)


def test_two_hashes_of_one_secret_differ() -> None:
    assert hash_secret("x", CHEAP) != hash_secret("x", CHEAP)


def test_the_costs_stand_in_the_text() -> None:
    assert hash_secret("x", GENERATED).startswith("scrypt:n=1024,r=8,p=1:")
    text = hash_secret("x", CHOSEN)
    assert text.startswith("scrypt:n=16384,r=8,p=5:")
    assert fits("x", text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "scrypt:",
        "scrypt:n=16384,r=8,p=5::",
        "scrypt:n=1000,r=8,p=1:AAAAAAAAAAAAAAAAAAAAAA==:AAAAAAAAAAAAAAAAAAAAAA==",  # no power of two
        "scrypt:n=0,r=8,p=1:AAAAAAAAAAAAAAAAAAAAAA==:AAAAAAAAAAAAAAAAAAAAAA==",
        "scrypt:n=1024,r=0,p=1:AAAAAAAAAAAAAAAAAAAAAA==:AAAAAAAAAAAAAAAAAAAAAA==",
        "scrypt:n=1024,r=8,p=1:AAAA:AAAAAAAAAAAAAAAAAAAAAA==",  # salt too short
        "scrypt:n=1024,r=8,p=1:AAAAAAAAAAAAAAAAAAAAAA==:AAAA",  # hash too short
        "scrypt:n=1024,r=8,p=1:AAA:AAAAAAAAAAAAAAAAAAAAAA==",  # no base64
        "scrypt:n=1048576,r=8,p=1:AAAAAAAAAAAAAAAAAAAAAA==:AAAAAAAAAAAAAAAAAAAAAA==",  # 1 GiB of memory
        "scrypt:n=16384,r=8,p=999:AAAAAAAAAAAAAAAAAAAAAA==:AAAAAAAAAAAAAAAAAAAAAA==",  # minutes
        pytest.param(hash_secret("x", CHEAP) + "\n", id="a line feed behind it"),  # its salt is random
    ],
)
def test_what_is_no_hash(text: str) -> None:
    assert not is_hash(text)
    assert not fits("x", text)
    assert not fits("", text)


def test_generated_secrets_are_long_and_differ() -> None:
    made = {generate() for _ in range(50)}
    assert len(made) == 50
    assert all(len(one) == 32 for one in made)


@given(st.text("abc.@-é", min_size=1, max_size=20), st.text(max_size=60))
def test_a_header_says_user_and_secret(user: str, secret: str) -> None:
    _, header = authorization(user, secret)
    assert parse_basic(header) == Credentials(user, secret)
    assert parse_basic(header.replace("Basic", "basic")) == Credentials(user, secret)


@pytest.mark.parametrize(
    "header",
    [
        *(
            "",
            "Basic",
            "Basic ",
            "Bearer YTpi",
            "Basic  YTpi",
            "Basic YTpi ",
            "Basic YTp=",
            "Basic YT.pi",
            "Basic w7w=",
        ),
        "Basic YQ==",  # no colon
        "Basic /zo=",  # no UTF-8
        "Basic YTpiY=",  # padding
        "Basic YTpiZB==",  # bits that mean nothing: another header for the same pair
        "Basic " + "YTpi" * 1000,
        authorization("a" * 65, "b")[1],
    ],
)
def test_what_is_no_header(header: str) -> None:
    assert parse_basic(header) is None


@given(st.text())
def test_any_text_as_a_header_is_read_without_an_error(header: str) -> None:
    for text in (header, "Basic " + header):
        found = parse_basic(text)
        assert found is None or authorization(*found)[1] == text
