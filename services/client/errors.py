"""What a client raises.

::

    TandemError
    ├── ClientError
    │   ├── RequestFailed         a store has answered, and did not do what was asked, or not all of it; itself: a
    │   │   │                     fault in the store that nobody foresaw, of which its log tells
    │   │   ├── Refused           no repetition helps: something has to be changed first
    │   │   │   ├── NoLongerHeld     the message was given to somebody else meanwhile, or is dealt with
    │   │   │   ├── GroupRefused     the consumer group does not exist, or may not consume
    │   │   │   ├── FilterRefused    the filter cannot be understood; the message says where
    │   │   │   └── TransactionOver  the transaction has ended the other way, or nobody knows it
    │   │   ├── NotMaster         the store is a slave, or was replaced; `leader` is who is master     Retriable
    │   │   ├── Recovering        the store has just started, or makes ready what was asked for        Retriable
    │   │   ├── NotTaken          it can do nothing at present: disk full, too busy, stopping          Retriable
    │   │   ├── NotReplicated     fewer replicas have the message, or are there, than there must be    Retriable
    │   │   └── NotDurable        stored, and not known to be on the disk
    │   ├── StoreUnreachable      there is no answer                                                   Retriable
    │   ├── DamagedMessage        the answer came, and its bytes are not what was stored
    │   └── ClientFault           the client itself has failed; `__cause__` says at what
    └── UnusableFile              a certificate or a key cannot be read: nothing was sent

`Retriable` is a class too: `except Retriable` catches all that the same request may overcome, later or elsewhere.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import grpc

from tandemmq.common.errors import Kind, TandemError
from tandemmq.store.v1 import store_pb2

if TYPE_CHECKING:
    from tandemmq.client.outgoing import Sent

STATUS_KEY = "rocketmq-status"
"""Trailing metadata of a failed call: RocketMQ's name of the failure."""

KIND_KEY = "tandem-kind"
"""That with the kind of the failure, a name of `common.errors.Kind`."""

MASTER_KEY = "tandem-master"
"""That with the master's address, from a store that is none; empty where it does not know."""


class ClientError(TandemError):
    """Root of the client's errors. `code`: name of the gRPC status; `status`: RocketMQ's, empty where there is none."""

    def __init__(self, message: str, code: str, status: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later, or at another store of the broker."""
        return isinstance(self, Retriable)


class Retriable(ClientError):
    """The same request may succeed later, or at another store of the broker."""


class RequestFailed(ClientError):
    """A store has answered, and did not do what was asked, or not all of it.

    Itself, and none of its subclasses: something failed in the store that nobody foresaw, and its log says what. What
    was sent may be stored or not.
    """

    sent: "tuple[Sent, ...]" = ()
    """Of a send: the receipts of what was stored nevertheless, in order; empty: nothing was."""


class Refused(RequestFailed):
    """The request was refused, and would be again: something has to be changed first. Nothing was done."""


class NoLongerHeld(Refused):
    """The message is not the caller's any more: its time was over and others got it, or it is dealt with."""


class GroupRefused(Refused):
    """The consumer group does not exist and is not created by using it, or it may not consume."""


class FilterRefused(Refused):
    """The filter cannot be understood."""


class TransactionOver(Refused):
    """The transaction has ended the other way, or is not known."""


class NotMaster(RequestFailed, Retriable):
    """The store that answered is a slave, or was replaced by a newer master. Nothing was done."""

    def __init__(self, message: str, code: str, status: str = "", leader: str = "") -> None:
        """`leader`: where the master serves clients, host:port; empty: the store does not know."""
        super().__init__(message, code, status)
        self.leader = leader


class Recovering(RequestFailed, Retriable):
    """The store has just started, or restores what the request needs. Nothing was done."""


class NotTaken(RequestFailed, Retriable):
    """The store is there and can do nothing at present: its disk is full, it is too busy, it stops."""


class NotReplicated(RequestFailed, Retriable):
    """Not as many replicas have the message as must have it.

    `sent` has what was stored all the same: who sends it again with another UNIQ_KEY has it twice. Without `sent`
    nothing was stored, since too few replicas are in sync.
    """


class NotDurable(RequestFailed):
    """Stored (`sent`), and not known to be on the disk: the flush has failed or takes too long."""


class StoreUnreachable(Retriable):
    """No store answers, or not in time. What was sent may be stored or not: send it again with the same UNIQ_KEY."""


class DamagedMessage(ClientError):
    """Bytes came that are not whole, intact messages: their checksum does not fit."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The answer has a message that is damaged: {reason}.", "DATA_LOSS")


class ClientFault(ClientError):
    """Something failed that nobody foresaw, in the background; `__cause__` is what it was."""

    def __init__(self, doing: str, cause: BaseException) -> None:
        super().__init__(f"{doing} has failed: {type(cause).__name__}: {cause}", "INTERNAL")
        self.__cause__ = cause


class UnusableFile(TandemError):
    """A file for TLS cannot be read."""

    kind = Kind.MISCONFIGURED


def from_rpc(error: grpc.RpcError) -> ClientError:
    """The error of a failed call."""
    call = cast(Any, error)
    code = call.code().name
    pairs = cast(Iterable[tuple[str, str | bytes]], call.trailing_metadata() or ())
    said = {key: str(value) for key, value in pairs if key in (STATUS_KEY, KIND_KEY, MASTER_KEY)}
    status = said.get(STATUS_KEY, "")
    if not status and code in _NO_ANSWER:
        return StoreUnreachable(call.details() or code, code)
    return refused(call.details() or code, code, status, said.get(KIND_KEY, ""), said.get(MASTER_KEY))


def from_refusal(refusal: store_pb2.Refusal) -> RequestFailed:
    """The error of a refusal inside an answer."""
    master = refusal.master_address if refusal.HasField("master_address") else None
    return refused(refusal.message, refusal.code, refusal.rocketmq_status, refusal.kind, master)


def refused(message: str, code: str, status: str, kind: str = "", master: str | None = None) -> RequestFailed:
    """The error of a refusal, by what it was told with. `kind` is empty, and `master` None, where nothing was said."""
    if master is not None:
        return NotMaster(message, code, status, master)
    if kind in _RECOVERING:
        return Recovering(message, code, status)
    found = _STATUSES.get(status)
    if found is None:
        passes = code == "UNAVAILABLE" or (code == "RESOURCE_EXHAUSTED" and status) or status == _ELSEWHERE
        found = NotTaken if passes else RequestFailed if code == _UNFORESEEN else Refused
    return found(message, code, status)


def not_ok(status: str, message: str, sent: "tuple[Sent, ...]") -> RequestFailed:
    """The error of a receipt that does not say PUT_OK. `sent`: what was stored."""
    error = refused(message, "OK", status)
    error.sent = sent
    return error


_ELSEWHERE = "SERVICE_NOT_AVAILABLE"
"""What a store says that can do nothing, or is not the master."""

_UNFORESEEN = "INTERNAL"
"""The code of what failed in a store at whatever point: nobody knows what it has done before that."""

_NO_ANSWER = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")
"""Codes that gRPC itself gives where no store said anything."""

_RECOVERING = frozenset({Kind.STARTING.name, Kind.REBUILDING.name, Kind.NOT_DELIVERING.name})
"""A master that does not deliver reads its journal."""

_STATUSES: dict[str, type[RequestFailed]] = {
    "INVALID_RECEIPT_HANDLE": NoLongerHeld,
    "CONSUMER_GROUP_NOT_FOUND": GroupRefused,
    "FORBIDDEN": GroupRefused,
    "ILLEGAL_FILTER_EXPRESSION": FilterRefused,
    "INVALID_TRANSACTION_ID": TransactionOver,
    "IN_SYNC_REPLICAS_NOT_ENOUGH": NotReplicated,
    "FLUSH_SLAVE_TIMEOUT": NotReplicated,
    "SLAVE_NOT_AVAILABLE": NotReplicated,
    "FLUSH_DISK_TIMEOUT": NotDurable,
}
"""By RocketMQ's name of the failure."""
