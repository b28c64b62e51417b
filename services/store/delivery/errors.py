"""What delivery refuses.

::

    BrokerError
    └── DeliveryError
        ├── BadDelivery             a number or text of the request makes no sense, or is beyond a limit
        │   ├── BadFilter           the filter expression cannot be understood; says where
        │   └── BadInvisibleTime    the invisible time is outside its bounds
        ├── AlreadyThere            a topic or group that was to be made exists
        ├── UnknownGroup            the group does not exist and may not be created
        ├── ForbiddenGroup          the group may not consume
        ├── BadHandle               the receipt handle is none of this store, group or topic
        ├── HandleExpired           the message was given to somebody else meanwhile, or is dealt with
        ├── UnknownTransaction      nobody knows a half message of that id
        ├── TransactionEnded        the transaction has ended the other way
        ├── TooMuchInFlight         the limit of messages that are given out and not acknowledged
        ├── NoSuchMember            no client of that id is in the group
        ├── MemberCannotAnswer      the client cannot be asked that
        ├── MemberSilent            the client did not answer in time
        ├── NotDelivering           this store does not deliver now: a slave, or its journal is not read yet
        ├── NotSafe                 noted, but disk or replicas did not say in time that they have it
        └── UnreadableJournal       a record of the journal cannot be read
"""

from tandemmq.common.errors import Kind
from tandemmq.store.broker.errors import BrokerError


class DeliveryError(BrokerError):
    """Root of delivery's errors."""


class BadDelivery(DeliveryError):
    """A number or text of the request makes no sense, or is beyond a limit."""

    kind = Kind.INVALID


class BadFilter(BadDelivery):
    """The filter expression cannot be understood."""

    kind = Kind.BAD_FILTER


class BadInvisibleTime(BadDelivery):
    """The invisible time is outside its bounds."""

    kind = Kind.BAD_INVISIBLE_TIME


class AlreadyThere(DeliveryError):
    """A topic or group that was to be made exists; it was not changed."""

    kind = Kind.CONFLICT


class UnknownGroup(DeliveryError):
    """The consumer group does not exist and is not created by using it."""

    kind = Kind.UNKNOWN_GROUP


class ForbiddenGroup(DeliveryError):
    """The consumer group may not consume (consumeEnable=false), or its name is one of the broker's own."""

    kind = Kind.FORBIDDEN_GROUP


class BadHandle(DeliveryError):
    """The receipt handle cannot be read, or belongs to another group, topic or broker."""

    kind = Kind.BAD_HANDLE


class HandleExpired(DeliveryError):
    """The receipt handle counted once: its message was given out again since, or is dealt with."""

    kind = Kind.HANDLE_EXPIRED


class UnknownTransaction(DeliveryError):
    """Nobody knows a half message of that transaction."""

    kind = Kind.UNKNOWN_TRANSACTION


class TransactionEnded(DeliveryError):
    """The transaction has ended before, the other way."""

    kind = Kind.TRANSACTION_ENDED


class TooMuchInFlight(DeliveryError):
    """So many messages are given out and not acknowledged that no more are."""

    kind = Kind.EXHAUSTED


class NotDelivering(DeliveryError):
    """This store gives out no messages at present: it is a slave, or has not read its journal yet."""

    kind = Kind.NOT_DELIVERING

    @classmethod
    def at_present(cls, elsewhere: str | None) -> "NotDelivering":
        """Said to those who ask a slave, or a master that has not read its journal in time; see `Replica.elsewhere`."""
        refused = cls(
            "This store gives out no messages at present: it is no master, or reads its journal.",
            remedy="Ask the master, or again in a moment.",
        )
        refused.master_address = elsewhere
        return refused


class NotSafe(DeliveryError):
    """What was done is noted, but disk or replicas have not said in time that they have it."""

    kind = Kind.NOT_DURABLE
    remedy = "Repeat the call: it changes nothing twice, and waits again."

    @classmethod
    def noted(cls, status: str) -> "NotSafe":
        """Of facts of the journal; `status` is what disk and replicas said."""
        return cls(f"What was done is noted, but it is not known to be safe: {status}.")


class UnreadableJournal(DeliveryError):
    """A record of the journal is damaged, or was written by a newer release."""

    kind = Kind.DAMAGED


class NoSuchMember(DeliveryError):
    """No client of that id is in the group."""

    kind = Kind.NOT_FOUND


class MemberCannotAnswer(DeliveryError):
    """The client has no stream on which it could be asked, or its protocol has no such question."""

    kind = Kind.NOT_POSSIBLE


class MemberSilent(DeliveryError):
    """The client did not answer in time."""

    kind = Kind.AWAY
