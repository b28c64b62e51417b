"""Registered: what this broker says of itself to name servers, and when that has become something else.

Beside the topics of the table it registers those that clients look for before anybody has sent to them: TBW102, by
which producers of new topics find brokers that create them, the topic to which answers to requests are sent, and
those of RocketMQ's tools. Each is created by the first send. The topics that are called as the cluster and the broker
are told of in any case: by them the tools find the brokers on which they make topics.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tandemmq.common.slices import Slices
from tandemmq.common.topic_names import AUTO_CREATED, TRACES
from tandemmq.common.wire.remoting.registration import (
    BrokerIdentity,
    RegisteredTopic,
    Registration,
    RegistrationVersion,
)
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.log.replica.mastership import FIRST_EPOCH, Mastership

_READ_WRITE, _INHERITED = 6, 7
_OWN = "TANDEM_"
"""Topics of this broker's own, which clients have nothing to do with."""


class CreatedTopics(NamedTuple):
    """Topics that are created by sending."""

    queues: int
    """Of each."""
    are_all: bool
    """Whether all are."""
    is_trace: bool = False
    """Whether that of clients' traces is, even if the others are not."""


class RegisteredTopics:
    """What is registered, made anew when topics or the role have changed."""

    def __init__(
        self,
        who: Callable[[int], BrokerIdentity],
        ha_address: str,
        topics: TopicTable,
        mastership: Mastership,
        slave_id: int,
        created: CreatedTopics,
        now_ms: Callable[[], int],
    ) -> None:
        """`who`: this broker under an id; `slave_id`: the id while it is a slave."""
        self._who = who
        self._ha_address = ha_address
        self._topics = topics
        self._mastership = mastership
        self._slave_id = max(slave_id, 1)
        self._created = created
        self._now_ms = now_ms
        self._first_epoch = mastership.epoch
        self._counter = 0
        self._changed_ms = now_ms()
        topics.changed.listen(self._count)
        mastership.changed.listen(self._count)

    def _count(self) -> None:
        """No version stands for two tables: the counter begins with this process, the time is another each time."""
        self._counter += 1
        self._changed_ms = max(self._now_ms(), self._changed_ms)

    @property
    def change(self) -> int:
        """A number that is another after every change."""
        return self._counter

    @property
    def promoted(self) -> bool:
        """Whether it has become the master since it has started."""
        return self._mastership.epoch > self._first_epoch

    @property
    def was_promoted(self) -> bool:
        """Whether its mastership began by a promotion, now or before it has started: it took the place of another."""
        return self._mastership.epoch > FIRST_EPOCH

    def identity(self) -> BrokerIdentity | None:
        """Who this broker is: id 0 as master; None while it is a master that a newer one has taken the place of."""
        role = self._mastership
        if role.is_slave:
            return self._who(self._slave_id)
        return None if role.fenced_by > role.epoch else self._who(0)

    async def registration(self, who: BrokerIdentity, slices: Slices) -> Registration:
        """What there is now."""
        version = RegistrationVersion(self._mastership.epoch, self._counter, self._changed_ms)
        topics = {}
        for topic in self._all():
            topics[topic.name] = topic
            await slices.pause()
        return Registration(who, self._ha_address, version, topics)

    def _all(self) -> Iterator[RegisteredTopic]:
        """Those of the table come last: they win."""
        queues, are_created, is_trace = self._created
        who = self._who(0)
        yield RegisteredTopic(f"{who.cluster}_REPLY_TOPIC", 1, 1, _READ_WRITE)
        yield RegisteredTopic(who.cluster, queues, queues, _INHERITED)
        yield RegisteredTopic(who.name, 1, 1, _INHERITED)
        if are_created:
            yield RegisteredTopic(AUTO_CREATED, queues, queues, _INHERITED)
        if are_created or is_trace:
            yield RegisteredTopic(TRACES, 1, 1, _READ_WRITE)
        yield from (_registered(topic) for topic in list(self._topics.all()) if not topic.name.startswith(_OWN))


def _registered(topic: TopicConfig) -> RegisteredTopic:
    return RegisteredTopic(topic.name, topic.read_queues, topic.write_queues, topic.perm)
