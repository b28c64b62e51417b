"""What a front asks of the brokers behind it: one in the same process, or several behind a gateway."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.members.sessions import Sessions
from tandemmq.store.delivery.port import ConsumingPort


class BrokerTopic(NamedTuple):
    """A topic as one broker has it."""

    broker: str
    config: TopicConfig


class StoredMessage(NamedTuple):
    """What a producer is told of a message that was stored."""

    message_id: str
    transaction_id: str
    """What ends its transaction; of other messages the message id."""
    offset: int
    """In its queue."""
    recall_handle: str
    """Empty where it cannot be recalled."""
    status: PutStatus


class BrokerPort(Protocol):
    """One broker or several, as one.

    `user`: for whom is asked; empty where nobody has said who they are. A broker in the same process does not look: the
    front has.
    """

    @property
    def sessions(self) -> Sessions:
        """The clients of this front."""
        ...

    @property
    def leads(self) -> bool:
        """Whether clients can send here and receive: not so at a slave."""
        ...

    def delivery(self, user: str) -> ConsumingPort:
        """What gives out messages. `Wish.broker` and handles say which broker is meant."""
        ...

    async def topic(self, name: str, user: str) -> Sequence[BrokerTopic]:
        """A topic, at each broker that has it; nothing where there is none. Raises what keeps all from answering."""
        ...

    async def create_topic(self, config: TopicConfig, user: str) -> Sequence[BrokerTopic]:
        """Make a topic where it is missing; durable when this returns. Gives it as `topic` does. Raises TableNotSaved.

        A slave makes none, and gives what its master will make.
        """
        ...

    async def find_group(self, name: str) -> GroupConfig | None:
        """A consumer group, or None if there is none."""
        ...

    def group(self, name: str) -> GroupConfig | None:
        """A consumer group as it was when it was last found."""
        ...

    async def send(self, messages: Sequence[NewMessage], user: str) -> list[StoredMessage | TandemError]:
        """Store messages of one topic, each for itself; in their order."""
        ...
