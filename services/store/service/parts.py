"""What the servicers work with: the broker's parts, and the limits of the settings."""

from dataclasses import dataclass

from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.long_poll import LongPolls
from tandemmq.store.broker.offsets import Catalog
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.send import Sender
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.service.requests import PullLimits


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What the service bounds. `stream_window`: requests of a SendStream that may wait for the disk."""

    pull: PullLimits
    stream_window: int = 256


@dataclass(frozen=True, slots=True)
class Broker:
    """The parts of the broker that the service calls."""

    store: MessageStore
    sender: Sender
    puller: Puller
    polls: LongPolls
    finder: Finder
    catalog: Catalog
    topics: TopicTable
    acknowledgement: Acknowledgement
