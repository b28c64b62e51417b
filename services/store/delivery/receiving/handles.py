"""Receipt handles: what a consumer gives back to say which message it means. No I/O and no clock.

Opaque to clients: base64 for URLs, at most 200 characters. Inside::

    byte 0      version, 1
    8 bytes     hash of the group and the place's topic
    byte        how the place's topic follows from the one the consumer asked for (`Shown`)
    varints     queue, offset, number of the delivery, reset count of the place, start number of the store
    4 bytes     CRC-32 of all before

The checksum is against damage, not against forgery: who may call may acknowledge anything of its group anyway.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from tandemmq.common.errors import TandemError
from tandemmq.common.topic_names import RETRY
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.errors import BadHandle
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.progress import OpenEntry
from tandemmq.store.delivery.port import GivenMessage, Outcome

LONGEST_HANDLE = 200
"""Characters of a handle."""

_VERSION = 1
_HASH_SIZE = 8
_MOST = (1 << 63) - 1
_KIND_AT = 1 + _HASH_SIZE
_NUMBERS = 5
_HANDLE = re.compile(r"[A-Za-z0-9_-]+")
_TO_BASE64 = bytes.maketrans(b"-_", b"+/")
_PADDING = (b"", b"", b"==", b"=")
_LAST = ("", "", "AQgw", "AEIMQUYcgkosw048")
"""What a text can end with whose last characters stand for bytes and no bits after them, by its length modulo 4."""

_REMEDY = "Give back the handle as it was received, with the group and topic it was received for."


class Shown(IntEnum):
    """How a message's own topic follows from the topic that it was asked for with."""

    AS_ASKED = 0
    RETRY = 1
    """`%RETRY%<group>`, where classic consumers send messages back to."""
    POP_RETRY_V1 = 2
    """`%RETRY%<group>_<topic>`, a Java broker's own for POP."""
    POP_RETRY_V2 = 3
    """`%RETRY%<group>+<topic>`."""


_KINDS = frozenset(Shown)


def own_topic(group: str, topic: str, shown: Shown) -> str:
    """The topic in which a message lies that is shown as one of `topic`."""
    if shown is Shown.AS_ASKED:
        return topic
    if shown is Shown.RETRY:
        return RETRY + group
    return f"{RETRY}{group}{'_' if shown is Shown.POP_RETRY_V1 else '+'}{topic}"


def topic_shown(place: Place) -> str:
    """The topic as one of which messages of a place are given out; `%RETRY%<group>` is shown as itself."""
    for shown in (Shown.POP_RETRY_V1, Shown.POP_RETRY_V2):
        prefix = own_topic(place.group, "", shown)
        if place.topic.startswith(prefix) and len(place.topic) > len(prefix):
            return place.topic[len(prefix) :]
    return place.topic


class ReceiptHandle(NamedTuple):
    """What a handle says: this message, given out for the `number`-th time, between these resets, by that start."""

    place: Place
    offset: int
    number: int
    resets: int
    start: int


def encode_handle(handle: ReceiptHandle, shown: Shown) -> str:
    """The text of a handle."""
    place = handle.place
    data = bytearray((_VERSION,))
    data += _name_hash(place.group, place.topic)
    data.append(shown)
    for number in (place.queue, handle.offset, handle.number, handle.resets, handle.start):
        while number > 0x7F:
            data.append(number & 0x7F | 0x80)
            number >>= 7
        data.append(number)
    data += crc32(data).to_bytes(4, "big")
    return _text(data)


def _text(data: bytes | bytearray) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class HandleCore(Protocol):
    """The compiled twin: the module `tandemmq.store.delivery.compiled.handle_codec`."""

    def encode(
        self, prefix: str, check: int, shown: int, queue: int, offset: int, number: int, resets: int, start: int
    ) -> str:
        """The text of a handle. `prefix`, `check`: the text of its first nine bytes, and their CRC-32."""
        ...

    def encode_run(
        self, prefix: str, check: int, queue: int, offsets: list[int], number: int, resets: int, start: int
    ) -> list[str]:
        """The texts of handles of the topic that was asked for, which differ in their offsets only."""
        ...

    def give_run(
        self,
        prefix: str,
        check: int,
        place: Place,
        numbers: tuple[int, int],
        records: Sequence[tuple[int, bytes]],
        said: tuple[str, int],
        messages: list[GivenMessage],
        shares: list[Any],
        kinds: tuple[type[GivenMessage], type],
    ) -> int:
        """Put messages of a place into an answer, all given for the first time: the bytes of their records.

        `numbers`: resets and start. `said`: topic and invisible time of each. `kinds`: what `messages` and `shares`
        are lists of.
        """
        ...

    def decode(self, text: str, prefix: str, check: int) -> tuple[int, int, int, int, int] | None:
        """Queue, offset, number, resets, start. None: it is none of the topic that was asked for, or cannot be read."""
        ...

    def take(
        self,
        texts: Sequence[str],
        prefix: str,
        check: int,
        start: int,
        done: dict[Place, set[int]],
        state_of: Callable[[int], tuple[Place, int, dict[int, OpenEntry] | None]],
        refusal: Callable[[str], TandemError | None],
        outcome: type[Outcome],
    ) -> list[Outcome]:
        """What becomes of handles of the start `start` that are given back; see `Acknowledger`."""
        ...


class Handles:
    """Encodes and decodes handles, by the compiled core where there is one."""

    def __init__(self) -> None:
        self.core: HandleCore | None = None

    def encode(self, handle: ReceiptHandle, shown: Shown) -> str:
        """See `encode_handle`."""
        core, place = self.core, handle.place
        if core is None:
            return encode_handle(handle, shown)
        prefix, check = _prefix(place.group, place.topic)
        return core.encode(prefix, check, shown, place.queue, *handle[1:])

    def encode_run(self, first: ReceiptHandle, offsets: list[int]) -> list[str]:
        """Texts of handles that differ from `first` in their offsets only, of the topic that was asked for."""
        core, place = self.core, first.place
        if core is None:
            return [encode_handle(first._replace(offset=offset), Shown.AS_ASKED) for offset in offsets]
        prefix, check = _prefix(place.group, place.topic)
        return core.encode_run(prefix, check, place.queue, offsets, first.number, first.resets, first.start)

    @staticmethod
    def prefix(group: str, topic: str) -> tuple[str, int]:
        """How the texts of all handles of a group and topic begin, and the CRC-32 of the bytes that this stands for."""
        return _prefix(group, topic)

    def decode(self, text: str, group: str, topic: str) -> ReceiptHandle:
        """See `decode_handle`."""
        handle = self.decode_all((text,), group, topic)[0]
        if isinstance(handle, BadHandle):
            raise handle
        return handle

    def decode_all(self, texts: Iterable[str], group: str, topic: str) -> list[ReceiptHandle | BadHandle]:
        """What each of several texts says, or why it is refused."""
        core, places = self.core, dict[int, Place]()
        prefix, check = ("", 0) if core is None else _prefix(group, topic)
        found: list[ReceiptHandle | BadHandle] = []
        for text in texts:
            numbers = None if core is None else core.decode(text, prefix, check)
            if numbers is None:
                try:
                    found.append(decode_handle(text, group, topic))
                except BadHandle as error:
                    found.append(error)
                continue
            queue, offset, number, resets, start = numbers
            place = places.get(queue)
            if place is None:
                place = places[queue] = new_tuple(Place, (group, topic, queue))
            found.append(new_tuple(ReceiptHandle, (place, offset, number, resets, start)))
        return found


def decode_handle(text: str, group: str, topic: str) -> ReceiptHandle:
    """What a handle says, given back for a group and the topic that was asked for.

    Raises:
        BadHandle: it cannot be read, or is one of another group or topic.
    """
    data = _bytes(text)
    kind = data[_KIND_AT]
    if kind == Shown.AS_ASKED:
        place_topic = topic
    elif kind in _KINDS:
        place_topic = own_topic(group, topic, Shown(kind))
    else:
        raise _unreadable()
    if data[1:_KIND_AT] != _name_hash(group, place_topic):
        raise BadHandle(f"The receipt handle is not one of group {group} and topic {topic}.", remedy=_REMEDY)
    queue, offset, delivery, resets, start = _numbers(data)
    return ReceiptHandle(Place(group, place_topic, queue), offset, delivery, resets, start)


def _bytes(text: str) -> bytes:
    """The bytes of a handle before its checksum, which is right. Raises BadHandle."""
    rest = len(text) % 4
    if len(text) > LONGEST_HANDLE or not _HANDLE.fullmatch(text) or (rest and text[-1] not in _LAST[rest]):
        raise _unreadable()
    data = binascii.a2b_base64(text.encode().translate(_TO_BASE64) + _PADDING[rest])
    whole, check = data[:-4], data[-4:]
    if len(whole) < _HASH_SIZE + 7 or whole[0] != _VERSION or crc32(whole).to_bytes(4, "big") != check:
        raise _unreadable()
    return whole


def _numbers(data: bytes) -> list[int]:
    """The five varints that end a handle. Raises BadHandle."""
    numbers: list[int] = []
    number = shift = 0
    for byte in data[_KIND_AT + 1 :]:
        number |= (byte & 0x7F) << shift
        if number > _MOST:
            raise _unreadable()
        if byte > 0x7F:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    if len(numbers) != _NUMBERS or data[-1] > 0x7F:
        raise _unreadable()
    return numbers


def _unreadable() -> BadHandle:
    return BadHandle("The receipt handle cannot be read: it is none of this broker's.", remedy=_REMEDY)


@lru_cache(maxsize=4096)
def _prefix(group: str, topic: str) -> tuple[str, int]:
    """How the texts of all handles of a group and topic begin, and the CRC-32 of the bytes that this stands for."""
    data = bytes((_VERSION,)) + _name_hash(group, topic)
    return _text(data), crc32(data)


@lru_cache(maxsize=4096)
def _name_hash(group: str, topic: str) -> bytes:
    names = f"{group}\0{topic}".encode(errors="surrogatepass")
    return hashlib.blake2b(names, digest_size=_HASH_SIZE).digest()
