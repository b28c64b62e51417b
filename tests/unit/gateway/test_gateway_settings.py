"""How brokers are named."""

import pytest

from tandemmq.common.settings.settings_errors import SettingsError
from tandemmq.gateway.settings import GatewaySettings


def load(brokers: str) -> GatewaySettings:
    return GatewaySettings.load(environment={}, overrides={"brokers": brokers})


def test_a_broker_has_one_address_or_several() -> None:
    named = load("a=10.0.0.1:9081,[::1]:9081; b=host:1").named()
    assert named == {"a": ("10.0.0.1:9081", "[::1]:9081"), "b": ("host:1",)}


@pytest.mark.parametrize("text", ["a", "a=", "=h:1", "h:1", "a=h", "a=h:1;a=h:2", "a=h:1,b", "a=h:0"])
def test_what_names_no_broker_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="NAME=HOST:PORT"):
        load(text)
