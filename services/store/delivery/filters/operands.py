"""What stands in a condition: properties, numbers, texts, truth values; each as a function of a message's properties.

Properties are texts. In a comparison with a number they count as one if they read like one, and as unknown (None) if
not; in a comparison with a truth value `true` in any case is TRUE, and all else is FALSE.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

Properties = Mapping[str, str]
Value = str | int | float | bool | None
Condition = Callable[[Properties], bool | None]
"""Three-valued: None where it is unknown."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(\.?)[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


class Shape(Enum):
    """What an operand is."""

    PROPERTY = "a property"
    NUMBER = "a number"
    TEXT = "a text"
    TRUTH = "a truth value"
    NULL = "NULL"


class Operand(NamedTuple):
    """A part of a condition.

    `constant`: its value, where it is the same for all messages. `at`: its first character in the expression.
    `depth`: how many functions call each other to evaluate it.
    """

    shape: Shape
    evaluate: Callable[[Properties], Value]
    at: int
    depth: int = 1
    constant: Value = None
    name: str = ""


def number_of(text: str) -> int | float | None:
    """The number that a property's text is, as Java reads it; None where it is none."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text.rstrip("dDfF"))
    return None


def truth_of(text: str) -> bool:
    """The truth value that a property's text is."""
    return text.lower() == "true"


def property_of(name: str, at: int) -> Operand:
    """The value of a property."""

    def evaluate(properties: Properties) -> Value:
        return properties.get(name)

    return Operand(Shape.PROPERTY, evaluate, at, name=name)


def constant_of(value: Value, at: int) -> Operand:
    """A literal."""
    match value:
        case None:
            shape = Shape.NULL
        case bool():
            shape = Shape.TRUTH
        case str():
            shape = Shape.TEXT
        case _:
            shape = Shape.NUMBER

    def evaluate(properties: Properties) -> Value:
        return value

    return Operand(shape, evaluate, at, constant=value)


def negative_of(operand: Operand, at: int) -> Operand:
    """`-x`: of a number, or of a property that reads like one."""
    if isinstance(operand.constant, int | float):
        return constant_of(-operand.constant, at)
    inner = operand.evaluate

    def evaluate(properties: Properties) -> Value:
        value = inner(properties)
        number = number_of(value) if isinstance(value, str) else value
        return None if number is None else -number

    return Operand(Shape.NUMBER, evaluate, at, operand.depth + 1)
