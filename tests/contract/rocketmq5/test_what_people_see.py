"""What people see of RocketMQ 5 clients: members with language and version, what they hold, and metrics of both."""

import grpc

from tandemmq.delivery.v1 import operations_pb2
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until


def test_a_consumer_is_seen_with_what_it_holds_and_how_often_it_came(v2: V2Client, shared_store: StoreProcess) -> None:
    v2.route("watched")
    stream = v2.stream()
    stream.say(v2.consumer(pb.PUSH_CONSUMER, "watchers", "watched", language=pb.GOLANG))
    stream.next("settings")
    v2.send(message("watched"), message("watched"))
    held = v2.take("watchers", "watched", 2)
    v2.change("watchers", "watched", held[0].system_properties.receipt_handle, 0)
    assert v2.take("watchers", "watched", 1)
    with grpc.insecure_channel(shared_store.address) as channel:
        request = operations_pb2.ViewGroupsRequest(groups=["watchers"], with_members=True)
        (group,) = OperationsStub(channel).ViewGroups(request, timeout=60).groups
    (member,) = group.members
    assert (member.protocol, member.language, member.version) == ("rocketmq5", "GOLANG", "5.1.2")
    assert dict(member.subscriptions) == {"watched": "*"}
    (topic,) = (one for one in group.topics if one.topic == "watched")
    assert (topic.in_flight, topic.ready, topic.most_deliveries) == (2, 0, 2)
    assert (group.acknowledges, group.commits) == (True, False)

    labels = ('consumer_group="watchers"', 'language="GOLANG"', 'version="5.1.2"', 'consume_mode="pop"')

    def exposed() -> bool:
        mine = [line for line in shared_store.scrape() if '"watchers"' in line]
        connections = [line for line in mine if line.startswith("rocketmq_consumer_connections{")]
        most = [line for line in mine if line.startswith("tandem_consumer_most_deliveries{")]
        return any(line.endswith(" 2.0") for line in most) and all(label in connections[0] for label in labels)

    until(exposed, 60, "the metrics show both")
    stream.end()


def test_a_producer_of_many_topics_is_one_client(v2: V2Client, shared_store: StoreProcess) -> None:
    stream = v2.stream()
    settings = v2.producer("sent-1", "sent-2", "sent-3")
    settings.user_agent.language, settings.user_agent.version = pb.RUST, "0.0.1-lonely"
    stream.say(settings)
    stream.next("settings")
    lines = [one for one in shared_store.scrape() if "0.0.1-lonely" in one]
    assert [one.rpartition(" ")[2] for one in lines] == ["1.0"]
    assert lines[0].startswith("rocketmq_producer_connections{")
    stream.end()
