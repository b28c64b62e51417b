"""The store's settings: a broker.conf as RocketMQ users have it, the profiles, and what is refused."""

import ast
import inspect
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from tandemmq.common.settings.settings_errors import BadSetting, UnknownSetting
from tandemmq.store.broker.group_transfer import ReplicationRules
from tandemmq.store.broker.postponing import DelayRules
from tandemmq.store.broker.send import SendRules
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.delivery.transactions.checking import TransactionRules
from tandemmq.store.fronts.native.limits import ServiceLimits
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.settings import FlushDiskType, StoreSettings, load_settings

BROKER_CONF = """
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
brokerIP1 = 10.1.2.3
listenPort = 10911
namesrvAddr = 127.0.0.1:9876
deleteWhen = 04;16
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = SYNC_FLUSH
storePathRootDir = /data/store
storePathCommitLog = /data/store/commitlog
mappedFileSizeCommitLog = 1073741824
messageDelayLevel = 1s 5s 1m
"""


def load(text: str, tmp_path: Path) -> StoreSettings:
    file = tmp_path / "broker.conf"
    file.write_text(text)
    return load_settings(file, environment={})


def test_a_broker_conf_of_rocketmq(tmp_path: Path) -> None:
    settings = load(BROKER_CONF, tmp_path)
    config = settings.store_config()
    assert settings.flush_disk_type is FlushDiskType.SYNC_FLUSH
    assert config.sync_flush
    assert config.store_path_root_dir == Path("/data/store")
    assert (config.delete_when, config.file_reserved_time) == ((4, 16), 48)
    assert config.message_delay_levels == (1_000, 5_000, 60_000)
    assert config.max_index_num == 20_000_000, "RocketMQ's own defaults"
    assert str(settings.store_host()) == "10.1.2.3:10911"
    assert settings.namesrv_addr == "127.0.0.1:9876"
    assert settings.ignored == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("brokerRole=SLAVE", "more for a slave"),
        ("brokerId=1", "0 for a master"),
        ("storePathCommitLog=/elsewhere", "commitlog"),
        ("messageDelayLevel=1x", "levels"),
        ("messageDelayLevel=", "at least one"),
        ("deleteWhen=24", "0 to 23"),
        ("brokerIP1=here", "IP address"),
        ("mappedFileSizeCommitLog=5000", "4096"),
        ("maxMessageSize=100000000", "grpcMaxMessageSize"),
        ("maxPullBytes=16000000", "maxPullBytes"),
        ("diskMaxUsedSpaceRatio=99", "10 to 95"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        load(line, tmp_path)


def test_a_misspelt_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownSetting) as raised:
        load("flushDiskTyp=SYNC_FLUSH", tmp_path)
    assert "flushDiskType" in raised.value.explain()


def test_what_the_log_layer_is_told_has_its_defaults_in_one_place() -> None:
    settings = load_settings(profile="server", environment={})
    assert settings.store_config() == StoreConfig(settings.store_path_root_dir)
    defaults = {field.name for field in fields(StoreConfig) if field.default is not MISSING}
    tree = ast.parse(inspect.getsource(StoreSettings))
    again = [
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in defaults
        and isinstance(node.value, ast.Call) and "_LOG." not in ast.unparse(node.value.args[0])
    ]  # fmt: skip
    assert again == []


def test_the_embedded_profile_is_small() -> None:
    settings = load_settings(environment={})
    config = settings.store_config()
    assert config.store_path_root_dir == Path("data")
    index_file = 40 + 4 * config.max_hash_slot_num + 20 * config.max_index_num
    assert 2 * config.mapped_file_size_commit_log + index_file < 200 * 2**20
    assert load_settings(environment={"TANDEM_PROFILE": "server"}).mapped_file_size_commit_log == 1 << 30
    with pytest.raises(BadSetting, match="server, embedded"):
        load_settings(profile="huge", environment={})


def test_the_address_in_records_is_never_a_wildcard() -> None:
    for host in ("0.0.0.0", "[::]", "localhost"):
        address = load_settings(environment={}, overrides={"grpc_host": host}).store_host()
        assert not address.ip.is_unspecified


def test_names_are_rocketmqs_to_the_letter(tmp_path: Path) -> None:
    """RocketMQ writes CRC in capitals; a broker.conf that uses its checksums must be understood."""
    text = "enabledAppendPropCRC = true\nforceVerifyPropCRC = true\ncheckCRCOnRecover = false\n"
    config = load(text, tmp_path).store_config()
    assert (config.enabled_append_prop_crc, config.force_verify_prop_crc, config.check_crc_on_recover) == (
        True,
        True,
        False,
    )


def test_tuning_of_the_java_broker_is_accepted_and_does_nothing(tmp_path: Path) -> None:
    settings = load("waitTimeMillsInSendQueue = 400\ntransientStorePoolSize = 5\nslaveReadEnable = true\n", tmp_path)
    assert settings.store_config() == load("", tmp_path).store_config()


def test_what_changes_files_or_safety_stays_an_error(tmp_path: Path) -> None:
    for line in ("enableDLegerCommitLog = true", "storeType = defaultRocksDB", "aclEnable = true"):
        with pytest.raises(UnknownSetting):
            load(line, tmp_path)


def test_no_name_is_both_a_setting_and_without_effect() -> None:
    names = {one.name for one in load_settings(environment={}).describe()}
    assert not names & set(StoreSettings.without_effect)


def test_each_layer_has_the_defaults_of_the_settings() -> None:
    """Layers have them too, for tests and tools that make their rules by hand: a new one must not be another."""
    settings = load_settings(profile="server", environment={})
    host, delays = settings.store_host(), settings.delay_rules()
    assert settings.store_config() == StoreConfig(settings.store_path_root_dir)
    assert settings.send_rules() == SendRules(host, delays=delays)
    assert delays == DelayRules(delays.levels_ms)
    assert settings.replication_rules() == ReplicationRules()
    assert settings.receive_rules() == ReceiveRules()
    assert settings.transaction_rules() == TransactionRules()
    assert settings.service_limits() == ServiceLimits(settings.service_limits().pull)
    assert settings.front_rules() == FrontRules()
    assert settings.remoting_rules() == RemotingRules(settings.broker_cluster_name, settings.broker_name, host)
