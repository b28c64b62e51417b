"""What the table of routes knows of a broker: its addresses by id, and of each of them when it was heard."""

from dataclasses import dataclass, field

from tandemmq.common.wire.remoting.registration import TopicsVersion

MASTER_ID = 0

READ, WRITE = 4, 2
"""Bits of `perm`."""


@dataclass(slots=True)
class BrokerProcess:
    """One process of a broker: a master or a slave."""

    broker_id: int
    address: str
    ha_address: str
    version: TopicsVersion
    heard_at: float
    """When it said something last, on the clock of who calls the table."""
    patience: float
    """Seconds without a word after which it counts as gone."""
    connection: object
    """Over which it registered; when that closes, it is gone."""


@dataclass(slots=True)
class NamedBroker:
    """Master and slaves of one name."""

    cluster: str
    name: str
    members: dict[int, BrokerProcess] = field(default_factory=dict)
    """By broker id; 0 is the master."""
    acting_master: bool = False
    zone: str | None = None

    @property
    def addresses(self) -> dict[int, str]:
        """By broker id, in its order."""
        return {number: self.members[number].address for number in sorted(self.members)}


@dataclass(slots=True)
class TopicQueues:
    """A topic on one broker (RocketMQ: ``QueueData``)."""

    read_queues: int
    write_queues: int
    perm: int
    sys_flag: int
