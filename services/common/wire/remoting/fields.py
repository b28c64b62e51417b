"""Fields: typed values out of a request's extFields, with RocketMQ's words for what is missing.

Every method raises BadField: a field that is demanded is not there, or a value is not what it should be.
"""

from collections.abc import Mapping
from typing import TypeVar

from tandemmq.common.wire.remoting.errors import BadField

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)

T = TypeVar("T")


class Fields:
    """A request's extFields. An empty value counts as missing, as it does for Java in the binary serialization."""

    def __init__(self, fields: Mapping[str, str] | None) -> None:
        self._fields = fields or {}

    def text(self, name: str) -> str:
        """The text, which must be there."""
        value = self._fields.get(name)
        if not value:
            raise BadField(f"the custom field <{name}> is null")
        return value

    def text_or(self, name: str, default: T) -> str | T:
        """The text, or what stands for a missing one."""
        return self._fields.get(name) or default

    def int32(self, name: str) -> int:
        """A number, which must be there (Java's int)."""
        return _number(name, self.text(name), _INT32)

    def int32_or(self, name: str, default: T) -> int | T:
        """A number, or what stands for a missing one (Java's Integer)."""
        value = self._fields.get(name)
        return _number(name, value, _INT32) if value else default

    def int64(self, name: str) -> int:
        """A number, which must be there (Java's long)."""
        return _number(name, self.text(name), _INT64)

    def int64_or(self, name: str, default: T) -> int | T:
        """A number, or what stands for a missing one (Java's Long)."""
        value = self._fields.get(name)
        return _number(name, value, _INT64) if value else default

    def flag(self, name: str) -> bool:
        """Yes or no, which must be there. As in Java, whatever is not `true` is no."""
        return self.text(name).lower() == "true"

    def flag_or(self, name: str, default: T) -> bool | T:
        """Yes or no, or what stands for neither."""
        value = self._fields.get(name)
        return value.lower() == "true" if value else default


def _number(name: str, text: str, bounds: range) -> int:
    if len(text) <= 20 and text.isascii() and "_" not in text and text == text.strip():
        try:
            number = int(text)
        except ValueError:
            pass
        else:
            if number in bounds:
                return number
    raise BadField(
        f"the custom field <{name}> is no number of {'32' if bounds is _INT32 else '64'} bits: {text[:40]!r}"
    )
