"""The properties string of a record.

    name 01 value 02   repeated, UTF-8, no escaping

RocketMQ up to 4.9.0 and from 5.2.0 on writes the last 02, 4.9.1 to 5.1.4 do not; both are read.
Source: MessageDecoder.messageProperties2String and string2messageProperties, names from MessageConst.
"""

from collections.abc import Mapping
from functools import lru_cache

from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.java import decode_utf8

VALUE_END = 0x02
_NAME_END = "\x01"
_VALUE_END = "\x02"

KEYS = "KEYS"
TAGS = "TAGS"
UNIQ_KEY = "UNIQ_KEY"
WAIT = "WAIT"
DELAY = "DELAY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QID = "REAL_QID"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME = "RECONSUME_TIME"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
MIN_OFFSET = "MIN_OFFSET"
MAX_OFFSET = "MAX_OFFSET"
TRAN_MSG = "TRAN_MSG"
PGROUP = "PGROUP"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID = "__transactionId__"
CLUSTER = "CLUSTER"
CRC32 = "__CRC32#"
INNER_NUM = "INNER_NUM"
INNER_BASE = "INNER_BASE"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_OUT_MS = "TIMER_OUT_MS"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
SHARDING_KEY = "__SHARDINGKEY"
PRIORITY = "_SYS_MSG_PRIORITY_"
DUP_INFO = "DUP_INFO"
POP_CK = "POP_CK"
INSTANCE_ID = "INSTANCE_ID"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"

KEY_SEPARATOR = " "
"""Between the keys of one KEYS value."""


class IllegalProperty(FormatError):
    """A name or value that the properties string cannot carry."""


def check_text(name: str, value: str) -> None:
    """Refuse what would be read back as something else: 01 or 02 inside, an empty name, text that is not Unicode."""
    if not name:
        raise IllegalProperty("a property needs a name")
    text = name + value
    if _NAME_END in text or _VALUE_END in text:
        raise IllegalProperty(
            f"property {name!r}: the characters 01 and 02 separate properties and cannot be part of one"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise IllegalProperty(f"property {name!r} holds half of a surrogate pair") from error


def encode(mapping: Mapping[str, str], trailing: bool = True) -> bytes:
    """The bytes of ``mapping`` in its own order (Java's is that of a HashMap and means nothing).

    ``trailing``: end with 02, as RocketMQ 5.2 does. A property with an empty value is written and, as in Java, ignored
    by whoever reads it. Raises IllegalProperty.
    """
    if not mapping:
        return b""
    text = _VALUE_END.join([f"{name}\x01{value}" for name, value in mapping.items()])
    separators = len(mapping)
    if text.count(_NAME_END) != separators or text.count(_VALUE_END) != separators - 1 or "" in mapping:
        for name, value in mapping.items():
            check_text(name, value)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise IllegalProperty("a property holds half of a surrogate pair") from error
    return data + b"\x02" if trailing else data


def decode(data: bytes | memoryview) -> dict[str, str]:
    """The properties in ``data`` by the rules of Java's parser.

    Split at 02; what has no 01, an empty name or an empty value is ignored; of equal names the last one wins; the value
    may contain 01. Malformed UTF-8 becomes U+FFFD. Never fails.
    """
    found: dict[str, str] = {}
    for pair in decode_utf8(data).split(_VALUE_END):
        name, _, value = pair.partition(_NAME_END)
        if name and value:
            found[name] = value
    return found


def remove(data: bytes, *names: str) -> bytes:
    """``data`` without the properties called ``names``; everything else and the ending stay as they are."""
    unwanted = _as_bytes(names)
    ended = data.endswith(b"\x02")
    pairs = data.removesuffix(b"\x02").split(b"\x02")
    kept = [pair for pair in pairs if pair.partition(b"\x01")[0] not in unwanted or b"\x01" not in pair]
    if len(kept) == len(pairs):
        return data
    return b"\x02".join(kept) + (b"\x02" if ended and kept else b"")


@lru_cache(256)
def _as_bytes(names: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(name.encode() for name in names)


def append(data: bytes, mapping: Mapping[str, str]) -> bytes:
    """``data`` with the pairs of ``mapping`` after it (they win over earlier ones), ended by 02."""
    if data and data[-1] != VALUE_END:
        data += b"\x02"
    return data + encode(mapping)
