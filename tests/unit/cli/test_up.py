"""What `tandem up` says before it starts anything."""

import pytest

from tandemmq.cli.processes.up import where_admin_is


def test_it_is_said_where_clients_are_let_in_and_admin_is_not() -> None:
    told = where_admin_is("0.0.0.0", "127.0.0.1")
    assert told.startswith("Clients are served on 0.0.0.0, admin and console on 127.0.0.1 only")
    assert "accessFile" in told


@pytest.mark.parametrize(
    ("host", "admin_host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("127.0.0.1", "0.0.0.0"),  # --set grpcHost=0.0.0.0: both are served there
    ],
)
def test_nothing_is_said_where_both_are_reached_alike(host: str, admin_host: str) -> None:
    assert where_admin_is(host, admin_host) == ""
