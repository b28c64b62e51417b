"""Consumer groups in RocketMQ's file, and how long they wait between deliveries."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.broker.errors import UnreadableTable
from tandemmq.store.delivery.members.groups import LEVELS_AS_POLICY, GroupConfig, LocalGroupTable
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk


def opened(root: Path) -> LocalGroupTable:
    return LocalGroupTable(root, LocalDisk(), SystemClock())


def file_of(root: Path) -> Path:
    path = root / "config" / "subscriptionGroup.json"
    path.parent.mkdir(exist_ok=True)
    return path


async def test_a_group_is_there_when_the_store_opens_again(tmp_path: Path) -> None:
    mine = GroupConfig("mine", retry_max_times=2, consume_message_orderly=True, attributes={"a": "b"})
    table = opened(tmp_path)
    await table.add([mine, GroupConfig("other")])
    again = opened(tmp_path)
    assert again.get("mine") == mine
    assert {one.name for one in again.all()} == {"mine", "other"}
    entry = json.loads(file_of(tmp_path).read_bytes())["subscriptionGroupTable"]["mine"]
    assert entry == {
        "attributes": {"a": "b"},
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeMessageOrderly": True,
        "consumeTimeoutMinute": 15,
        "groupName": "mine",
        "groupRetryPolicy": {"type": "CUSTOMIZED"},
        "groupSysFlag": 0,
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": 2,
        "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1,
    }


async def test_what_java_wrote_is_read_and_kept(tmp_path: Path) -> None:
    java = {
        "brokerId": 0, "consumeBroadcastEnable": True, "consumeEnable": False, "consumeFromMinEnable": True,
        "groupName": "theirs", "notifyConsumerIdsChangedEnable": True, "retryMaxTimes": 5, "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1, "groupRetryPolicy": {"type": "EXPONENTIAL"}, "new": [1],
    }  # fmt: skip
    version = {"counter": 3, "timestamp": 5}
    file_of(tmp_path).write_text(
        json.dumps({"dataVersion": version, "forbiddenTable": {}, "subscriptionGroupTable": {"theirs": java}})
    )
    table = opened(tmp_path)
    theirs = table.get("theirs")
    assert theirs is not None
    assert (theirs.consume_enable, theirs.retry_max_times, theirs.back_off_ms(1)) == (False, 5, 5_000)
    await table.add([GroupConfig("mine")])
    document = json.loads(file_of(tmp_path).read_bytes())
    assert document["dataVersion"]["counter"] == 4
    assert document["forbiddenTable"] == {}
    kept = document["subscriptionGroupTable"]["theirs"]
    assert {key: kept[key] for key in java} == java


@pytest.mark.parametrize("entry", [{"retryMaxTimes": "16"}, {"retryMaxTimes": -2}, {"consumeEnable": 1}, []])
def test_an_entry_that_makes_no_sense_is_told(tmp_path: Path, entry: Any) -> None:
    file_of(tmp_path).write_text(json.dumps({"subscriptionGroupTable": {"bad": entry}}))
    with pytest.raises(UnreadableTable, match="group bad"):
        opened(tmp_path)


def custom(*waits: Any) -> dict[str, Any]:
    return {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": list(waits)}}


def growing(**values: Any) -> dict[str, Any]:
    return {"type": "EXPONENTIAL", "exponentialRetryPolicy": values}


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (None, LEVELS_AS_POLICY),
        ({"type": "CUSTOMIZED"}, LEVELS_AS_POLICY),
        (custom(1, 2, 3_000, 4_000), (1, 2, 3_000, 4_000, 4_000)),
        (custom(7), (7, 7)),
        (custom(), LEVELS_AS_POLICY),
        (custom(-1, 2, 3), LEVELS_AS_POLICY),
        (custom(True), LEVELS_AS_POLICY),
        ({"type": "EXPONENTIAL"}, (5_000, 10_000, 20_000)),
        (growing(initial=1_000, max=3_500, multiplier=3), (1_000, 3_000, 3_500, 3_500)),
        (growing(initial=1_000, max=8_000, multiplier=1), (1_000, 1_000)),
        (growing(initial=0, max=8_000, multiplier=2), (0, 0)),
        (growing(initial=9_000, max=8_000, multiplier=2), (8_000, 8_000)),
        (growing(initial="x"), LEVELS_AS_POLICY),
        (growing(initial=1, max=1 << 62, multiplier=2), LEVELS_AS_POLICY),
        ("rubbish", LEVELS_AS_POLICY),
    ],
)
def test_how_long_a_group_waits(policy: Any, waits: tuple[int, ...]) -> None:
    group = GroupConfig.from_json("g", {"groupRetryPolicy": policy})
    assert tuple(group.back_off_ms(number) for number in range(1, len(waits) + 1)) == waits
    assert group.back_off_ms(1_000) == (waits[-1] if waits[-1] != 20_000 else 7_200_000)


async def test_numbers_that_an_older_store_has_kept_though_json_has_none_such_are_null(tmp_path: Path) -> None:
    """Before, what a client said in fields that are not known was kept whatever it was; Python writes it like that."""
    file_of(tmp_path).write_text(
        '{"subscriptionGroupTable":{"g":{"groupName":"g","later":[NaN,Infinity,-Infinity,1e400,1.5]}}}'
    )
    table = opened(tmp_path)
    await table.add([GroupConfig("new")])
    entry = json.loads(file_of(tmp_path).read_bytes())["subscriptionGroupTable"]["g"]
    assert entry["later"] == [None, None, None, None, 1.5]
    assert opened(tmp_path).get("g") == table.get("g")
