"""Messages as protobuf's JSON: camelCase names, 64-bit numbers as text, bytes in base64."""

import json

from google.protobuf import json_format
from google.protobuf.message import Message

from tandemmq.admin.console.errors import UnreadableRequest

_DEPTH = 20
"""Messages in messages; Admin's have four."""


def from_json(body: bytes, message: Message) -> Message:
    """Fills a message with what a JSON text says. Raises UnreadableRequest."""
    try:
        text = body.decode().strip() or "{}"
        if not text.startswith("{"):
            raise ValueError("it is no JSON object")
        return json_format.Parse(text, message, max_recursion_depth=_DEPTH)
    except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
        problem = " ".join(str(error).split())[:300]
        raise UnreadableRequest(f"this is no {message.DESCRIPTOR.name} in JSON: {problem}") from None


def to_json(message: Message) -> str:
    """A message as JSON, with the fields that are 0 or empty, unless they are optional."""
    shown = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
