"""RemotingMutator: what strangers send to port 10911: any code, fields without sense, damaged frames.

Input number N of a seed is always the same: pieces of bytes that a connection writes one after the other. Most of them
are whole frames, since a broken one ends its connection before a handler has seen anything.
"""

import json
import random
import struct
from collections.abc import Callable

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.binary_header import LANGUAGES
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import ONE_WAY, RESPONSE, Command
from tandemmq.common.wire.remoting.errors import NotEncodable
from tandemmq.common.wire.remoting.frames import Serialization
from tandemmq.store.format.batch import encode_client_batch

TOPICS = ("fuzz-a", "fuzz-b", "%RETRY%fuzz-g", "%DLQ%fuzz-g", "SCHEDULE_TOPIC_XXXX", "TBW102", "RMQ_SYS_TRACE_TOPIC")
GROUPS = ("fuzz-g", "fuzz-h", "CID_RMQ_SYS_TRANS", "DEFAULT_CONSUMER")
NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "7",
    "32",
    "100000",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "1760000000000",
)
TEXTS = (
    "", " ", "x", "*", "true", "false", "null", "TAG", "SQL92", "a || b", "a > 1 AND (", "{}", "[]", '{"a":[{}]}', "\0",
    "KEYS\1k\2", "DELAY\x0199\2TAGS\1t\2", "\1\2\1\2", "a\1b", "é漢😀", "x" * 300, "y" * 40_000, "/../../etc", "1_0",
    "\u0661", "7F00000100002A9F0000000000000000", "7F00000100002A9FFFFFFFFFFFFFFFFF", "1 2 3 4 5 6 7 8", "GET_ALL",
    "0 0 0 0 0 0 a",
    "+message.type=FIFO", "-reserve.time", "+reserve.time=99999999999999", "brokerPermission=0", "CLUSTERING", "POP",
)  # fmt: skip
_NUMBERED = """
queueId queueOffset maxMsgNums sysFlag commitOffset suspendTimeoutMillis subVersion offset timestamp readQueueNums perm
writeQueueNums topicSysFlag d e f g h j l delayLevel maxReconsumeTimes tranStateTableOffset commitLogOffset maxNum flag
commitOrRollback beginTimestamp endTimestamp invisibleTime pollTime bornTime initMode popTime reviveQid index count
maxMsgBytes bornTimestamp reconsumeTimes defaultTopicQueueNums brokerId bodyCrc32
"""
_WORDED = """
subscription expressionType c i k m n properties defaultTopic order attributes key unitMode msgId offsetMsgId lo bname
originMsgId transactionId extraInfo exp expType isForce isC clientID clientAddr clientId brokerName recallHandle value
strategyName statsName statsKey fromTransactionCheck setZeroIfNotFound batch removeOffset jstackEnable boundaryType
topicFilterType brokerAddr clusterName haServerAddr namespace storeHost bornHost _X
"""
FIELDS = {
    "topic": TOPICS, "b": TOPICS, "originTopic": TOPICS, "topicName": TOPICS, "group": GROUPS, "consumerGroup": GROUPS,
    "a": GROUPS, "producerGroup": GROUPS, "groupName": GROUPS, "srcGroup": GROUPS, "destGroup": GROUPS,
    **dict.fromkeys(_NUMBERED.split(), NUMBERS),
    **dict.fromkeys([*_WORDED.split(), ""], TEXTS),
}  # fmt: skip
RIGHT = {name: values[0] for name, values in FIELDS.items()} | {
    "c": "TBW102", "defaultTopic": "TBW102", "d": "4", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
    "defaultTopicQueueNums": "4", "g": "1760000000000", "i": "KEYS\1k\2TAGS\1a\2", "properties": "KEYS\1k\2",
    "maxMsgNums": "8",
    "subscription": "*", "expressionType": "TAG", "sysFlag": "4", "bornTimestamp": "1760000000000", "key": "k",
    "exp": "*",
    "invisibleTime": "10000", "offsetMsgId": "7F00000100002A9F0000000000000000",
    "msgId": "7F00000100002A9F0000000000000000",
    "endTimestamp": "9223372036854775807", "maxNum": "8", "timestamp": "1760000000000", "brokerName": "broker-a",
    "strategyName": "AVG", "clientID": "c", "clientId": "c", "transactionId": "7F0000", "commitOrRollback": "8",
    "extraInfo": "0 1760000000000 10000 0 0 broker-a 0 0", "order": "false", "topicFilterType": "SINGLE_TAG",
    "attributes": "+message.type=NORMAL", "statsName": "TOPIC_PUT_NUMS", "statsKey": "fuzz-a", "boundaryType": "LOWER",
}  # fmt: skip
"""What some request makes sense with; the others do not look at it."""
_QUEUE = {"topic": "fuzz-a", "brokerName": "broker-a", "queueId": 0}
_CONSUMER = {
    "groupName": "fuzz-g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
    "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False,
    "subscriptionDataSet": [{"topic": "fuzz-a", "subString": "*", "subVersion": 1, "expressionType": "TAG",
    "tagsSet": []}],
}  # fmt: skip
_TOPIC = {
    "topicName": "fuzz-a",
    "readQueueNums": 4,
    "writeQueueNums": 4,
    "perm": 6,
    "topicSysFlag": 0,
    "attributes": {},
}
_GROUP = {"groupName": "fuzz-g", "retryMaxTimes": 3, "retryQueueNums": 1, "consumeEnable": True, "attributes": {}}
_REGISTRATION = {
    "filterServerList": [],
    "topicConfigSerializeWrapper": {
        "dataVersion": {"counter": 1, "timestamp": 2},
        "topicConfigTable": {"fuzz-a": _TOPIC},
    },
}
DOCUMENTS: dict[int, object] = {
    RequestCode.HEART_BEAT: {"clientID": "c", "consumerDataSet": [_CONSUMER],
    "producerDataSet": [{"groupName": "fuzz-p"}]},
    RequestCode.CHECK_CLIENT_CONFIG: {
        "clientId": "c", "group": "fuzz-g", "subscriptionData": {"topic": "fuzz-a", "subString": "a > 1",
        "expressionType": "SQL92"},
    },
    RequestCode.LOCK_BATCH_MQ: {"consumerGroup": "fuzz-g", "clientId": "c", "mqSet": [_QUEUE]},
    RequestCode.UNLOCK_BATCH_MQ: {"consumerGroup": "fuzz-g", "clientId": "c", "mqSet": [_QUEUE]},
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _GROUP,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: {"groupConfigList": [_GROUP]},
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: {"topicConfigList": [_TOPIC]},
    RequestCode.SET_MESSAGE_REQUEST_MODE: {
        "consumerGroup": "fuzz-g", "topic": "fuzz-a", "mode": "POP", "popShareQueueNum": -1,
    },
    RequestCode.QUERY_ASSIGNMENT: {
        "topic": "fuzz-a", "consumerGroup": "fuzz-g", "clientId": "c", "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    },
    RequestCode.REGISTER_BROKER: _REGISTRATION,
}  # fmt: skip
"""What clients say in the bodies of these requests."""
_BATCH = encode_client_batch([(0, b"one", b"KEYS\1k\2"), (0, b"two", b"")])
BODIES: tuple[bytes, ...] = (
    b"", b"", b"{", b"{}", b"[]", b"null", b"0", b'"x"', b"\xff\xfe", b"[" * 5_000, b'{"a":' * 5_000, b"9" * 10_000,
    b"1e999",
    b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"fuzz-a"}:1}}',
    b"brokerPermission=0\nfileReservedTime=x",
    b"x" * 70_000, _BATCH, _BATCH,
)  # fmt: skip
"""Of requests that have none, and what is no document."""
VALUES: tuple[object, ...] = (
    None, True, 0, -1, 1.5, 2**31, 2**63, 10**400, "", "x", "\ud800", "fuzz-b", "\1", [], {}, [None], [[]],
    {"": None}, [{}] * 3,
    {"a": "b"}, ["*"], "y" * 5_000,
)  # fmt: skip

HEADERS: tuple[bytes, ...] = (
    b"", b"null", b"[]", b"{}", b'{"code":}', b'{"code":10', b'{"code":"10"}', b'{"code":1e400}', b'{"code":NaN}',
    b'{"code":10,"code":11}', b'{"code":310,"extFields":[]}', b'{"code":310,"extFields":{"a":{"b":[1]}}}',
    b"\xef\xbb\xbf{}",
    b'{"code":310,"extFields":{"a":"\\ud800"}}', b'{"code":310,"opaque":99999999999}', b'{"code":34,"language":7}',
    b'{"code":34,"remark":[]}', b'{"code":' + b"9" * 5_000 + b"}", b"[" * 20_000, b'{"extFields":' * 20_000,
    b'{"code":310,"flag":-1,"version":-1,"language":"KLINGON","serializeTypeCurrentRPC":"XML","more":{}}',
    "{}".encode("utf-16"), b'{"code":310,"extFields":{"b":"fuzz-a\xff"}}', b"\0" * 21,
    b"\x01\x36\xff\x7f\xff" + b"\xff" * 40,
)  # fmt: skip
"""Of a header, whatever its serialization says."""

_CODES = tuple(int(code) for code in RequestCode)
_STRANGE_CODES = (0, -1, 1, 9, 12345, 32767, -32768, 2**31 - 1, -(2**31))


def framed(header: bytes, body: bytes, serialization: int) -> bytes:
    """A frame whose prefix is right, whatever is in it."""
    return struct.pack(">II", 4 + len(header) + len(body), serialization << 24 | len(header)) + header + body


class RemotingMutator:
    """Makes inputs. `recorded`: frames of real programs, which it damages too."""

    def __init__(self, seed: int, recorded: list[bytes] | None = None) -> None:
        self.seed = seed
        self._recorded = recorded or []

    def make(self, number: int) -> list[bytes]:
        """The pieces of an input."""
        chance = random.Random(self.seed << 64 | number)
        kinds = [self._request, self._request, self._request, self._garbage_header, self._damaged, self._strange]
        frames = [chance.choice(kinds)(chance) for _ in range(chance.choice([1, 1, 2, 5, 20]))]
        return _in_pieces(chance, b"".join(frames))

    def _request(self, chance: random.Random) -> bytes:
        """A whole frame: a code with fields that it may or may not know."""
        code = chance.choice(_CODES) if chance.random() < 0.97 else chance.choice(_STRANGE_CODES)
        if chance.random() < 0.7:
            fields = dict(RIGHT)
            for name in chance.sample(list(FIELDS), chance.choice([0, 1, 2, 8])):
                fields[name] = self._value(chance, name)
        else:
            names = chance.sample(list(FIELDS), chance.randrange(len(FIELDS)))
            fields = {name: self._value(chance, name) for name in names}
        command = Command(
            code,
            chance.choice([0, 1, -1, 77, 2**31 - 1]),
            chance.choice([0, 0, 0, 0, 0, 0, ONE_WAY, RESPONSE, RESPONSE | ONE_WAY, 1 << 30]),
            fields if chance.random() < 0.98 else None,
            self._body(chance, code),
            chance.choice([None, None, None, "a remark", ""]),
            chance.choice([*LANGUAGES, "KLINGON"]),
            chance.choice([0, 401, 435, 495, 32767, -1]),
            chance.choice(list(Serialization)),
        )
        try:
            return codec.encode(command)
        except NotEncodable:
            command.serialization = Serialization.JSON
            return codec.encode(command)

    @staticmethod
    def _value(chance: random.Random, name: str) -> str:
        fitting = chance.random() < 0.9
        return chance.choice(FIELDS[name] if fitting else NUMBERS + TEXTS)

    @staticmethod
    def _body(chance: random.Random, code: int) -> bytes:
        body = chance.choice(BODIES)
        if chance.random() < 0.9 and code in DOCUMENTS:
            document = DOCUMENTS[code] if chance.random() < 0.9 else chance.choice(list(DOCUMENTS.values()))
            for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
                document = _reshaped(chance, document)
            body = json.dumps(document).encode()
        if body and chance.random() < 0.1:
            body = _damage(chance, body)
        return body

    @staticmethod
    def _garbage_header(chance: random.Random) -> bytes:
        header = chance.choice(HEADERS)
        if chance.random() < 0.2:
            header = json.dumps({"code": chance.choice(_CODES), chance.choice(["flag", "extFields", "x"]): {}}).encode()
        return framed(header, chance.choice(BODIES), chance.choice([0, 0, 1]))

    def _damaged(self, chance: random.Random) -> bytes:
        """Behind a right prefix, so that it is looked at; now and then the prefix too."""
        whole = chance.choice(self._recorded) if self._recorded and chance.random() < 0.7 else self._request(chance)
        if chance.random() < 0.2:
            return _damage(chance, whole)
        (word,) = struct.unpack_from(">I", whole, 4)
        end = 8 + (word & 0xFF_FFFF)
        return framed(_damage(chance, whole[8:end]), whole[end:], word >> 24)

    @staticmethod
    def _strange(chance: random.Random) -> bytes:
        """No frame, or one that never ends."""
        return chance.choice(
            (
                b"GET / HTTP/1.1\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"\x16\x03\x01\x02\0" + chance.randbytes(100),  # TLS, more or less
                b"\x16",
                struct.pack(">II", 1 << 24, 100) + b"{",
                struct.pack(">II", (1 << 24) + 1, 100),
                struct.pack(">II", 0xFFFFFFFF, 0),
                struct.pack(">II", 3, 0),
                struct.pack(">II", 100, 200) + bytes(100),
                struct.pack(">II", 4, 0xFF << 24),
                framed(b"", b"", 0),
                chance.randbytes(chance.randrange(1, 60)),
            )
        )


def _reshaped(chance: random.Random, document: object) -> object:
    """A value of it, however deep, is another, is gone, or has company."""
    if isinstance(document, dict) and document and chance.random() < 0.9:
        changed = dict(document)
        key = chance.choice(list(changed))
        kind = chance.random()
        if kind < 0.1:
            del changed[key]
        elif kind < 0.2:
            changed[chance.choice(["x", "topic", "groupName", "0"])] = chance.choice(VALUES)
        else:
            changed[key] = _reshaped(chance, changed[key])
        return changed
    if isinstance(document, list) and document and chance.random() < 0.8:
        at = chance.randrange(len(document))
        return [*document[:at], _reshaped(chance, document[at]), *document[at:]]
    return chance.choice(VALUES)


def _damage(chance: random.Random, data: bytes) -> bytes:
    """A few bytes changed, lost, doubled or put in."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(changed) + 1)
        kind: Callable[[], None] = chance.choice(
            (
                lambda at=at: changed.__setitem__(slice(at, at + 1), bytes([chance.randrange(256)])),
                lambda at=at: changed.__delitem__(slice(at, at + chance.choice([1, 4, 30]))),
                lambda at=at: changed.__setitem__(slice(at, at), changed[at : at + 20]),
                lambda at=at: changed.__setitem__(slice(at, at), chance.randbytes(4)),
                lambda at=at: changed.__delitem__(slice(at, None)),
            )
        )
        kind()
    return bytes(changed)


def _in_pieces(chance: random.Random, data: bytes) -> list[bytes]:
    """As one, or cut anywhere; the end may be missing."""
    if chance.random() < 0.1:
        data = data[: chance.randrange(len(data) + 1)]
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice([0, 0, 1, 3])))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
