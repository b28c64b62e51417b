"""Strings in HPACK's Huffman code (RFC 7541, section 5.2), decoded by the `hpack` library.

Its function for that is not public, but takes 2 to 5 µs less than a header block around the string, which its public
Decoder takes. So it is tried with what the RFC says, once, and used as long as it does that.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hpack import Decoder, HPACKError

_EXAMPLE = bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff"), b"www.example.com"
"""RFC 7541, section C.4.1."""
_WRONG = b"\xff\xff\xff\xff"
"""The code for the end of a string, which must not be in one."""
_decoder = Decoder(max_header_list_size=1 << 30)


def decode_by_block(raw: bytes) -> bytes:
    """The string as the value of a literal without indexing, for the public Decoder. Raises HPACKError."""
    length = bytearray((0xFF,))
    rest = len(raw) - 0x7F
    if rest < 0:
        length[0] = 0x80 | len(raw)
    else:
        while rest >= 0x80:
            length.append(rest & 0x7F | 0x80)
            rest >>= 7
        length.append(rest)
    fields = list(_decoder.decode(b"\0\1x" + length + raw, raw=True))
    return bytes(fields[0][1])


def chosen(quick: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """`quick` if it decodes and refuses as the RFC says, else `decode_by_block`."""
    raw, text = _EXAMPLE
    try:
        if quick is None or bytes(quick(raw)) != text:
            return decode_by_block
        quick(_WRONG)
    except HPACKError:
        return quick or decode_by_block
    except Exception:  # noqa: BLE001 - in whatever way it has changed, it is of no use
        return decode_by_block
    return decode_by_block


def _theirs() -> Callable[[bytes], Any] | None:
    try:
        module = import_module("hpack.huffman_table")
    except ImportError:
        return None
    return getattr(module, "decode_huffman", None)


decode_huffman = chosen(_theirs())
"""A string from its code. Raises HPACKError."""
