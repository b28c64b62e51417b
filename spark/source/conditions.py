"""Conditions on columns, tested inside the scan with SQL's logic of three values.

They are computed on the very arrays that a query would get, so a row passes here exactly if it would pass in Spark.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MAX_OFFSET = (1 << 63) - 1

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TEXT_TESTS: dict[str, Callable[..., Any]] = {
    "starts with": pc.starts_with,
    "ends with": pc.ends_with,
    "contains": pc.match_substring,
}
TESTS = (*_COMPARISONS, *_TEXT_TESTS, "<=>", "in", "is null")
"""What a condition can test."""


@dataclass(frozen=True, slots=True)
class Condition:
    """``column test value``, or the contrary of it where it is ``negated``.

    ``value``: of the column's Python type or None; for ``in`` a tuple of such; nothing for ``is null``.
    """

    column: str
    test: str
    value: Any = None
    negated: bool = False

    def holds(self, values: pa.Array) -> NDArray[np.bool_]:
        """For which of the values it is true; where it is unknown, it is not."""
        outcome = self._outcome(values)
        if self.negated:
            outcome = pc.invert(outcome)
        found: NDArray[np.bool_] = pc.fill_null(outcome, False).to_numpy(zero_copy_only=False)
        return found

    def _outcome(self, values: pa.Array) -> pa.Array:
        if self.test == "is null":
            return pc.is_null(values)
        if self.test == "<=>" and self.value is None:
            return pc.is_null(values)
        if self.test == "in":
            return self._is_in(values)
        if self.test in _TEXT_TESTS:
            return _TEXT_TESTS[self.test](values, self.value)
        comparison = _COMPARISONS["=" if self.test == "<=>" else self.test]
        outcome = comparison(values, pa.scalar(self.value, values.type))
        return pc.fill_null(outcome, False) if self.test == "<=>" else outcome

    def _is_in(self, values: pa.Array) -> pa.Array:
        known = pa.array([value for value in self.value if value is not None], values.type)
        found = pc.is_in(values, value_set=known)
        unknown = pc.is_null(values)
        if None in self.value:  # neither in nor not in: the unknown one might be it
            unknown = pc.or_(unknown, pc.invert(found))
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)

    def is_possible(self, kind: pa.DataType) -> bool:
        """Whether it can be tested on a column of type ``kind``."""
        if self.test in _TEXT_TESTS:
            return bool(pa.types.is_string(kind)) and isinstance(self.value, str)
        if self.test == "is null":
            return True
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            return False
        try:
            pa.array(self.value if self.test == "in" else [self.value], kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return False
        return True


def offset_bounds(conditions: Iterable[Condition]) -> tuple[int, int]:
    """Log offsets [begin, end): no record outside of them can meet the conditions."""
    begin, end = 0, _MAX_OFFSET
    for condition in conditions:
        if condition.column != "physical_offset" or condition.negated:
            continue
        low, high = _bounds(condition.test, condition.value)
        begin, end = max(begin, low), min(end, high)
    return begin, max(begin, end)


def _bounds(test: str, value: Any) -> tuple[int, int]:
    if test in ("=", "<=>"):
        values: Sequence[int] = [] if value is None else [value]
    elif test == "in":
        values = [one for one in value if one is not None]
    elif value is None or test not in _COMPARISONS:
        return 0, _MAX_OFFSET
    elif test.startswith(">"):
        return value + (test == ">"), _MAX_OFFSET
    else:
        return 0, value + (test == "<=")
    return (min(values), max(values) + 1) if values else (0, _MAX_OFFSET)
