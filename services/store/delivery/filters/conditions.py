"""A condition as functions, built from the leaves up while it is parsed; imports the parser library.

Nothing here calls itself, so that no expression is too deep for the building; how deep the functions may call each
other is bounded.
"""

from collections.abc import Callable
from typing import NoReturn

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tandemmq.store.delivery.filters.comparisons import all_of, any_of, equal, is_null, negated, of_text, ordered
from tandemmq.store.delivery.filters.grammar import GRAMMAR, READABLE
from tandemmq.store.delivery.filters.operands import (
    Condition,
    Operand,
    Shape,
    constant_of,
    negative_of,
    property_of,
    truth_of,
)
from tandemmq.store.delivery.filters.patterns import BadPattern, compile_pattern

MOST_DEPTH = 64
"""How many functions may call each other."""
_MOST_WHOLE = 1 << 63
Part = Operand | Token


class NotUnderstood(Exception):
    """The expression is wrong at a place: `at`, in characters from its beginning."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class ConditionBuilder(Transformer[Token, Operand]):
    """Makes an operand of each rule of the grammar; the parser calls it."""

    # -- leaves -----------------------------------------------------------------------------------------------------

    def text(self, parts: list[Token]) -> Operand:
        """`'it''s'`."""
        return constant_of(_text(parts[0]), _at(parts[0]))

    def whole(self, parts: list[Token]) -> Operand:
        """`42`, `42L`."""
        digits = parts[0].rstrip("lL")
        if len(digits) > 19 or int(digits) > _MOST_WHOLE:
            raise NotUnderstood("a whole number has at most 64 bits", _at(parts[0]))
        return constant_of(int(digits), _at(parts[0]))

    def fraction(self, parts: list[Token]) -> Operand:
        """`4.2`, `.5`, `1e3`."""
        value = float(parts[0])
        if value == float("inf"):
            raise NotUnderstood("the number is too large", _at(parts[0]))
        return constant_of(value, _at(parts[0]))

    def true(self, parts: list[Token]) -> Operand:
        """TRUE."""
        return constant_of(True, _at(parts[0]))

    def false(self, parts: list[Token]) -> Operand:
        """FALSE."""
        return constant_of(False, _at(parts[0]))

    def null(self, parts: list[Token]) -> Operand:
        """NULL."""
        return constant_of(None, _at(parts[0]))

    def property(self, parts: list[Token]) -> Operand:
        """The name of a property."""
        return property_of(str(parts[0]), _at(parts[0]))

    def nested(self, parts: list[Operand]) -> Operand:
        """`(a)`."""
        return _bounded(parts[0]._replace(depth=parts[0].depth + 1))

    def positive(self, parts: list[Operand]) -> Operand:
        """`+x`."""
        return parts[0]

    def negative(self, parts: list[Part]) -> Operand:
        """`-x`."""
        operand = _operand(parts[1])
        _require_number(operand, "can be negative")
        return _bounded(negative_of(operand, _at(parts[0])))

    # -- logic ------------------------------------------------------------------------------------------------------

    def any(self, parts: list[Operand]) -> Operand:
        """`a OR b OR …`."""
        return _truth(any_of([_condition(part) for part in parts]), *parts)

    def every(self, parts: list[Operand]) -> Operand:
        """`a AND b AND …`."""
        return _truth(all_of([_condition(part) for part in parts]), *parts)

    def deny(self, parts: list[Part]) -> Operand:
        """`NOT a`."""
        inner = _operand(parts[-1])
        return _truth(negated(_condition(inner)), inner)

    # -- comparisons ------------------------------------------------------------------------------------------------

    def equal(self, parts: list[Operand]) -> Operand:
        """`a = b`."""
        left, right = parts
        for part in parts:
            if part.shape is Shape.NULL:
                raise NotUnderstood("nothing equals NULL; write IS NULL", part.at)
        shapes = {left.shape, right.shape}
        if shapes == {Shape.NUMBER, Shape.TRUTH}:
            raise NotUnderstood("a number cannot be compared with a truth value", right.at)
        return _truth(equal(left, right), left, right)

    def unequal(self, parts: list[Operand]) -> Operand:
        """`a <> b`."""
        return _not(self.equal(parts))

    def missing(self, parts: list[Part]) -> Operand:
        """`a IS NULL`."""
        operand = _operand(parts[0])
        return _truth(is_null(operand), operand)

    def present(self, parts: list[Part]) -> Operand:
        """`a IS NOT NULL`."""
        return _not(self.missing(parts))

    def order(self, parts: list[Part]) -> Operand:
        """`a < b`."""
        return _ordered(_operand(parts[0]), str(parts[1]), _operand(parts[2]))

    def between(self, parts: list[Operand]) -> Operand:
        """`a BETWEEN b AND c`."""
        value, low, high = parts
        both = [_ordered(value, ">=", low), _ordered(value, "<=", high)]
        match low.constant, high.constant:
            case (int() | float() as lowest, int() | float() as highest) if lowest > highest:
                raise NotUnderstood("the first bound of BETWEEN is greater than the second", low.at)
            case _:
                pass
        return self.every(both)

    def beyond(self, parts: list[Part]) -> Operand:
        """`a NOT BETWEEN b AND c`."""
        value, low, high = _operand(parts[0]), _operand(parts[2]), _operand(parts[3])
        return self.any([_ordered(value, "<", low), _ordered(value, ">", high)])

    def one_of(self, parts: list[Part]) -> Operand:
        """`a IN ('b', 'c')`."""
        wanted = frozenset(_text(part) for part in parts[1:] if isinstance(part, Token))
        return _text_test(parts[0], "IN", wanted.__contains__)

    def none_of(self, parts: list[Part]) -> Operand:
        """`a NOT IN ('b', 'c')`."""
        return _not(self.one_of([parts[0], *parts[2:]]))

    def part(self, parts: list[Part]) -> Operand:
        """`a CONTAINS 'b'`, STARTSWITH, ENDSWITH."""
        word, text = str(parts[1]).upper(), _text(parts[2])
        tests: dict[str, Callable[[str], bool]] = {
            "CONTAINS": lambda value: text in value,
            "STARTSWITH": lambda value: value.startswith(text),
            "ENDSWITH": lambda value: value.endswith(text),
        }
        return _text_test(parts[0], word, tests[word])

    def no_part(self, parts: list[Part]) -> Operand:
        """`a NOT CONTAINS 'b'`."""
        return _not(self.part([parts[0], *parts[2:]]))

    def like(self, parts: list[Part]) -> Operand:
        """`a LIKE 'b%'`, with or without ESCAPE."""
        escape = _text(parts[2]) if len(parts) > 2 else None
        if escape is not None and len(escape) != 1:
            raise NotUnderstood("ESCAPE takes one character", _at(parts[2]))
        try:
            test = compile_pattern(_text(parts[1]), escape)
        except BadPattern:
            raise NotUnderstood("the pattern ends after its escape character", _at(parts[1])) from None
        return _text_test(parts[0], "LIKE", test)

    def unlike(self, parts: list[Part]) -> Operand:
        """`a NOT LIKE 'b%'`."""
        return _not(self.like([parts[0], *parts[2:]]))


def _operand(part: Part) -> Operand:
    assert isinstance(part, Operand)
    return part


def _at(part: Part) -> int:
    return (part.start_pos or 0) if isinstance(part, Token) else part.at


def _text(part: Part) -> str:
    assert isinstance(part, Token)
    return str(part)[1:-1].replace("''", "'")


def _bounded(operand: Operand) -> Operand:
    if operand.depth > MOST_DEPTH:
        raise NotUnderstood(f"it is nested more than {MOST_DEPTH} deep", operand.at)
    return operand


def _truth(condition: Condition, *inner: Operand) -> Operand:
    return _bounded(Operand(Shape.TRUTH, condition, inner[0].at, 1 + max(one.depth for one in inner)))


def _condition(operand: Operand) -> Condition:
    """What stands where a truth value must. Raises NotUnderstood."""
    if operand.shape is Shape.PROPERTY:
        return of_text(operand.name, truth_of)
    if operand.shape in (Shape.TRUTH, Shape.NULL):
        return operand.evaluate  # type: ignore[return-value]  # the shape says what it gives
    raise NotUnderstood(f"{operand.shape.value} stands where a condition must", operand.at)


def _not(operand: Operand) -> Operand:
    return _truth(negated(_condition(operand)), operand)


def _ordered(left: Operand, symbol: str, right: Operand) -> Operand:
    for operand in (left, right):
        _require_number(operand, "have an order")
    return _truth(ordered(left, symbol, right), left, right)


def _require_number(operand: Operand, what: str) -> None:
    if operand.shape not in (Shape.PROPERTY, Shape.NUMBER):
        raise NotUnderstood(f"only numbers {what}, and this is {operand.shape.value}", operand.at)


def _text_test(part: Part, word: str, test: Callable[[str], bool]) -> Operand:
    operand = _operand(part)
    if operand.shape is not Shape.PROPERTY:
        raise NotUnderstood(f"{word} is asked of a property, and this is {operand.shape.value}", operand.at)
    return _truth(of_text(operand.name, test), operand)


def build(expression: str) -> Condition:
    """The condition that an expression is. Raises NotUnderstood."""
    if not expression.strip():
        raise NotUnderstood("it is empty", 0)
    try:
        result: object = _PARSER.parse(expression)
    except UnexpectedInput as error:
        _refuse(error, len(expression))
    assert isinstance(result, Operand)
    return _condition(result)


def _refuse(error: UnexpectedInput, end: int) -> NoReturn:
    wanted: set[str] = set()
    found, at = "", error.pos_in_stream
    if isinstance(error, UnexpectedToken):
        wanted = set(error.accepts or error.expected)
        found = "the end" if error.token.type == "$END" else f"“{str(error.token)[:40]}”"
        at = end if error.token.type == "$END" else error.token.start_pos
    elif isinstance(error, UnexpectedCharacters):
        wanted, found = set(error.allowed or ()), f"“{error.char}”"
    names = sorted({READABLE.get(name, name) for name in wanted})
    expected = f"; expected {', '.join(names)}" if names else ""
    raise NotUnderstood(f"{found} is not expected there{expected}", end if at is None else at) from None


_PARSER = Lark(GRAMMAR, parser="lalr", lexer="contextual", transformer=ConditionBuilder())
