"""One broker.conf for all services of a node: what is another service's passes, what nobody has is an error."""

import dataclasses
from pathlib import Path

import pytest

from tandemmq.admin.settings import AdminSettings
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.service_settings import SERVICE_SETTINGS, WITHOUT_EFFECT
from tandemmq.common.settings.settings import UnknownSetting
from tandemmq.gateway.settings import GatewaySettings
from tandemmq.metasync.settings import MetasyncSettings
from tandemmq.naming.settings import NamingSettings
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.settings import StoreSettings

CLASSES: dict[str, type[ServerSettings]] = {
    "store": StoreSettings,
    "replicator": ReplicatorSettings,
    "gateway": GatewaySettings,
    "metasync": MetasyncSettings,
    "admin": AdminSettings,
    "names": NamingSettings,
}

SHARED = """\
brokerName=node-a
namesrvAddr=10.0.0.1:9876
flushDiskType=SYNC_FLUSH
haMasterAddress=10.0.0.1:10912
metasyncMasterAddress=10.0.0.1:8082
"""


def own_names(kind: type[ServerSettings]) -> set[str]:
    shared = {found.name for found in dataclasses.fields(ServerSettings)}
    return {one.name for one in kind().describe() if one.attribute not in shared}


@pytest.mark.parametrize("service", CLASSES)
def test_the_names_are_those_of_the_class(service: str) -> None:
    assert own_names(CLASSES[service]) == SERVICE_SETTINGS[service]


def test_what_has_no_effect_is_what_the_store_says() -> None:
    assert set(StoreSettings.without_effect) == WITHOUT_EFFECT


def test_no_service_calls_without_effect_what_another_one_has() -> None:
    for kind in CLASSES.values():
        assert not set(kind.without_effect) & set().union(*SERVICE_SETTINGS.values()), kind.__name__


@pytest.mark.parametrize("kind", CLASSES.values())
def test_every_variable_can_be_told_from_its_name(kind: type[ServerSettings]) -> None:
    from tandemmq.common.settings.settings import variable_of

    assert [one.environment for one in kind().describe()] == [variable_of(one.name) for one in kind().describe()]


@pytest.mark.parametrize("kind", CLASSES.values())
def test_one_file_serves_all(kind: type[ServerSettings], tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(SHARED)
    loaded = kind.load(file, environment={"TANDEM_HA_LISTEN_PORT": "1", "TANDEM_CHECK_CRC_ON_RECOVER": "no"})
    for name, value in (("brokerName", "node-a"), ("haMasterAddress", "10.0.0.1:10912")):
        found = [one.value for one in loaded.describe() if one.name == name]
        assert found in ([], [value])
    assert not loaded.ignored


@pytest.mark.parametrize("kind", CLASSES.values())
@pytest.mark.parametrize(
    ("wrong", "right"), [("haMasterAdress", "haMasterAddress"), ("flushDisktype", "flushDiskType")]
)
def test_a_misspelt_key_is_an_error_in_every_service(
    kind: type[ServerSettings], wrong: str, right: str, tmp_path: Path
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"{wrong}=x\n")
    with pytest.raises(UnknownSetting) as raised:
        kind.load(file, environment={})
    assert raised.value.remedy == f"did you mean {right}?"


def test_a_misspelt_variable_names_the_nearest_of_any_service() -> None:
    with pytest.raises(UnknownSetting) as raised:
        StoreSettings.load(environment={"TANDEM_HA_LISTENPORT": "1"})
    assert raised.value.remedy == "did you mean TANDEM_HA_LISTEN_PORT?"


def test_a_setting_that_was_renamed_is_refused_with_its_present_name(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("rocketmq5DeduplicationWindow=1000\n")
    with pytest.raises(UnknownSetting) as raised:
        StoreSettings.load(file, environment={})
    assert raised.value.remedy == "it is called repeatedSendWindow now"
    with pytest.raises(UnknownSetting) as raised:
        StoreSettings.load(environment={"TANDEM_ROCKETMQ5_DEDUPLICATION_WINDOW": "1"})
    assert raised.value.remedy == "it is called TANDEM_REPEATED_SEND_WINDOW now"


def test_an_option_must_be_the_services_own() -> None:
    with pytest.raises(UnknownSetting):
        StoreSettings.load(environment={}, overrides={"haTransferBatchSize": "1"})
