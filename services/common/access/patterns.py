"""Patterns: names and globs of topics or groups, as a role has them."""

import re
from collections.abc import Iterable

_ALLOWED = re.compile(r"[a-zA-Z0-9%|_*?-]{1,255}").fullmatch

WRONG = "a name of a-z A-Z 0-9 % | - _, in which * stands for any characters and ? for one"
"""What a pattern is, for errors."""


def is_pattern(text: str) -> bool:
    """Whether a text can be a pattern: the characters of names, and * and ?."""
    return _ALLOWED(text) is not None


class Patterns:
    """A set of patterns."""

    __slots__ = ("_exact", "_globs", "texts")

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(texts))
        globs = [text for text in self.texts if "*" in text or "?" in text]
        self._exact = frozenset(self.texts).difference(globs)
        self._globs = re.compile("|".join(map(_expression, globs)), re.DOTALL) if globs else None

    @property
    def everything(self) -> bool:
        """Whether every name fits."""
        return any(text.strip("*") == "" for text in self.texts)

    def fit(self, name: str) -> bool:
        """Whether a name is one of them, or fits one."""
        return name in self._exact or (self._globs is not None and self._globs.fullmatch(name) is not None)

    def __bool__(self) -> bool:
        return bool(self.texts)


def _expression(glob: str) -> str:
    """A glob as a regular expression. Neighbouring stars are one: else a long name could take for ever."""
    parts = (("." if one == "?" else ".*" if one == "*" else re.escape(one)) for one in re.sub(r"\*+", "*", glob))
    return "".join(parts)
