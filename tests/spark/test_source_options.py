"""Options of the data source: what they take, and what they say of what they do not take."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.source.conditions import Condition
from tandemmq.spark.source.source_options import SourceOptions


def test_all_options() -> None:
    options = SourceOptions.parse(
        {
            "path": "file:///s/store",
            "startingoffsets": "100",
            "ENDINGOFFSETS": "latest",
            "startingTimestamp": "5",
            "endingTimestamp": "6",
            "failOnDataLoss": "False",
            "maxOffsetsPerTrigger": "7",
            "columns": "topic, size",
            "topic": "a,b",
            "where": "size > 3",
            "key": "k",
            "rangeSize": "65536",
            "store": "h:1",
            "checkCrc": "false",
            "pushFilters": "true",
            "includeDamaged": "false",
        }
    )
    assert options == SourceOptions(
        path=Path("/s/store"),
        starting_offsets=100,
        starting_timestamp=5,
        ending_timestamp=6,
        fail_on_data_loss=False,
        max_offsets_per_trigger=7,
        columns=("topic", "size"),
        topic=("a", "b"),
        where=(Condition("size", ">", 3),),
        key="k",
        range_size=65536,
        store="h:1",
        check_crc=False,
        push_filters=True,
        include_damaged=False,
    )


@pytest.mark.parametrize(
    ("text", "offset", "at_end"), [("earliest", None, False), ("Latest", None, True), ("0", 0, False)]
)
def test_where_a_read_begins(text: str, offset: int | None, at_end: bool) -> None:
    options = SourceOptions.parse({"path": "s", "startingOffsets": text})
    assert (options.starting_offsets, options.starting_at_end) == (offset, at_end)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("startingofset", "1", "Did you mean startingOffsets?"),
        ("kafka.bootstrap.servers", "x", "The options are: path"),
        ("startingOffsets", "-1", "'earliest', 'latest' or a log offset"),
        ("endingOffsets", "earliest", "'latest' or a log offset"),
        ("startingTimestamp", "today", "a number from 0"),
        ("maxOffsetsPerTrigger", "0", "a number from 1"),
        ("rangeSize", "1", "a number from 65536"),
        ("failOnDataLoss", "yes", "neither true nor false"),
        ("columns", ",", "names nothing"),
        ("key", "", "is empty"),
        ("path", "s3://bucket/store", "Copy it to a local disk"),
        ("paths", '["a","b"]', "union"),
        ("starting_at_end", "true", "no option"),
    ],
)
def test_what_cannot_be_is_told(name: str, value: str, told: str) -> None:
    with pytest.raises(BadJobOption) as caught:
        SourceOptions.parse({"path": "s", name: value})
    assert told in str(caught.value)


def test_a_place_to_read_from_is_needed() -> None:
    assert SourceOptions.parse({"store": "h:1"}).path is None
    with pytest.raises(BadJobOption, match="path"):
        SourceOptions.parse({})
