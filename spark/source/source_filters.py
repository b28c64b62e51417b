"""Spark's filters as conditions of the scan."""

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import Filter

from tandemmq.spark.source.conditions import Condition

_TESTS: dict[type[Filter], str] = {
    datasource.EqualTo: "=",
    datasource.EqualNullSafe: "<=>",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.In: "in",
    datasource.IsNull: "is null",
    datasource.StringStartsWith: "starts with",
    datasource.StringEndsWith: "ends with",
    datasource.StringContains: "contains",
}


def condition_of(pushed: Filter, schema: pa.Schema) -> Condition | None:
    """The condition that is true for exactly the same rows, None if the scan has none.

    All filters on plain columns have one; those on keys, properties and body only IS NULL and IS NOT NULL.
    """
    negated = isinstance(pushed, datasource.Not)
    inner = pushed.child if isinstance(pushed, datasource.Not) else pushed
    if isinstance(inner, datasource.IsNotNull):
        test, negated = "is null", not negated
    elif type(inner) in _TESTS:
        test = _TESTS[type(inner)]
    else:
        return None
    path = inner.attribute  # type: ignore[attr-defined]
    if len(path) != 1 or path[0] not in schema.names:
        return None
    value = getattr(inner, "value", None)
    condition = Condition(path[0], test, tuple(value) if isinstance(value, list) else value, negated)
    return condition if condition.is_possible(schema.field(path[0]).type) else None
