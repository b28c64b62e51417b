"""A half message's record and an op record: what they say, and what is made of them. No I/O.

What comes out of a transaction is never interpreted as a send again (traps T14, T18 of the Java broker): it keeps
what the producer gave, and loses where it was to go. A committed message still says that it comes of a transaction:
consumers of RocketMQ know by that its transaction id.
"""

from typing import NamedTuple

from tandemmq.common import topic_names
from tandemmq.store.broker.preparing import HALF_QUEUE, HALF_TOPIC
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.format import properties as names
from tandemmq.store.format import sysflag
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import Record

OP_TOPIC = topic_names.HALF_ENDS
OP_QUEUE = 0
DISCARD_TOPIC = topic_names.DISCARDED_HALVES
DISCARD_QUEUE = 0
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"
"""The group whose positions in `consumerOffset.json` say how far both topics are dealt with."""

ENDING = "TANDEM_ENDING"
"""Property of our op records: how the transaction has ended; `MOVED` where its half message was appended again."""
MOVED = "moved"

_ENDINGS = {ending.value: ending for ending in (Ending.COMMIT, Ending.ROLLBACK)}
_PLACE = (names.REAL_TOPIC, names.REAL_QID, names.TRANSACTION_ID)
"""Where a half message belongs."""
_OF_A_HALF = (names.TRANSACTION_CHECK_TIMES, names.TRAN_PREPARED_QUEUE_OFFSET)


class HalfMessage(NamedTuple):
    """What a record of the half topic says of its transaction."""

    transaction_id: str
    group: str
    """The producers' group (PGROUP), which is asked; may be empty."""
    topic: str
    """The real one."""
    queue_offset: int
    physical_offset: int
    size: int
    stored_ms: int
    immunity_ms: int
    """Not to be asked about for so long; -1 where the message says nothing of it."""
    checks: int
    """How often producers were asked."""
    moved_from: int
    """Queue offset of the first record of it, where a Java broker has appended it again; else -1."""
    begun_ms: int = 0
    """When its producer made it, by the producer's clock, but not after it was stored."""


def read_half(record: Record) -> HalfMessage:
    """Never fails: numbers that make no sense are none."""
    given = record.properties
    unique = given.get(names.TRANSACTION_ID) or given.get(names.UNIQ_KEY)
    immunity = _number(given.get(names.CHECK_IMMUNITY_TIME))
    return HalfMessage(
        unique or f"{record.physical_offset:016X}",
        given.get(names.PGROUP, ""),
        given.get(names.REAL_TOPIC, ""),
        record.queue_offset,
        record.physical_offset,
        record.size,
        record.store_timestamp,
        immunity * 1000 if immunity >= 0 else -1,
        max(_number(given.get(names.TRANSACTION_CHECK_TIMES)), 0),
        _number(given.get(names.TRAN_PREPARED_QUEUE_OFFSET)),
        min(record.born_timestamp, record.store_timestamp) if record.born_timestamp > 0 else record.store_timestamp,
    )


def _number(text: str | None) -> int:
    """A Java int or long of 0 or more; -1 for anything else."""
    digits = text or ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1


class Op(NamedTuple):
    """What an op record says: the half messages with these queue offsets are dealt with."""

    queue_offset: int
    named: tuple[int, ...]
    transaction_id: str = ""
    group: str = ""
    ending: Ending | None = None
    """None: a Java broker does not say how."""
    moved: bool = False
    """The transaction goes on: its half message was appended again."""


def read_op(record: Record) -> Op:
    """One offset (RocketMQ 4.x, ours), or many with commas (5.1 and later); what is no number is left out."""
    texts = record.body.decode("ascii", "replace").split(",")
    named = tuple(number for number in map(_number, texts) if number >= 0)
    given = record.properties
    said = given.get(ENDING, "")
    return Op(
        record.queue_offset,
        named,
        given.get(names.TRANSACTION_ID, ""),
        given.get(names.PGROUP, ""),
        _ENDINGS.get(said),
        said == MOVED,
    )


def make_op(half: HalfMessage, named: int, ending: Ending | None, now_ms: int, store_host: Host) -> Message:
    """An op record about the record with queue offset `named`, in the form that every RocketMQ reads.

    `ending` is None where the half message was appended again.
    """
    given = {names.TAGS: "d", ENDING: MOVED}
    if ending is not None:
        given |= {ENDING: ending.value, names.TRANSACTION_ID: half.transaction_id, names.PGROUP: half.group}
    return Message(
        OP_TOPIC,
        OP_QUEUE,
        str(named).encode(),
        names.encode({name: value for name, value in given.items() if value}),
        born_timestamp=now_ms,
        born_host=store_host,
        store_host=store_host,
    )


def committed(record: Record, store_host: Host) -> Message:
    """The message as it is delivered (RocketMQ: ``EndTransactionProcessor.endMessageTransaction``)."""
    given = record.properties
    queue_id = max(_number(given.get(names.REAL_QID)), 0)
    extra = _kept(record, names.TRAN_MSG, names.TRANSACTION_ID)
    topic = given.get(names.REAL_TOPIC, "")
    message = internal_copy(record, topic, queue_id, store_host, extra=extra, remove=_OF_A_HALF)
    message.sys_flag |= sysflag.TRANSACTION_COMMIT
    message.prepared_transaction_offset = record.physical_offset
    return message


def discarded(record: Record, store_host: Host) -> Message:
    """The message that nobody has ended, as an operator finds it: where it belongs stays among its properties."""
    return internal_copy(record, DISCARD_TOPIC, DISCARD_QUEUE, store_host, extra=_kept(record, *_PLACE))


def renewed(record: Record, checks: int, store_host: Host) -> Message:
    """The half message once more, at the end of its queue, with how often producers were asked."""
    extra = {names.TRAN_MSG: "true", **_kept(record, *_PLACE)}
    if checks:
        extra[names.TRANSACTION_CHECK_TIMES] = str(checks)
    return internal_copy(record, HALF_TOPIC, HALF_QUEUE, store_host, extra=extra, remove=_OF_A_HALF)


def _kept(record: Record, *kept: str) -> dict[str, str]:
    """Those of its properties, as far as it has them."""
    given = record.properties
    return {name: given[name] for name in kept if name in given}
