"""The JSON of RocketMQ's config files: fastjson writes integer keys without quotes, which strict parsers refuse."""

import json
import re
from typing import Any

# A whole string, or a bare integer where a key stands. Strings come first, so that their content is never touched.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<before>[{,]\s*)(?P<key>-?\d+)(?=\s*:)', re.DOTALL)


def loads(data: bytes) -> dict[str, Any]:
    """The object that the bytes say; bare integer keys become texts.

    Raises:
        ValueError: the bytes are no UTF-8, no JSON, or no object (an empty file is none either).
    """
    document = json.loads(_TOKEN.sub(_quoted, data.decode("utf-8-sig")))
    if not isinstance(document, dict):
        raise ValueError(f"a JSON object was expected, not {type(document).__name__}")
    return document


def dumps(document: dict[str, Any]) -> bytes:
    """The object as RocketMQ lays it out (tabs, no blank behind the colon, keys sorted), in standard JSON."""
    return json.dumps(document, ensure_ascii=False, indent="\t", separators=(",", ":"), sort_keys=True).encode()


def _quoted(match: re.Match[str]) -> str:
    key = match["key"]
    return match[0] if key is None else f'{match["before"]}"{key}"'
