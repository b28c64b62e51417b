"""Where a service's metrics are, as its settings and its address say."""

import pytest

from tandemmq.admin.bundle.bundle import is_secret
from tandemmq.admin.bundle.metrics_pages import NoPage, metrics_address


@pytest.mark.parametrize(
    ("address", "settings", "found"),
    [
        ("127.0.0.1:8081", {"metricsHost": "127.0.0.1", "metricsPort": "9101"}, ("127.0.0.1", 9101)),
        ("store-a:8081", {"metricsHost": "0.0.0.0", "metricsPort": "9101"}, ("store-a", 9101)),
        ("[::1]:8081", {"metricsHost": "[::]", "metricsPort": "9101"}, ("::1", 9101)),
        ("store-a:8081", {"metricsHost": "10.0.0.7", "metricsPort": "9101"}, ("10.0.0.7", 9101)),
    ],
)
def test_it_can_be_reached(address: str, settings: dict[str, str], found: tuple[str, int]) -> None:
    assert metrics_address(address, settings) == found


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"metricsHost": "127.0.0.1", "metricsPort": "9101"}, "own machine only"),
        ({"metricsHost": "0.0.0.0", "metricsPort": "0"}, "metricsPort is 0"),
        ({"metricsEnable": "false", "metricsPort": "9101"}, "metricsEnable is false"),
    ],
)
def test_it_cannot(settings: dict[str, str], why: str) -> None:
    with pytest.raises(NoPage, match=why):
        metrics_address("store-a:8081", settings)


def test_a_path_of_a_secret_is_none() -> None:
    assert [is_secret(name) for name in ("secretKey", "dbPassword", "accessToken")] == [True] * 3
    assert [is_secret(name) for name in ("serviceSecretFile", "tlsServerKeyPath", "brokerName")] == [False] * 3
