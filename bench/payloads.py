"""What is sent: the same message for everybody, as each protocol wants it."""

import json
import random
from pathlib import Path
from struct import Struct

TOPIC = "bench"
BODY_SIZE = 1024
BATCH = 64
TAKE = 100 << 20
"""Bytes after which a download begins anew: less than what is there to download."""
UNIQUE_KEY = "AC11000100002A139E55000000000000"
KEY = "key0"
TAG = "TagA"
PROPERTIES = f"KEYS\x01{KEY}\x02TAGS\x01{TAG}\x02UNIQ_KEY\x01{UNIQUE_KEY}\x02".encode()

_PIECE = Struct(">5i")


def body(size: int = BODY_SIZE) -> bytes:
    """Bytes that do not compress, the same in every run."""
    return random.Random(size).randbytes(size)


def encoded_batch(count: int = BATCH, size: int = BODY_SIZE) -> bytes:
    """Messages as RocketMQ's producers lay them out in one body, and as our EncodedBatch takes them."""
    data = body(size)
    piece = _PIECE.pack(_PIECE.size + size + 2 + len(PROPERTIES), 0, 0, 0, size) + data
    piece += len(PROPERTIES).to_bytes(2, "big") + PROPERTIES
    return piece * count


def remoting_frame(batch: int = 0, *, no_wait: bool = False) -> bytes:
    """A send of RocketMQ's remoting protocol: SEND_MESSAGE_V2, or SEND_BATCH_MESSAGE with `batch` messages in it.

    `no_wait`: with the property WAIT=false, to be acknowledged as soon as it is in the page cache.
    """
    properties = PROPERTIES.decode() + ("WAIT\x01false\x02" if no_wait else "")
    fields = {
        "a": "bench", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1760000000000", "h": "0",
        "i": properties, "j": "0", "k": "false", "m": "true" if batch else "false",
    }  # fmt: skip
    content = encoded_batch(batch) if batch else body()
    return _remoting(320 if batch else 310, fields, content)


def remoting_pull(count: int) -> bytes:
    """A PULL_MESSAGE of `count` messages from the beginning of queue 0, with its subscription, as a 5.x client's."""
    fields = {
        "queueId": "0", "commitOffset": "0", "subscription": "*", "suspendTimeoutMillis": "0", "bname": "bench",
        "sysFlag": "4", "expressionType": "TAG", "topic": TOPIC, "consumerGroup": "bench", "maxMsgNums": str(count),
        "queueOffset": "0", "subVersion": "1", "maxMsgBytes": "2147483647",
    }  # fmt: skip
    return _remoting(11, fields)


def _remoting(code: int, fields: dict[str, str], content: bytes = b"") -> bytes:
    """A request with markers for the running number."""
    header: dict[str, object] = {
        "code": code,
        "extFields": fields,
        "flag": 0,
        "language": "JAVA",
        "opaque": 0,
        "serializeTypeCurrentRPC": "JSON",
        "version": 453,
    }
    text = json.dumps(header, separators=(",", ":")).replace('"opaque":0', '"opaque":1SSSSSSSS').encode()
    return (4 + len(text) + len(content)).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + content


def resp_xadd(batch: int = 1) -> bytes:
    """XADD of a Redis stream that is kept at some 200,000 entries, `batch` times in a pipeline."""
    words = [b"XADD", b"bench", b"MAXLEN", b"~", b"200000", b"*", b"key", KEY.encode(), b"tag", TAG.encode()]
    words += [b"id", UNIQUE_KEY.encode(), b"body", body()]
    command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return command * batch


def nats_preamble() -> bytes:
    """Greets, asks for no +OK, and subscribes to the connection's inbox."""
    return b'CONNECT {"verbose":false,"pedantic":false,"headers":true}\r\nSUB _INBOX.CCCC.* 1\r\n'


def nats_publish() -> bytes:
    """A publish with headers to the stream's subject, acknowledged into the inbox."""
    headers = f"NATS/1.0\r\nKey: {KEY}\r\nTag: {TAG}\r\nId: {UNIQUE_KEY}\r\n\r\n".encode()
    data = body()
    line = f"HPUB bench.s _INBOX.CCCC.SSSSSSSS {len(headers)} {len(headers) + len(data)}\r\n".encode()
    return line + headers + data + b"\r\n"


def write(directory: Path, name: str, data: bytes) -> Path:
    """Put a payload where a generator can read it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_bytes(data)
    return path
