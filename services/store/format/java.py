"""Java's view of text: the UTF-8 decoder and String.hashCode, on which tag codes and index keys rest."""

import codecs
from functools import lru_cache

_REPLACEMENT = "�"
_HANDLER = "tandemmq-java"
_SIGN = 0x80000000
_MASK = 0xFFFFFFFF


def _replace_like_java(error: UnicodeError) -> tuple[str, int]:
    """Malformed UTF-8 becomes U+FFFD.

    Java and Python agree on how many, except for encoded surrogates (ED A0..BF): Java takes the sequence whole and
    replaces it once, Python replaces each byte.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start = error.object, error.start
    if data[start] == 0xED and start + 1 < len(data) and 0xA0 <= data[start + 1] <= 0xBF:
        third = start + 2 < len(data) and 0x80 <= data[start + 2] <= 0xBF
        return _REPLACEMENT, start + (3 if third else 2)
    return _REPLACEMENT, error.end


codecs.register_error(_HANDLER, _replace_like_java)


def decode_utf8(data: bytes | memoryview) -> str:
    """``new String(data, UTF_8)``: never fails, malformed sequences become U+FFFD."""
    return str(data, "utf-8", _HANDLER)


def java_hash(text: str) -> int:
    """String.hashCode: h = 31·h + unit over UTF-16 code units, wrapped to a signed 32-bit int.

    An emoji counts as its two surrogates: ``java_hash("😀") == 1772899``.
    """
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = 31 * value + unit & _MASK
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for at in range(0, len(units), 2):
            value = 31 * value + (units[at] << 8 | units[at + 1]) & _MASK
    return value - 0x100000000 if value & _SIGN else value


@lru_cache(maxsize=4096)
def _tag_hash(tags: str) -> int:
    return java_hash(tags)


def tags_code(tags: str | None) -> int:
    """The code of a TAGS property in a consume queue unit: hash of the whole string, 0 when there is none.

    The string is not split, whatever the multi-tag flag says. Source: MessageExtBrokerInner.tagsString2tagsCode.
    """
    return _tag_hash(tags) if tags else 0


def index_key(topic: str, key: str) -> str:
    """The text whose hash the index holds: ``topic#key``. Source: IndexService.buildKey."""
    return f"{topic}#{key}"


def index_hash(key_string: str) -> int:
    """The non-negative key hash of an index entry: |hash|, and 0 for -2^31, whose absolute value no int can hold.

    Source: IndexFile.indexKeyHashMethod.
    """
    value = abs(java_hash(key_string))
    return 0 if value == _SIGN else value
