"""Routes and lists as the JSON that RocketMQ's clients and tools read."""

from collections.abc import Iterable, Mapping
from typing import Any

from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.naming.broker import MASTER_ID, NamedBroker, TopicQueues

Document = dict[str, Any]


def route_body(
    brokers: Iterable[NamedBroker], queues: Mapping[str, TopicQueues], *, standard: bool, order: str | None
) -> bytes:
    """GET_ROUTEINFO_BY_TOPIC. `standard`: ids of brokers are quoted, which clients before 4.9.4 do not all read.

    `order`: what the topic has in the namespace ORDER_TOPIC_CONFIG.
    """
    document: Document = {
        "brokerDatas": [broker_document(one, standard=standard) for one in brokers],
        "filterServerTable": {},
    }
    if order is not None:
        document["orderTopicConf"] = order
    document["queueDatas"] = [
        {
            "brokerName": name,
            "perm": one.perm,
            "readQueueNums": one.read_queues,
            "topicSysFlag": one.sys_flag,
            "writeQueueNums": one.write_queues,
        }
        for name, one in queues.items()
    ]
    return dumps(document)


def broker_document(broker: NamedBroker, *, standard: bool) -> Document:
    """One broker (RocketMQ: ``BrokerData``)."""
    document: Document = {
        "brokerAddrs": {str(number) if standard else number: one for number, one in broker.addresses.items()},
        "brokerName": broker.name,
        "cluster": broker.cluster,
        "enableActingMaster": broker.acting_master,
    }
    if broker.zone is not None:
        document["zoneName"] = broker.zone
    return document


def in_zone(brokers: Iterable[NamedBroker], zone: str) -> list[NamedBroker]:
    """Brokers of a zone, and those of others that have no master."""
    return [one for one in brokers if one.zone == zone or MASTER_ID not in one.members]


def cluster_body(brokers: Mapping[str, NamedBroker], clusters: Mapping[str, list[str]]) -> bytes:
    """GET_BROKER_CLUSTER_INFO; RocketMQ never quotes the ids here."""
    table = {name: broker_document(one, standard=False) for name, one in brokers.items()}
    return dumps({"brokerAddrTable": table, "clusterAddrTable": dict(clusters)})


def member_body(broker: NamedBroker | None) -> bytes:
    """GET_BROKER_MEMBER_GROUP: the processes of one broker."""
    if broker is None:
        return dumps({})
    document = broker_document(broker, standard=False)
    return dumps({"brokerMemberGroup": {key: document[key] for key in ("brokerAddrs", "brokerName", "cluster")}})


def topics_body(topics: Iterable[str], broker_address: str | None = None) -> bytes:
    """A list of topics."""
    head: Document = {} if broker_address is None else {"brokerAddr": broker_address}
    return dumps(head | {"topicList": list(topics)})
