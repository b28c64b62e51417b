"""What a producer ends its transaction with."""

from typing import NamedTuple
from urllib.parse import quote, unquote

_MARK = "t~"
_PARTS = 4


class TransactionHandle(NamedTuple):
    """Names a half message.

    As text it is URL-safe: ``t~<queue offset>~<log offset>~<transaction id, percent-encoded>``. A bare transaction id
    (the message's UNIQ_KEY) is a handle too, for protocols that know nothing else; then both offsets are -1.
    """

    transaction_id: str
    queue_offset: int = -1
    """In the half topic's queue."""
    physical_offset: int = -1

    def __str__(self) -> str:
        """The text."""
        if self.queue_offset < 0:
            return self.transaction_id
        return f"{_MARK}{self.queue_offset}~{self.physical_offset}~{quote(self.transaction_id, safe='')}"

    @classmethod
    def parse(cls, text: str) -> "TransactionHandle":
        """Read a handle; whatever is not of the form is a bare transaction id."""
        parts = text.split("~", _PARTS - 1)
        if text.startswith(_MARK) and len(parts) == _PARTS and _is_number(parts[1]) and _is_number(parts[2]):
            return cls(unquote(parts[3]), int(parts[1]), int(parts[2]))
        return cls(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
