"""Changing a part of a configuration."""

import json

import pytest

from tandemmq.admin.catalogue.merging import check_put, merged
from tandemmq.admin.errors import BadAdminRequest
from tandemmq.admin.v1.admin_pb2 import PutTopicRequest
from tandemmq.metadata.v1.metadata_pb2 import MULTI_TAG, SubscriptionGroupConfig, TopicConfig

BEFORE = TopicConfig(
    name="t", read_queues=8, write_queues=4, perm=6, order=True, sys_flag=1, attributes={"a": "1"}, other_json='{"x":1}'
)


def test_what_is_not_set_stays() -> None:
    assert merged(BEFORE, TopicConfig(name="t")) == BEFORE


def test_what_is_set_counts_zero_too_where_the_field_says_so() -> None:
    changed = merged(BEFORE, TopicConfig(name="t", perm=0, filter_type=MULTI_TAG))
    assert (changed.perm, changed.filter_type, changed.read_queues, changed.order) == (0, MULTI_TAG, 8, True)


def test_named_fields_count_though_they_hold_nothing() -> None:
    changed = merged(BEFORE, TopicConfig(name="t"), ["order", "sys_flag", "read_queues", "other_json"])
    assert (changed.order, changed.sys_flag, changed.HasField("read_queues"), changed.HasField("other_json")) == (
        False, 0, False, False,
    )  # fmt: skip
    assert changed.write_queues == 4


def test_attributes_are_changed_one_by_one_or_all() -> None:
    more = TopicConfig(name="t", attributes={"b": "2"})
    assert dict(merged(BEFORE, more).attributes) == {"a": "1", "b": "2"}
    assert dict(merged(BEFORE, TopicConfig(name="t", attributes={"a": ""})).attributes) == {}
    assert dict(merged(BEFORE, more, ["attributes"]).attributes) == {"b": "2"}


def test_what_other_json_says_is_changed_by_name_or_whole() -> None:
    change = TopicConfig(name="t", other_json='{"y": [2]}')
    assert json.loads(merged(BEFORE, change).other_json) == {"x": 1, "y": [2]}
    assert merged(BEFORE, change, ["other_json"]).other_json == '{"y": [2]}'
    assert merged(None, change).other_json == '{"y": [2]}'
    assert json.loads(merged(BEFORE, TopicConfig(name="t", other_json='{"x": 3}')).other_json) == {"x": 3}
    for odd in ("no JSON", "[1]", "[" * 100_000):
        assert merged(BEFORE, TopicConfig(name="t", other_json=odd)).other_json == odd  # metasync refuses it


def test_a_new_one_has_what_is_set_and_no_more() -> None:
    wanted = SubscriptionGroupConfig(name="g", retry_max_times=0, attributes={"a": "1", "b": ""})
    made = merged(None, wanted)
    assert made == SubscriptionGroupConfig(name="g", retry_max_times=0, attributes={"a": "1"})


def test_the_name_and_unknown_fields_cannot_be_changed() -> None:
    for name in ("name", "queues"):
        with pytest.raises(BadAdminRequest, match="known are read_queues, write_queues"):
            check_put(PutTopicRequest(config=TopicConfig(), fields=[name]))
