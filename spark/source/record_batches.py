"""Arrow batches out of the records of a walk: only the columns that are wanted, only the rows that pass.

Rows are chosen first, by conditions on columns that are small; then columns are gathered for the chosen ones. All loops
over rows are compiled or Arrow's own. Text that is malformed is decoded as Java does, one by one: slow, and rare.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tandemmq.spark.reading.scan import ScanWanted
from tandemmq.spark.source.conditions import Condition
from tandemmq.store.format import properties as props
from tandemmq.store.format.compiled.record_columns import (
    Flags,
    Ints,
    Longs,
    RecordColumns,
    Spans,
    TextLists,
    Texts,
)
from tandemmq.store.format.java import decode_utf8

BATCH_BYTES = 32 << 20
"""A batch has no more bytes than this, about, or is one row."""

_MOST_WITHOUT_BODY = (1 << 15) + (1 << 15) + 512  # topic, properties and all that has a fixed size
_MICROSECONDS = 1000
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000, 253_402_300_799_999  # ms: the years 1 to 9999
_MAX_INT = (1 << 31) - 1


def record_batches(columns: RecordColumns, wanted: ScanWanted, *, valid: bool = True) -> Iterator[pa.RecordBatch]:
    """The batches of one walk; none where no row passes. ``valid``: what is_valid says of its records."""
    every = columns.all_rows()
    sizes = columns.size(every)
    for piece in _pieces(every, np.minimum(sizes, _MOST_WITHOUT_BODY)):
        chosen = _passing(columns, piece, wanted, valid)
        if not chosen.size:
            continue
        pieces = _pieces(chosen, sizes[chosen]) if "body" in wanted.schema.names else iter([chosen])
        for part in pieces:
            arrays = [_array(columns, part, field.name, field.type, valid) for field in wanted.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)


def stretch_batch(begin: int, end: int, wanted: ScanWanted) -> pa.RecordBatch | None:
    """One row for log bytes [begin, end) that are no record; None if it does not pass."""
    known: dict[str, Any] = {"physical_offset": begin, "size": min(end - begin, _MAX_INT), "is_valid": False}
    if wanted.key is not None:
        return None
    for condition in wanted.conditions:
        if not condition.holds(pa.array([known.get(condition.column)], ARROW_TYPES[condition.column]))[0]:
            return None
    arrays = [pa.array([known.get(field.name)], field.type) for field in wanted.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)


def _pieces(chosen: Longs, weights: Longs) -> Iterator[Longs]:
    """``chosen`` in pieces of at most BATCH_BYTES by ``weights``, or of one row."""
    ends = np.cumsum(weights)
    begin, before = 0, 0
    while begin < chosen.size:
        end = max(int(np.searchsorted(ends, before + BATCH_BYTES, "right")), begin + 1)
        yield chosen[begin:end]
        begin, before = end, int(ends[end - 1])


# Which rows pass.


def _passing(columns: RecordColumns, chosen: Longs, wanted: ScanWanted, valid: bool) -> Longs:
    for condition in sorted(wanted.conditions, key=lambda one: _COST.get(one.column, 1)):
        if not chosen.size:
            break
        chosen = chosen[_holding(columns, chosen, condition, valid)]
    if wanted.key is not None and chosen.size:
        chosen = chosen[_with_key(columns, chosen, wanted.key)]
    return chosen


def _holding(columns: RecordColumns, chosen: Longs, condition: Condition, valid: bool) -> Flags:
    if condition.column == "topic":  # once for each topic, not for each record
        holds = condition.holds(_strings(columns.gather(columns.group_topics()), None))
        found: Flags = holds[columns.group(chosen)]
        return found
    return condition.holds(_array(columns, chosen, condition.column, ARROW_TYPES[condition.column], valid))


def _with_key(columns: RecordColumns, chosen: Longs, key: str) -> Flags:
    unique = _array(columns, chosen, "unique_key", pa.string(), True)
    found = Condition("unique_key", "=", key).holds(unique)
    lists = _array(columns, chosen, "keys", pa.list_(pa.string()), True)
    hits = np.nonzero(Condition("keys", "=", key).holds(lists.values))[0]
    # Of equal ends, those of lists without keys, the last is the start of the list that has the piece.
    found[np.searchsorted(np.asarray(lists.offsets), hits, "right") - 1] = True
    return found


# Columns.


def _array(columns: RecordColumns, chosen: Longs, name: str, kind: pa.DataType, valid: bool) -> pa.Array:
    if name == "is_valid":
        return pa.repeat(pa.scalar(valid), chosen.size)
    return _MAKERS[name](columns, chosen, kind)


def _number(values: Longs | Ints, kind: pa.DataType) -> pa.Array:
    return pa.array(values.astype(kind.to_pandas_dtype(), copy=False))


def _moment(values: Longs, kind: pa.DataType) -> pa.Array:
    present = (values >= _FIRST_MOMENT) & (values <= _LAST_MOMENT)
    micros = np.where(present, values, 0) * _MICROSECONDS
    return pa.Array.from_buffers(kind, values.size, [_bits(present), pa.py_buffer(micros)])


def _bits(present: Flags | None) -> pa.Buffer | None:
    """A validity bitmap; none where all are there."""
    if present is None or present.all():
        return None
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _unchecked(texts: Texts, present: Flags | None, kind: pa.DataType) -> pa.Array:
    buffers = [_bits(present), pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(kind, texts.offsets.size - 1, buffers)


def _decodes(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _strings(texts: Texts, present: Flags | None) -> pa.Array:
    array = _unchecked(texts, present, pa.string())
    if texts.is_ascii or _decodes(array):
        return array
    there = [True] * len(array) if present is None else present.tolist()
    decoded = [decode_utf8(text) if one else None for text, one in zip(texts.pieces(), there, strict=True)]
    return pa.array(decoded, pa.string())


def _text(columns: RecordColumns, spans: Spans) -> pa.Array:
    return _strings(columns.gather(spans), spans.present)


def _key_lists(columns: RecordColumns, chosen: Longs, kind: pa.DataType) -> pa.Array:
    found: TextLists = columns.split_keys(columns.keys(chosen))
    items = _strings(found.items, None)  # blanks and what is malformed do not touch each other
    return pa.Array.from_buffers(kind, chosen.size, [None, pa.py_buffer(found.lists)], children=[items])


def _property_maps(columns: RecordColumns, chosen: Longs, kind: pa.DataType) -> pa.Array:
    spans = columns.properties(chosen)
    found = columns.split_properties(spans)
    names, values = (_unchecked(texts, None, pa.string()) for texts in (found.names, found.values))
    plain = found.names.is_ascii and found.values.is_ascii
    if not plain and not (_decodes(names) and _decodes(values)):
        decoded = [list(props.decode(text).items()) for text in columns.gather(spans).pieces()]
        return pa.array(decoded, kind)
    pair = pa.struct([kind.key_field, kind.item_field])
    pairs = pa.Array.from_buffers(pair, len(names), [None], children=[names, values])
    return pa.Array.from_buffers(kind, chosen.size, [None, pa.py_buffer(found.maps)], children=[pairs])


def _body(columns: RecordColumns, chosen: Longs, kind: pa.DataType) -> pa.Array:
    return _unchecked(columns.gather(columns.body(chosen)), None, kind)


_MAKERS: dict[str, Callable[[RecordColumns, Longs, pa.DataType], pa.Array]] = {
    "topic": lambda columns, chosen, _: _text(columns, columns.topic(chosen)),
    "queue_id": lambda columns, chosen, kind: _number(columns.queue_id(chosen), kind),
    "queue_offset": lambda columns, chosen, kind: _number(columns.queue_offset(chosen), kind),
    "physical_offset": lambda columns, chosen, kind: _number(columns.physical_offset(chosen), kind),
    "size": lambda columns, chosen, kind: _number(columns.size(chosen), kind),
    "store_timestamp": lambda columns, chosen, kind: _moment(columns.store_timestamp(chosen), kind),
    "born_timestamp": lambda columns, chosen, kind: _moment(columns.born_timestamp(chosen), kind),
    "born_host": lambda columns, chosen, _: _strings(columns.born_host(chosen), None),
    "store_host": lambda columns, chosen, _: _strings(columns.store_host(chosen), None),
    "keys": _key_lists,
    "tags": lambda columns, chosen, _: _text(columns, columns.tags(chosen)),
    "unique_key": lambda columns, chosen, _: _text(columns, columns.unique_key(chosen)),
    "properties": _property_maps,
    "body": _body,
    "sys_flag": lambda columns, chosen, kind: _number(columns.sys_flag(chosen), kind),
    "reconsume_times": lambda columns, chosen, kind: _number(columns.reconsume_times(chosen), kind),
    "message_id": lambda columns, chosen, _: _strings(columns.message_id(chosen), None),
}

_MOMENT_TYPE = pa.timestamp("us", tz="UTC")
ARROW_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "queue_id": pa.int32(),
    "queue_offset": pa.int64(),
    "physical_offset": pa.int64(),
    "size": pa.int32(),
    "store_timestamp": _MOMENT_TYPE,
    "born_timestamp": _MOMENT_TYPE,
    "born_host": pa.string(),
    "store_host": pa.string(),
    "keys": pa.list_(pa.string()),
    "tags": pa.string(),
    "unique_key": pa.string(),
    "properties": pa.map_(pa.string(), pa.string()),
    "body": pa.binary(),
    "sys_flag": pa.int32(),
    "reconsume_times": pa.int32(),
    "message_id": pa.string(),
    "is_valid": pa.bool_(),
}
"""Of each column, in the order of the table (schema.py says what they are)."""

_COST = {"topic": 0, "is_valid": 0, "tags": 2, "unique_key": 2, "born_host": 3, "store_host": 3, "message_id": 3}
_COST |= {"keys": 4, "properties": 5, "body": 6}
"""Conditions are tested in this order, so that the cheap ones leave less to the others; other columns have 1."""
