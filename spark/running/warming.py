"""Loading what tasks are made of, once: imports and machine code take half a second, more than a small task's work."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from tandemmq.spark.auditing.audit_kernels import look_at_entries
from tandemmq.spark.reading.scan import ScanWanted
from tandemmq.spark.source.conditions import Condition
from tandemmq.spark.source.record_batches import record_batches
from tandemmq.spark.source.schema import SCHEMA, arrow_schema
from tandemmq.store.format.compiled.index import entries_before
from tandemmq.store.format.compiled.keys import keys_of, put_entries
from tandemmq.store.format.compiled.record_columns import RecordColumns, renumbered
from tandemmq.store.format.compiled.walker import CompiledWalk, CompiledWalker
from tandemmq.store.format.index_layout import file_size
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import encode
from tandemmq.store.format.record import encode_record

_SLOTS, _ENTRIES = 8, 32


def warm() -> int:
    """Call every kernel that tasks use with arguments of the types they have there; gives the number of batches."""
    properties = encode({"KEYS": "a b", "TAGS": "t", "UNIQ_KEY": "u"})
    message = Message(topic="warm", queue_id=0, body=b"body", properties=properties)
    log = encode_record(message, 0, 0, 1)
    walker = CompiledWalker()
    walk = walker.walk(log, 0, len(log), 0, check_crc=True)
    walk.runs()
    walker.resync(log, 0, len(log), 0)
    _index(walk)
    renumbered(log)
    return len(list(_batches(RecordColumns(walk))))


def _index(walk: CompiledWalk) -> None:
    keys = keys_of(walk)
    for part in keys:
        part.flags.writeable = False  # as they come back, mapped from files
    index = bytearray(file_size(_SLOTS, _ENTRIES))
    newest = np.zeros(_SLOTS, np.int32)
    put_entries(index, _SLOTS, _ENTRIES, keys, first_number=1, begin_timestamp=0, newest=newest, first_slot=0)
    entries_before(index, _SLOTS, _ENTRIES, 1)
    look_at_entries(index, _SLOTS, 1, 1, live=False)


def _batches(columns: RecordColumns) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(SCHEMA)
    yield from record_batches(columns, ScanWanted(schema))
    since = Condition("store_timestamp", ">=", datetime(1970, 1, 1, tzinfo=UTC))
    yield from record_batches(columns, ScanWanted(schema, (since, Condition("topic", "in", ("warm",))), "a"))
