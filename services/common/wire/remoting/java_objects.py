"""Bodies as fastjson writes them: no blanks, keys of maps that are numbers or objects without quotes.

``{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"maxOffset":3}}}``: RocketMQ's tools read such a map in no
other form. `common/documents/java_json.py` reads numbers as keys.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class QueueKey(NamedTuple):
    """A queue as a key of a map (RocketMQ: ``MessageQueue``)."""

    topic: str
    broker_name: str
    queue_id: int

    def to_json(self) -> dict[str, object]:
        """Its fields, by RocketMQ's names."""
        return {"brokerName": self.broker_name, "queueId": self.queue_id, "topic": self.topic}


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dumps(value: Mapping[Any, Any]) -> bytes:
    """The body. Keys are texts, integers or QueueKeys; half a surrogate pair becomes a question mark."""
    return _written(value).encode("utf-8", "replace")


_ENTRY = re.compile(r"(\{[^{}]*\})\s*:\s*(-?[0-9]+)")


def queue_numbers(body: bytes) -> dict[QueueKey, int]:
    """Numbers by queue, from a body in which they are the only map with objects as keys. Raises ValueError."""
    found: dict[QueueKey, int] = {}
    for key, number in _ENTRY.findall(body.decode("utf-8", "replace")):
        said = json.loads(key)
        queue = said.get("queueId", 0)
        if type(queue) is not int:
            raise ValueError(f"a queue has the number {queue!r}")
        found[QueueKey(str(said.get("topic")), str(said.get("brokerName")), queue)] = int(number)
    return found


def pieces(value: Any, depth: int = 2) -> Iterator[bytes]:
    """The same in pieces, for what is long: so deep in it there are many entries, each of them short."""
    if depth and value and isinstance(value, Mapping):
        before = "{"
        for key, one in value.items():
            yield f"{before}{_key(key)}:".encode("utf-8", "replace")
            yield from pieces(one, depth - 1)
            before = ","
        yield b"}"
    elif depth and value and isinstance(value, list):
        before = "["
        for one in value:
            yield before.encode()
            yield from pieces(one, depth - 1)
            before = ","
        yield b"]"
    else:
        yield _written(value).encode("utf-8", "replace")


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_key(key)}:{_written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return _encode(value)


def _key(key: object) -> str:
    if isinstance(key, QueueKey):
        return _encode(key.to_json())
    return _encode(key) if isinstance(key, str) else str(int(key))  # type: ignore[call-overload]
