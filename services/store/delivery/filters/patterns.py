"""LIKE without backtracking: `%` is any text, `_` any one character, an escape character makes the next one plain."""

import re
from collections.abc import Callable


class BadPattern(ValueError):
    """The pattern ends after its escape character."""


def compile_pattern(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """Whether a text is like the pattern, as a function; its time is at most the product of the two lengths.

    The pieces between the `%` are looked for one after the other, each at the first place where it fits. That is right,
    for what is left of the text is the longest then, and nothing has to be tried again.

    Raises BadPattern.
    """
    pieces = _pieces(pattern, escape)
    if len(pieces) == 1:
        whole = re.compile(pieces[0], re.DOTALL)
        return lambda text: whole.fullmatch(text) is not None
    first, *between, last = (re.compile(piece, re.DOTALL) for piece in pieces)
    inner = [piece for piece in between if piece.pattern]
    length_of_last = _characters(pattern, escape)

    def like(text: str) -> bool:
        begin = first.match(text)
        end = len(text) - length_of_last
        if begin is None or end < begin.end():
            return False
        at = begin.end()
        for piece in inner:
            found = piece.search(text, at, end)
            if found is None:
                return False
            at = found.end()
        return last.fullmatch(text, end) is not None

    return like


def _pieces(pattern: str, escape: str | None) -> list[str]:
    """What stands between the `%`, each as a regular expression of a fixed length."""
    pieces, escaped = [""], False
    for character in pattern:
        if escaped:
            pieces[-1] += re.escape(character)
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
    if escaped:
        raise BadPattern
    return pieces


def _characters(pattern: str, escape: str | None) -> int:
    """How many characters the last piece stands for."""
    count, escaped = 0, False
    for character in pattern:
        if escaped:
            count, escaped = count + 1, False
        elif character == escape:
            escaped = True
        else:
            count = 0 if character == "%" else count + 1
    return count
