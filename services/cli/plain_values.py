"""Values of a command line that are taken as they are.

Typer has pydantic make them, which takes longer to import than everything else that a call needs. What is of its type
already, or is a plain number, path or choice, needs no pydantic; the rest, and all that is wrong, is left to typer.
"""

import os
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

_MOST_DIGITS = 18
_PLAIN_FRACTION = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")


def take_plain_values(command: Any) -> None:
    """Let a command's parameters do so, --help too. Nothing changes with a typer that makes values by itself."""
    parameters_of = command.get_params

    def get_params(ctx: Any) -> Any:
        found = parameters_of(ctx)
        for parameter in found:
            _take(parameter)
        return found

    command.get_params = get_params


def _take(parameter: Any) -> None:
    made_by_typer = getattr(parameter, "get_runtime_param", None)
    if made_by_typer is None or not hasattr(parameter, "type_descriptor") or "get_runtime_param" in vars(parameter):
        return
    parameter.get_runtime_param = _Plain(parameter.type_descriptor, made_by_typer).itself


class _Plain:
    """What typer asks for the value of a parameter."""

    def __init__(self, descriptor: Any, made_by_typer: Callable[[], Any]) -> None:
        self._annotation = descriptor.annotation
        self._info = descriptor.parameter_info
        self._made_by_typer = made_by_typer

    def itself(self) -> "_Plain":
        """In place of what typer would make."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if self._info.parser is None:
            if several and self._annotation == list[str] and type(value) in (list, tuple):
                if all(type(one) is str for one in value):
                    return list(value)
            elif not several and self._annotation is str and type(value) is str:
                return value
            elif not several and self._annotation is int and self._is_plain_number(value):
                return int(value)
            elif not several and self._annotation is float and self._is_plain_fraction(value):
                return float(value)
            elif not several and self._is_plain_choice(value):
                return self._annotation(value)
            elif not several and self._annotation is bool and type(value) is bool:
                return value
            elif not several and self._annotation is Path and self._is_plain_path(value):
                return Path(value)
        return self._made_by_typer().coerce(value, param=param, ctx=ctx)

    def _is_plain_number(self, value: Any) -> bool:
        if type(value) is str:
            if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
                return False
        elif type(value) is not int:
            return False
        return self._is_within(int(value))

    def _is_plain_fraction(self, value: Any) -> bool:
        if type(value) is str:
            if not _PLAIN_FRACTION.fullmatch(value):
                return False
        elif type(value) not in (int, float):
            return False
        return self._is_within(float(value))

    def _is_within(self, number: float) -> bool:
        low, high = self._info.min, self._info.max
        return (low is None or number >= low) and (high is None or number <= high)

    def _is_plain_choice(self, value: Any) -> bool:
        """Whether it is a member, or exactly the text of one."""
        kind = self._annotation
        if not (isinstance(kind, type) and issubclass(kind, Enum)):
            return False
        return type(value) is kind or (type(value) is str and any(value == member.value for member in kind))

    def _is_plain_path(self, value: Any) -> bool:
        """Whether there is nothing to check about it but that it may be read, if it is there."""
        info = self._info
        if info.exists or info.writable or info.resolve_path or info.allow_dash or info.path_type is not None:
            return False
        if not (value and isinstance(value, str | Path) and info.file_okay and info.dir_okay):
            return False
        return os.access(value, os.R_OK) or not os.path.lexists(value)
