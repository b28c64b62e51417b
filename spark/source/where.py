"""The option ``where``: conditions with AND between them, in SQL's words.

    topic = 'orders' AND size > 10000
    tags IN ('new', 'paid') AND store_timestamp >= '2025-06-01 12:00:00' AND unique_key IS NOT NULL
    topic NOT LIKE '%RETRY%%' AND is_valid

Comparisons, ``<=>``, ``[NOT] IN``, ``[NOT] LIKE`` with ``%`` at the start, the end or both, ``IS [NOT] NULL``, and the
name of a boolean column, with NOT or without. A quote in a text is written twice. Times are ISO 8601, UTC unless they
say otherwise.
"""

import re
from datetime import UTC, datetime
from typing import Any, NoReturn

import pyarrow as pa

from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.source.conditions import Condition
from tandemmq.spark.source.schema import arrow_type, choose

_TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(-?\d+)\b|([A-Za-z_]\w*)|(<=>|<=|>=|<>|!=|[=<>(),]))")
_COMPARISONS = ("=", "<=>", "<", "<=", ">", ">=", "<>", "!=")
_UNEQUAL = ("<>", "!=")


def parse_where(text: str) -> tuple[Condition, ...]:
    """The conditions in ``text``. Raises BadJobOption."""
    return tuple(_Parser(text).conditions())


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._token = ""
        self._next()

    def conditions(self) -> list[Condition]:
        found = [self._condition()]
        while self._word("AND"):
            found.append(self._condition())
        if self._token:
            self._fail("AND" if self._token.upper() != "OR" else "AND (there is no OR here)")
        return found

    def _condition(self) -> Condition:
        negated = self._word("NOT")
        column = self._take("the name of a column", lambda token: token.isidentifier())
        choose([column])
        if not negated:
            if self._token in _COMPARISONS:
                test = self._take("a comparison", lambda _: True)
                return self._possible(
                    Condition(column, "=" if test in _UNEQUAL else test, self._value(column), test in _UNEQUAL)
                )
            if self._word("IS"):
                negated = self._word("NOT")
                self._need("NULL")
                return Condition(column, "is null", None, negated)
            negated = self._word("NOT")
            if self._word("IN"):
                return self._possible(Condition(column, "in", self._values(column), negated))
            if self._word("LIKE"):
                return self._possible(self._like(column, negated))
            if negated:
                self._fail("IN or LIKE")
        if not pa.types.is_boolean(arrow_type(column)):
            self._fail("a comparison")
        return Condition(column, "=", True, negated)

    def _like(self, column: str, negated: bool) -> Condition:
        pattern = self._value(column)
        if not isinstance(pattern, str):
            self._fail("a text")
        inner = pattern.removeprefix("%").removesuffix("%") if pattern != "%" else ""
        begins, ends = not pattern.startswith("%"), not pattern.endswith("%")
        if begins and ends:
            return Condition(column, "=", inner, negated)
        return Condition(column, "starts with" if begins else "ends with" if ends else "contains", inner, negated)

    def _values(self, column: str) -> tuple[Any, ...]:
        self._need("(")
        values = [self._value(column)]
        while self._word(","):
            values.append(self._value(column))
        self._need(")")
        return tuple(values)

    def _value(self, column: str) -> Any:
        token = self._take("a value", lambda one: one[0] in "'-" or one.isdigit() or one.lower() in ("true", "false"))
        if token[0] != "'":
            return token.lower() == "true" if token.isalpha() else int(token)
        text = token[1:-1].replace("''", "'")
        if not pa.types.is_timestamp(arrow_type(column)):
            return text
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadJobOption(f"{text!r} in where is no time. Write it as 2025-06-01 12:00:00.") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def _possible(self, condition: Condition) -> Condition:
        kind = arrow_type(condition.column)
        if not condition.is_possible(kind):
            raise BadJobOption(f"Column {condition.column} ({kind}) cannot be tested with {condition.test} so.")
        return condition

    # Tokens.

    def _next(self) -> None:
        rest = self._text[self._at :]
        match = _TOKEN.match(rest)
        if match is None:
            if rest.strip():
                raise BadJobOption(f"where cannot be read from {rest.strip()!r} on.")
            self._token = ""
            return
        self._at += match.end()
        self._token = next(group for group in match.groups() if group is not None)

    def _take(self, what: str, fits: Any) -> str:
        token = self._token
        if not token or not fits(token):
            self._fail(what)
        self._next()
        return token

    def _word(self, word: str) -> bool:
        if self._token.upper() != word:
            return False
        self._next()
        return True

    def _need(self, word: str) -> None:
        if not self._word(word):
            self._fail(word)

    def _fail(self, wanted: str) -> NoReturn:
        raise BadJobOption(f"where has {self._token or 'its end'!r} in place of {wanted}: {self._text!r}.")
