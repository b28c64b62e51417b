"""A command's header in the serialization that is called ROCKETMQ.

Integers big-endian, texts UTF-8::

    int16 code          codes above 32767 (those of pop) do not fit
    int8  language      ordinal in LANGUAGES
    int16 version
    int32 opaque
    int32 flag
    int32 length, remark                0: null
    int32 length, extFields             0: null
        { int16 length, name; int32 length, value }*

Java cannot tell an empty value from null; here it stays an empty text. What stands after the fields is not looked at.
"""

import struct

from tandemmq.common.wire.remoting.command import Body, Command
from tandemmq.common.wire.remoting.errors import BadHeader, NotEncodable
from tandemmq.common.wire.remoting.frames import Serialization

LANGUAGES = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST"),
    "NODE_JS",
)
_OTHER = LANGUAGES.index("OTHER")
_ORDINALS = {name: ordinal for ordinal, name in enumerate(LANGUAGES)}

_HEAD = struct.Struct(">hBhiii")
_NAME_LENGTH = struct.Struct(">h")
_LENGTH = struct.Struct(">i")


def encode(command: Command) -> bytes:
    """The header's bytes. Raises NotEncodable: a number does not fit its 16 bits, or a name is too long."""
    remark = (command.remark or "").encode("utf-8", "replace")
    parts: list[bytes] = []
    for name, value in (command.fields or {}).items():
        key, text = name.encode("utf-8", "replace"), value.encode("utf-8", "replace")
        if len(key) > 0x7FFF:
            raise NotEncodable(f"the field {name[:40]}… has a name of {len(key)} bytes; 32767 fit")
        parts += (_NAME_LENGTH.pack(len(key)), key, _LENGTH.pack(len(text)), text)
    fields = b"".join(parts)
    language = _ORDINALS.get(command.language, _OTHER)
    try:
        head = _HEAD.pack(command.code, language, command.version, command.opaque, command.flag, len(remark))
    except struct.error:
        raise NotEncodable(
            f"code {command.code} or version {command.version} does not fit 16 bits; use JSON for it"
        ) from None
    return b"".join((head, remark, _LENGTH.pack(len(fields)), fields))


def decode(header: bytes, body: Body) -> Command:
    """The command of a header and its body. Raises BadHeader."""
    try:
        code, language, version, opaque, flag, remark_length = _HEAD.unpack_from(header)
        remark, position = _text(header, _HEAD.size, remark_length)
        (fields_length,) = _LENGTH.unpack_from(header, position)
        fields = _fields(header, position + 4, fields_length)
    except struct.error:
        raise BadHeader("the header ends in the middle") from None
    except UnicodeDecodeError:
        raise BadHeader("a text of the header is no UTF-8") from None
    spoken = LANGUAGES[language] if language < len(LANGUAGES) else "OTHER"
    return Command(code, opaque, flag, fields, body, remark or None, spoken, version, Serialization.ROCKETMQ)


def _fields(header: bytes, position: int, length: int) -> dict[str, str] | None:
    """The fields in `length` bytes. Raises BadHeader, struct.error, UnicodeDecodeError."""
    end = position + length
    if length < 0 or end > len(header):
        raise BadHeader(f"fields of {length} bytes in a header of {len(header)}")
    fields: dict[str, str] = {}
    while position < end:
        name, position = _text(header, position + 2, *_NAME_LENGTH.unpack_from(header, position))
        value, position = _text(header, position + 4, *_LENGTH.unpack_from(header, position))
        fields[name] = value
    if position > end:
        raise BadHeader("the last field is longer than the fields together")
    return fields or None


def _text(header: bytes, position: int, length: int) -> tuple[str, int]:
    """A text, and where it ends. Raises BadHeader, UnicodeDecodeError."""
    end = position + length
    if length < 0 or end > len(header):
        raise BadHeader(f"a text of {length} bytes in a header of {len(header)}")
    return header[position:end].decode(), end
