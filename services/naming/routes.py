"""RouteTable: which brokers there are, which topics they have, and who of them is alive.

It does no I/O and knows no clock: times are given by who calls, in seconds of any steady clock.

As RocketMQ's, but for what loses routes there: an UNREGISTER_BROKER of an address that is no longer registered changes
nothing (there, a late one of the old master takes the new one away), a master of an older epoch does not replace one of
a newer, a first registration with a single topic counts, and giving back the write permission leaves the others alone.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.wire.remoting.registration import (
    BrokerIdentity,
    RegisteredTopic,
    Registration,
    RegistrationVersion,
)
from tandemmq.naming.broker import MASTER_ID, WRITE, RegisteredBroker, RegisteredMember, TopicQueues

DEFAULT_PATIENCE = 120.0
"""Seconds after which RocketMQ forgets a broker."""


class OlderRegistration(TandemError):
    """A registration of a master whose mastership is older than that of the registered one."""

    kind = Kind.CONFLICT


class Registered(NamedTuple):
    """What a broker is told when it has registered: its master, if it is a slave and there is one."""

    master_address: str | None
    ha_address: str | None


class RouteTable:
    """See the module."""

    def __init__(self, patience: float = DEFAULT_PATIENCE) -> None:
        """`patience`: seconds without a word after which a broker that does not say otherwise is gone."""
        self._patience = patience
        self.brokers: dict[str, RegisteredBroker] = {}
        """By name."""
        self.topics: dict[str, dict[str, TopicQueues]] = {}
        """By topic, then by broker."""

    # -- what brokers say ---------------------------------------------------------------------------------------------

    def register(self, said: Registration, connection: object, now: float) -> Registered:
        """A broker is there. Its topics count if it is the master. Raises OlderMaster."""
        who = said.broker
        broker = self.brokers.get(who.name)
        known = broker.members.get(who.broker_id) if broker is not None else None
        other = who.broker_id == MASTER_ID and known is not None and known.address != who.address
        if known is not None and other and known.version.state > said.version.state:
            raise OlderRegistration(
                f"{known.address} is broker {who.broker_id} of {who.name} in epoch {known.version.state}; "
                f"{who.address} comes with epoch {said.version.state}"
            )
        if broker is None:
            broker = self.brokers[who.name] = RegisteredBroker(who.cluster, who.name)
        broker.cluster, broker.acting_master, broker.zone = who.cluster, said.acting_master, said.zone
        self._forget_other_ids(broker, who)
        patience = self._patience if said.heartbeat_ms is None else said.heartbeat_ms / 1000
        is_new = who.broker_id not in broker.members
        changed = known is None or known.version != said.version or known.address != who.address
        broker.members[who.broker_id] = RegisteredMember(
            who.broker_id, who.address, said.ha_address, said.version, now, patience, connection
        )
        if who.broker_id == MASTER_ID and (is_new or changed):
            for topic in said.topics.values():
                self.topics.setdefault(topic.name, {})[who.name] = queues_of(topic)
        master = broker.members.get(MASTER_ID)
        if who.broker_id == MASTER_ID or master is None:
            return Registered(None, None)
        return Registered(master.address, master.ha_address)

    def _forget_other_ids(self, broker: RegisteredBroker, who: BrokerIdentity) -> None:
        """One address is one process: after a promotion or a demotion it has another id."""
        for number, member in list(broker.members.items()):
            if member.address == who.address and number != who.broker_id:
                del broker.members[number]

    def unregister(self, who: BrokerIdentity) -> bool:
        """A broker ends; whether it was registered, at this address."""
        broker = self.brokers.get(who.name)
        known = broker.members.get(who.broker_id) if broker is not None else None
        if broker is None or known is None or known.address != who.address:
            return False
        self._remove(broker, who.broker_id)
        return True

    def heard(self, who: BrokerIdentity, now: float) -> RegistrationVersion | None:
        """A broker lives; the version of its topics, None if it is not registered."""
        broker = self.brokers.get(who.name)
        for member in broker.members.values() if broker is not None else ():
            if member.address == who.address:
                member.heard_at = now
                return member.version
        return None

    def expire(self, now: float) -> list[BrokerIdentity]:
        """Forget who has not been heard, and tell who that was."""
        return self._forget(lambda member: now - member.heard_at > member.patience)

    def disconnected(self, connection: object) -> list[BrokerIdentity]:
        """The connection of some brokers has closed: forget them, and tell who that was."""
        return self._forget(lambda member: member.connection is connection)

    def _forget(self, is_gone: Callable[[RegisteredMember], bool]) -> list[BrokerIdentity]:
        gone = [
            (broker, number, member.address)
            for broker in self.brokers.values()
            for number, member in broker.members.items()
            if is_gone(member)
        ]
        for broker, number, _ in gone:
            self._remove(broker, number)
        return [BrokerIdentity(broker.cluster, broker.name, number, address) for broker, number, address in gone]

    def _remove(self, broker: RegisteredBroker, number: int) -> None:
        """Take one process away; with the last one, the broker and its topics."""
        del broker.members[number]
        if not broker.members:
            del self.brokers[broker.name]
            self._remove_topics_of(broker.name, list(self.topics))

    def _remove_topics_of(self, broker_name: str, topics: Iterable[str]) -> None:
        for topic in topics:
            queues = self.topics.get(topic, {})
            queues.pop(broker_name, None)
            if not queues:
                self.topics.pop(topic, None)

    # -- what people say ----------------------------------------------------------------------------------------------

    def set_writable(self, broker_name: str, writable: bool) -> int:
        """Give or take the write permission of all topics of a broker, until it registers changes; their number."""
        found = [queues[broker_name] for queues in self.topics.values() if broker_name in queues]
        for one in found:
            one.perm = one.perm | WRITE if writable else one.perm & ~WRITE
        return len(found)

    def delete_topic(self, topic: str, cluster: str | None) -> None:
        """Forget a topic on the brokers of a cluster, or on all. A broker that still has it brings it back."""
        for name in list(self.topics.get(topic, ())):
            broker = self.brokers.get(name)
            if cluster is None or broker is None or broker.cluster == cluster:
                self._remove_topics_of(name, [topic])

    def add_queues(self, topic: str, queues: Iterable[tuple[str, TopicQueues]]) -> None:
        """A topic is on some brokers, where it was not known yet (REGISTER_TOPIC_IN_NAMESRV)."""
        for broker_name, found in queues:
            if broker_name in self.brokers:
                self.topics.setdefault(topic, {}).setdefault(broker_name, found)

    # -- what clients ask ---------------------------------------------------------------------------------------------

    def route(self, topic: str) -> tuple[list[RegisteredBroker], dict[str, TopicQueues]]:
        """Brokers that have a topic and are there, and its queues on each."""
        queues = {name: one for name, one in self.topics.get(topic, {}).items() if name in self.brokers}
        return [self.brokers[name] for name in queues], queues

    def clusters(self) -> dict[str, list[str]]:
        """Names of brokers by cluster."""
        found: dict[str, list[str]] = {}
        for broker in self.brokers.values():
            found.setdefault(broker.cluster, []).append(broker.name)
        return found

    def topics_of_cluster(self, cluster: str) -> Iterator[str]:
        """Topics that a broker of the cluster has."""
        names = set(self.clusters().get(cluster, ()))
        return (topic for topic, queues in self.topics.items() if names & queues.keys())


def queues_of(topic: RegisteredTopic) -> TopicQueues:
    """A topic as a broker registers it."""
    return TopicQueues(topic.read_queues, topic.write_queues, topic.perm, topic.sys_flag)
