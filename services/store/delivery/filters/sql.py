"""Conditions over properties: a part of SQL-92, as RocketMQ has it."""

from collections.abc import Mapping

from tandemmq.store.delivery.errors import BadFilter
from tandemmq.store.delivery.filters.operands import Condition

MOST_CHARACTERS = 4096
"""Longer expressions are refused."""
_SHOWN = 60


class MatchingMessages:
    """Messages whose properties meet a condition; where that is unknown, they do not."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def by_tags_code(self, code: int) -> bool | None:
        """The tag does not tell."""
        return None

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether the condition is true."""
        return self._condition(properties) is True


def prepare() -> None:
    """Import the parser and build its tables, which takes about 0.1 s; to be called beside the event loop."""
    from tandemmq.store.delivery.filters import conditions

    conditions.build("a = 1")


def compile_sql(expression: str) -> MatchingMessages:
    """The filter of an expression.

    Raises:
        BadFilter: it cannot be understood; the message has the place in words and as a picture.
    """
    if len(expression) > MOST_CHARACTERS:
        raise BadFilter(
            f"A filter expression has at most {MOST_CHARACTERS} characters, and this one {len(expression)}."
        )
    from tandemmq.store.delivery.filters.conditions import NotUnderstood, build  # takes a while; see `prepare`

    try:
        return MatchingMessages(build(expression))
    except NotUnderstood as error:
        raise _bad_filter(expression, str(error), error.at) from None


def _bad_filter(expression: str, reason: str, at: int) -> BadFilter:
    before = expression[:at]
    line = before.count("\n") + 1
    start = before.rfind("\n") + 1
    column = at - start + 1
    text = expression[start:].partition("\n")[0]
    left = max(0, column - 1 - _SHOWN // 2)
    shown = "".join(one if one.isprintable() else " " for one in text[left : left + _SHOWN])
    return BadFilter(
        f"The filter expression is wrong at line {line}, column {column}: {reason}.\n"
        f"    {shown}\n    {' ' * (column - 1 - left)}^",
        remedy="Filters are conditions as in SQL-92: colour = 'red' AND weight BETWEEN 5 AND 10.",
    )
