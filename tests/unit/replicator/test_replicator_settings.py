"""The replicator's settings: defaults, what is refused, and where a master's replicator is looked for."""

from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.settings.settings_errors import BadSetting, SettingsError
from tandemmq.replicator.frames import MAX_BODY_SIZE
from tandemmq.replicator.master.master import replica_rules, transfer_rules
from tandemmq.replicator.settings import ReplicatorSettings, SlaveAck, load_settings


def made(**overrides: Any) -> ReplicatorSettings:
    return load_settings(environment={}, overrides=overrides)


def test_defaults_are_rocketmqs_but_for_what_is_said() -> None:
    settings = made()
    assert (settings.ha_listen_port, settings.grpc_port, settings.metrics_port) == (10912, 8084, 9102)
    assert (settings.ha_send_heartbeat_interval, settings.ha_housekeeping_interval) == (5_000, 20_000)
    assert settings.ha_transfer_batch_size == 262_144
    assert settings.in_sync_replicas == 2
    assert settings.ha_slave_ack is SlaveAck.PAGE_CACHE
    assert settings.ha_listen_host == "127.0.0.1"


def test_profiles_and_a_file(tmp_path: Path) -> None:
    assert made().store_path_root_dir == Path("data")
    file = tmp_path / "broker.conf"
    file.write_text("haListenPort=20912\nbrokerRole=SYNC_MASTER\nflushDiskType=SYNC_FLUSH\n")
    settings = load_settings(file, environment={})
    assert settings.ha_listen_port == 20_912
    assert settings.store_path_root_dir == Path("~/store").expanduser()
    with pytest.raises(BadSetting, match="profile"):
        load_settings(profile="large", environment={})


@pytest.mark.parametrize(
    "overrides",
    [
        {"ha_transfer_batch_size": MAX_BODY_SIZE + 1},
        {"ha_transfer_batch_size": 0},
        {"store_address": "localhost"},
        {"ha_master_address": "10.0.0.1:0"},
        {"ha_allowed_peers": "10.0.0.0/8; example.org"},
        {"ha_housekeeping_interval": 5_000},
        {"ha_reconnect_min": 6_000},
        {"min_in_sync_replicas": 3},
    ],
)
def test_what_cannot_work_is_refused(overrides: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        made(**overrides)


@pytest.mark.parametrize(
    ("ha", "grpc", "found"),
    [
        ("10.0.0.1:10912", None, "10.0.0.1:8084"),
        ("[fe80::1]:10912", None, "[fe80::1]:8084"),
        ("master.example:10912", "other.example:9000", "other.example:9000"),
    ],
)
def test_where_the_masters_replicator_is(ha: str, grpc: str | None, found: str) -> None:
    settings = made(ha_master_address=ha, ha_master_replicator_address=grpc)
    assert settings.master_replicator_address(ha) == found
    assert settings.master_replicator_address("10.9.9.9:10912") == "10.9.9.9:8084"


def test_rules_of_settings() -> None:
    settings = made(ha_send_heartbeat_interval=100, ha_housekeeping_interval=500, max_ha_transfer_byte_in_second=7)
    rules = transfer_rules(settings)
    assert (rules.heartbeat, rules.housekeeping, rules.bytes_per_second) == (0.1, 0.5, None)
    assert transfer_rules(made(ha_flow_control_enable=True, max_ha_transfer_byte_in_second=7)).bytes_per_second == 7
    assert replica_rules(made(in_sync_replicas=3, enable_auto_in_sync_replicas=True)).needed(0) == 0
