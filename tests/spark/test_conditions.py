"""Conditions of the scan: the option `where`, and Spark's filters; with SQL's logic of three values."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

from pyspark.sql import datasource as spark_filters

from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.source.conditions import Condition, offset_bounds
from tandemmq.spark.source.schema import SCHEMA, arrow_schema
from tandemmq.spark.source.source_filters import condition_of
from tandemmq.spark.source.where import parse_where

WHOLE = arrow_schema(SCHEMA)
TEXTS = pa.array(["a", "ab", None, "b", "ba"])


def holds(condition: Condition, values: pa.Array = TEXTS) -> str:
    """One digit for each value."""
    found = condition.holds(values)
    assert found.dtype == np.bool_
    return "".join(str(int(one)) for one in found)


@pytest.mark.parametrize(
    ("test", "value", "plain", "negated"),
    [
        ("=", "a", "10000", "01011"),
        ("=", None, "00000", "00000"),
        ("<=>", "a", "10000", "01111"),
        ("<=>", None, "00100", "11011"),
        ("<", "b", "11000", "00011"),
        ("<=", "b", "11010", "00001"),
        (">", "a", "01011", "10000"),
        (">=", "ab", "01011", "10000"),
        ("in", ("a", "b"), "10010", "01001"),
        ("in", ("a", None), "10000", "00000"),
        ("in", (), "00000", "11011"),
        ("is null", None, "00100", "11011"),
        ("starts with", "a", "11000", "00011"),
        ("ends with", "a", "10001", "01010"),
        ("contains", "b", "01011", "10000"),
    ],
)
def test_every_test_with_an_unknown_value_among_others(test: str, value: Any, plain: str, negated: str) -> None:
    assert holds(Condition("tags", test, value)) == plain
    assert holds(Condition("tags", test, value, negated=True)) == negated


@pytest.mark.parametrize(
    ("pushed", "condition"),
    [
        (spark_filters.EqualTo(("size",), 5), Condition("size", "=", 5)),
        (spark_filters.Not(spark_filters.EqualTo(("size",), 5)), Condition("size", "=", 5, True)),
        (spark_filters.EqualNullSafe(("tags",), None), Condition("tags", "<=>", None)),
        (spark_filters.In(("topic",), ("a", "b")), Condition("topic", "in", ("a", "b"))),
        (spark_filters.IsNotNull(("tags",)), Condition("tags", "is null", None, True)),
        (spark_filters.Not(spark_filters.IsNotNull(("tags",))), Condition("tags", "is null", None, False)),
        (spark_filters.StringStartsWith(("topic",), "a"), Condition("topic", "starts with", "a")),
        (spark_filters.IsNull(("keys",)), Condition("keys", "is null")),
        (spark_filters.EqualTo(("keys",), ["a"]), None),
        (spark_filters.EqualTo(("properties", "a"), "b"), None),
        (spark_filters.EqualTo(("body",), b"x"), None),
        (spark_filters.EqualTo(("size",), "x"), None),
        (spark_filters.GreaterThan(("size",), 1 << 40), None),
    ],
)
def test_what_of_sparks_filters_becomes_a_condition(pushed: spark_filters.Filter, condition: Condition | None) -> None:
    assert condition_of(pushed, WHOLE) == condition


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("size > 1000", [Condition("size", ">", 1000)]),
        ("topic='it''s' and queue_id!=-1", [Condition("topic", "=", "it's"), Condition("queue_id", "=", -1, True)]),
        ("tags NOT IN ('a', 'b')", [Condition("tags", "in", ("a", "b"), True)]),
        ("tags is null AND keys IS NOT NULL", [Condition("tags", "is null"), Condition("keys", "is null", None, True)]),
        ("topic LIKE '%RETRY%%'", [Condition("topic", "contains", "RETRY%")]),
        ("topic like 'a%'", [Condition("topic", "starts with", "a")]),
        ("topic like '%a'", [Condition("topic", "ends with", "a")]),
        ("topic not like 'a'", [Condition("topic", "=", "a", True)]),
        ("NOT is_valid AND size <=> 3", [Condition("is_valid", "=", True, True), Condition("size", "<=>", 3)]),
        ("is_valid = false", [Condition("is_valid", "=", False)]),
        (
            "store_timestamp >= '2025-06-01 12:00:00'",
            [Condition("store_timestamp", ">=", datetime(2025, 6, 1, 12, tzinfo=UTC))],
        ),
    ],
)
def test_where(text: str, conditions: list[Condition]) -> None:
    assert parse_where(text) == tuple(conditions)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sise > 3", "no column 'sise'"),
        ("size > 'x'", "Column size"),
        ("size > 1 OR size < 0", "no OR"),
        ("size >", "its end"),
        ("size", "a comparison"),
        ("topic = 'a", "cannot be read from"),
        ("topic in 'a'", "in place of ("),
        ("store_timestamp > 'yesterday'", "2025-06-01"),
        ("body = 'x'", "Column body"),
        ("size NOT 3", "IN or LIKE"),
        ("tags like 3", "a text"),
    ],
)
def test_where_says_what_it_does_not_understand(text: str, told: str) -> None:
    with pytest.raises(BadJobOption) as caught:
        parse_where(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("physical_offset >= 10 AND physical_offset < 20", (10, 20)),
        ("physical_offset > 10 AND physical_offset <= 20", (11, 21)),
        ("physical_offset = 7", (7, 8)),
        ("physical_offset IN (9, 3)", (3, 10)),
        ("physical_offset >= 20 AND physical_offset < 10", (20, 20)),
        ("physical_offset != 7 AND size = 5", (0, (1 << 63) - 1)),
    ],
)
def test_bounds_of_offsets(text: str, bounds: tuple[int, int]) -> None:
    assert offset_bounds(parse_where(text)) == bounds
