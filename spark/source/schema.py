"""The columns of the table, and the choice of some of them."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tandemmq.spark.errors import BadJobOption

COLUMNS: dict[str, DataType] = {
    "topic": StringType(),
    "queue_id": IntegerType(),
    "queue_offset": LongType(),
    "physical_offset": LongType(),
    "size": IntegerType(),
    "store_timestamp": TimestampType(),
    "born_timestamp": TimestampType(),
    "born_host": StringType(),
    "store_host": StringType(),
    "keys": ArrayType(StringType()),
    "tags": StringType(),
    "unique_key": StringType(),
    "properties": MapType(StringType(), StringType()),
    "body": BinaryType(),
    "sys_flag": IntegerType(),
    "reconsume_times": IntegerType(),
    "message_id": StringType(),
    "is_valid": BooleanType(),
}
"""Name and type of each column, in the order of the table.

    topic             queue_id          queue_offset      prepared and rolled-back messages have no place in their queue
    physical_offset   where the record stands in the log
    size              bytes of the whole record, of the stretch where there is none; cut off at 2^31 - 1
    store_timestamp   born_timestamp    null for what no calendar has: beyond the years 1 to 9999
    born_host         store_host        ``ip:port``, IPv6 as ``[ip]:port``
    keys              never null for a message, but empty
    tags              unique_key        null if the message has none
    properties        all of them, TAGS, KEYS and UNIQ_KEY too
    body              as it was stored: compressed if sys_flag says so
    message_id        the offset id
    is_valid          false: the checksum or the position is wrong, or the bytes are no record; then all columns but
                      physical_offset and size are null
"""

SCHEMA = StructType([StructField(name, kind) for name, kind in COLUMNS.items()])
"""The whole table."""


def choose(names: Iterable[str]) -> StructType:
    """The schema with the columns called ``names``, in their order. Raises BadJobOption."""
    chosen = [name.strip() for name in names]
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown:
        raise BadJobOption(f"A commit log has no column {unknown[0]!r}. The columns are: {', '.join(COLUMNS)}.")
    if len(set(chosen)) != len(chosen):
        raise BadJobOption(f"Columns are named twice: {', '.join(chosen)}.")
    return StructType([StructField(name, COLUMNS[name]) for name in chosen])


def arrow_schema(schema: StructType) -> pa.Schema:
    """``schema`` as Spark wants its batches.

    Raises BadJobOption if it names a column that is not there, or gives one another type.
    """
    chosen = choose(schema.fieldNames())
    for field in chosen.fields:
        asked = schema[field.name].dataType
        if asked != field.dataType:
            raise BadJobOption(
                f"Column {field.name} is {field.dataType.simpleString()}, not {asked.simpleString()}. "
                "Ask for it as it is, and cast it in the query."
            )
    return to_arrow_schema(schema, timezone="UTC")


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of the column ``name``."""
    return arrow_schema(choose([name])).field(0).type
