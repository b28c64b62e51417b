"""Comparisons, as functions of a message's properties. Unknown (None) where a side is, by SQL's three-valued logic."""

import operator
from collections.abc import Callable, Sequence

from tandemmq.store.delivery.filters.operands import (
    Condition,
    Operand,
    Properties,
    Shape,
    Value,
    number_of,
    truth_of,
)

Number = int | float
ORDERS: dict[str, Callable[[Number, Number], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def ordered(left: Operand, symbol: str, right: Operand) -> Condition:
    """`<` and the like: of numbers only. The operands are properties or numbers."""
    compare = ORDERS[symbol]
    if left.shape is Shape.PROPERTY and isinstance(right.constant, int | float):
        name, bound = left.name, right.constant

        def against_number(properties: Properties) -> bool | None:
            text = properties.get(name)
            number = None if text is None else number_of(text)
            return None if number is None else compare(number, bound)

        return against_number
    one, other = left.evaluate, right.evaluate

    def against_another(properties: Properties) -> bool | None:
        first, second = _as_number(one(properties)), _as_number(other(properties))
        return None if first is None or second is None else compare(first, second)

    return against_another


def equal(left: Operand, right: Operand) -> Condition:
    """`=`: a property takes the type of the other side; two properties are compared as texts."""
    if left.shape is Shape.PROPERTY and isinstance(right.constant, str):
        name, wanted = left.name, right.constant

        def is_text(properties: Properties) -> bool | None:
            text = properties.get(name)
            return None if text is None else text == wanted

        return is_text
    one, other = left.evaluate, right.evaluate

    def is_other(properties: Properties) -> bool | None:
        return _same(one(properties), other(properties))

    return is_other


def _same(left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, str):
        if isinstance(right, str):
            return left == right
        if isinstance(right, bool):
            return truth_of(left) is right
        number = number_of(left)
        return None if number is None else number == right
    if isinstance(right, str):
        return _same(right, left)
    return left == right if isinstance(left, bool) == isinstance(right, bool) else False


def _as_number(value: Value) -> Number | None:
    return number_of(value) if isinstance(value, str) else value


def negated(condition: Condition) -> Condition:
    """NOT."""

    def evaluate(properties: Properties) -> bool | None:
        value = condition(properties)
        return None if value is None else not value

    return evaluate


def all_of(conditions: Sequence[Condition]) -> Condition:
    """AND: false as soon as one is false."""

    def evaluate(properties: Properties) -> bool | None:
        unknown = False
        for condition in conditions:
            value = condition(properties)
            if value is None:
                unknown = True
            elif not value:
                return False
        return None if unknown else True

    return evaluate


def any_of(conditions: Sequence[Condition]) -> Condition:
    """OR: true as soon as one is true."""

    def evaluate(properties: Properties) -> bool | None:
        unknown = False
        for condition in conditions:
            value = condition(properties)
            if value:
                return True
            if value is None:
                unknown = True
        return None if unknown else False

    return evaluate


def is_null(operand: Operand) -> Condition:
    """IS NULL: never unknown."""
    inner = operand.evaluate
    return lambda properties: inner(properties) is None


def of_text(name: str, test: Callable[[str], bool]) -> Condition:
    """A test of a property's text: IN, LIKE, CONTAINS and the like."""

    def evaluate(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None else test(text)

    return evaluate
