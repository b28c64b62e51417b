"""What fronts ask of delivery, and what they get. Fronts translate; everything that is meant is behind this."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple, Protocol

from tandemmq.common.errors import TandemError
from tandemmq.store.format.host import Host

ANY = -1
"""Any queue of a topic."""


class FilterKind(StrEnum):
    """How a filter expression is to be read."""

    TAG = "TAG"
    SQL = "SQL92"


class Subscription(NamedTuple):
    """Which messages of a topic a consumer wants."""

    expression: str = "*"
    kind: FilterKind = FilterKind.TAG


EVERYTHING = Subscription()


@dataclass(frozen=True, slots=True)
class Wish:
    """A receive: what is wanted.

    `invisible_ms`: 0 for the group's default. `renew`: the broker makes given messages stay invisible as long as the
    client lives (`client_id` names it). `attempt_id`: a repeat of an attempt whose answer was lost gets the same
    messages with the same numbers. `wait_ms`: how long to wait for the first message. `broker`: whose queues are meant,
    where there are several brokers; a broker itself does not look.
    """

    group: str
    topic: str
    queue: int = ANY
    subscription: Subscription = EVERYTHING
    most: int = 32
    most_bytes: int = 4 << 20
    invisible_ms: int = 0
    wait_ms: int = 0
    renew: bool = False
    client_id: str = ""
    attempt_id: str = ""
    broker: str = ""


class GivenMessage(NamedTuple):
    """A message that a consumer gets."""

    topic: str
    """As the consumer asked for it; a message of the group's retry topic is shown under its own topic."""
    record: bytes
    number: int
    """How often it has been given out, this time included; 1 and more."""
    handle: str
    invisible_ms: int


Connected = Callable[[], bool]
"""Whether the connection on which an answer was written is still there."""


class Batch(Protocol):
    """What a receive gives: messages that are given out, provisionally until the answer is on its way.

    Where nobody knows whether that arrived, neither `sent` nor `release` is called: they count as given, are not
    renewed, and come again when their time is over.
    """

    @property
    def messages(self) -> Sequence[GivenMessage]:
        """The messages; none when the time was over."""
        ...

    def sent(self, connected: Connected) -> None:
        """The answer was written: they count as given. What is renewed is so only if `connected` stays true a while."""
        ...

    def release(self) -> None:
        """The answer was never written: they are there again, uncounted. Nothing where `sent` came before."""
        ...


class Outcome(NamedTuple):
    """What became of one handle of a request."""

    handle: str
    error: TandemError | None = None


class AtOncePort(Protocol):
    """What can be said in the turn of the loop in which it is asked, by a broker in this process."""

    def receive_at_once(self, wish: Wish, calls: int = 1) -> Sequence[Batch]:
        """What is there for plain receives that want the same, for as many of so many `calls` as get some.

        The others are for `DeliveryPort.receive`, which says what there is, or waits. The messages count as given:
        answer when the journal is written, or release them. Raises as that.
        """
        ...

    def acknowledge_at_once(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome] | None:
        """What became of handles; None: `DeliveryPort.acknowledge` says it, and nothing has changed.

        Answer when the journal is written and as safe as sends are. Raises as that.
        """
        ...


class JournalTurns(Protocol):
    """The journal, for those who answer when it is written."""

    @property
    def end_offset(self) -> int:
        """Log offset after its newest record."""
        ...

    @property
    def failure(self) -> TandemError | None:
        """Why it could not be written last; None while it can."""
        ...

    def at_the_end_of_the_turn(self, work: Callable[[], None]) -> None:
        """Call before what is noted in this turn is written; `work` may note more. Not while there is a `failure`."""
        ...

    def when_written(self, told: Callable[[TandemError | None], None]) -> None:
        """Call at the end of this turn, when what is noted in it is in the log, or is kept for later: see `failure`.

        With the error, where it never will be. It must not raise.
        """
        ...


class Ending(Enum):
    """How a transaction ends."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"


Room = Callable[[int], Awaitable[None]]
"""Waits until an answer of so many bytes may be made; it may raise."""


class ConsumingPort(Protocol):
    """What clients of any protocol ask of delivery. Each may raise NotDelivering, and as it says."""

    async def receive(self, wish: Wish, room: Room | None = None) -> Batch:
        """Messages, now or when there are some.

        Raises: UnknownGroup, ForbiddenGroup, BadDelivery, BadFilter, BadInvisibleTime, TooMuchInFlight, NoSuchQueue,
        NotReadable, StoreStopping, and `room`.
        """
        ...

    async def acknowledge(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """Messages are dealt with; done when that is as durable as a send. In the order of `handles`.

        `in_time`: as RocketMQ's broker has it. One whose invisible time is over is refused, and in an ordered group one
        counts when all before it do (see `order`). Else each counts at once, until it is given out again.
        """
        ...

    async def change_invisible(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """Make a message come again after so many ms from now (0 and more); gives the handle that counts from now on.

        Raises: BadHandle, HandleExpired, BadInvisibleTime.
        """
        ...

    async def forward(self, group: str, topic: str, handle: str) -> None:
        """Copy a message to the group's dead letters, and be done with it.

        Raises BadHandle, HandleExpired; QueueNotReady: the message cannot be read now.
        """
        ...

    async def end_transaction(self, group: str, handle: str, ending: Ending, *, checked: bool = False) -> None:
        """End a transaction. A repeat is fine. Raises UnknownTransaction, TransactionEnded. `group` may be empty."""
        ...

    async def recall(self, topic: str, handle: str, born_host: Host) -> str:
        """Take back a message that waits for its time; gives its UNIQ_KEY. Raises BadHandle, UnknownTopic."""
        ...

    def gone(self, group: str, client_id: str) -> None:
        """A client ends: its receives that wait find nothing, what it holds with renewal comes again in a second."""
        ...


class DeliveryPort(ConsumingPort, Protocol):
    """Delivery, as calls: beside those of `ConsumingPort` what only consumers that pull need."""

    async def give_back(self, group: str, topic: str, handle: str) -> None:
        """Nobody has looked at the message: it comes again at once, and this delivery does not count.

        Raises: BadHandle, HandleExpired.
        """
        ...

    async def send_back(self, group: str, physical_offset: int, delay_level: int, max_reconsume_times: int) -> None:
        """A classic consumer's message comes again after a delay level, by a copy (CONSUMER_SEND_MSG_BACK)."""
        ...

    async def commit(self, group: str, topic: str, queue: int, offset: int, *, alone: bool = False) -> None:
        """A consumer that pulls has dealt with all below `offset`; never goes back.

        `alone`: it finds its positions in other queues itself; else a group that is new gets them now.
        """
        ...

    async def reset(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Set cursors, backwards too; what is in flight is called back."""
        ...
