"""Every method of every service of ours has a rule, and the rules ask for what docs/security.md says."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tandemmq.admin import access as admin_access
from tandemmq.admin.v1 import admin_pb2
from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.access.gate import Gate
from tandemmq.common.access.needs import ALL, Action, Need, group, publish, subscribe
from tandemmq.common.access.rules import Rules, check_complete
from tandemmq.common.serving import node_access
from tandemmq.delivery.v1 import delivery_pb2, operations_pb2
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metasync import access as metasync_access
from tandemmq.node.v1 import node_pb2
from tandemmq.replication.v1 import healing_pb2, replication_pb2
from tandemmq.replicator import access as replicator_access
from tandemmq.store.fronts import access as store_access
from tandemmq.store.v1 import derived_files_pb2, log_repair_pb2, message_pb2, replica_log_pb2, store_pb2

PROTOS = Path(__file__).resolve().parents[4] / "protos"

RULES: dict[str, Rules] = {
    "tandemmq.store.v1.Store": store_access.RULES,
    "tandemmq.delivery.v1.Delivery": store_access.DELIVERY_RULES,
    "tandemmq.delivery.v1.Operations": store_access.OPERATIONS_RULES,
    "tandemmq.broker.v1.Broker": store_access.BROKER_RULES,
    "tandemmq.store.v1.ReplicaLog": store_access.REPLICA_LOG_RULES,
    "tandemmq.store.v1.DerivedFiles": store_access.DERIVED_FILES_RULES,
    "tandemmq.store.v1.LogRepair": store_access.LOG_REPAIR_RULES,
    "tandemmq.metadata.v1.Metadata": metasync_access.RULES,
    "tandemmq.replication.v1.Replication": replicator_access.RULES,
    "tandemmq.replication.v1.Healing": replicator_access.HEALING_RULES,
    "tandemmq.node.v1.Node": node_access.RULES,
    "tandemmq.admin.v1.Admin": admin_access.RULES,
}

FILES = (
    store_pb2,
    broker_pb2,
    delivery_pb2,
    operations_pb2,
    replica_log_pb2,
    derived_files_pb2,
    log_repair_pb2,
    metadata_pb2,
    replication_pb2,
    healing_pb2,
    node_pb2,
    admin_pb2,
)
SERVICES: dict[str, ServiceDescriptor] = {
    service.full_name: service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()
}


def test_every_service_of_the_contract_is_here() -> None:
    found = set()
    for file in PROTOS.rglob("*.proto"):
        text = file.read_text()
        package = re.search(r"^package (.+);", text, re.MULTILINE)
        assert package is not None
        found |= {f"{package[1]}.{name}" for name in re.findall(r"^service (\w+)", text, re.MULTILINE)}
    assert RULES.keys() == SERVICES.keys() == found


@pytest.mark.parametrize("service", sorted(RULES))
def test_each_method_has_a_rule_that_reads_its_request(service: str) -> None:
    check_complete(service, [method.name for method in SERVICES[service].methods], RULES[service])
    for method in SERVICES[service].methods:
        rule = RULES[service][method.name]
        request: Message = GetMessageClass(method.input_type)()
        needs = (*rule.least, *(rule.of(request) if rule.of is not None else ()))
        assert all(isinstance(need, Need) for need in needs)
        assert needs or method.name == "WhoAmI", "whoever is known may do it"


def needs_of(service: str, method: str, request: Message) -> set[Need]:
    of = RULES[service][method].of
    assert of is not None
    return set(of(request))


def message(topic: str) -> message_pb2.Message:
    return message_pb2.Message(topic=topic)


DELIVERY = "tandemmq.delivery.v1.Delivery"
STORE, METADATA, ADMIN = "tandemmq.store.v1.Store", "tandemmq.metadata.v1.Metadata", "tandemmq.admin.v1.Admin"
BATCH = store_pb2.SendBatchRequest(
    messages=[message("a"), message("b"), message("a")], batches=[message_pb2.EncodedBatch(topic="c")]
)
PULL = store_pb2.PullRequest(topic="a", consumer_group="g")
RECEIVE = delivery_pb2.ReceiveRequest(topic="a", group="g")
HEARTBEAT = delivery_pb2.HeartbeatRequest(
    memberships=[
        delivery_pb2.Membership(group="g", subscriptions={"a": delivery_pb2.Filter()}),
        delivery_pb2.Membership(group="p", producer=True),
    ]
)
COMMITS = [metadata_pb2.OffsetCommit(topic=topic, group="g", queue_id=n) for n in range(3) for topic in ("a", "b")]
INSTEAD = (Action.INTERNAL,)


@pytest.mark.parametrize(
    ("service", "method", "request_", "needs"),
    [
        (STORE, "Send", store_pb2.SendRequest(message=message("a")), {publish("a")}),
        (STORE, "SendBatch", BATCH, {publish("a"), publish("b"), publish("c")}),
        (STORE, "SendStream", BATCH, {publish("a"), publish("b"), publish("c")}),
        (STORE, "Pull", PULL, {subscribe("a")}),
        (STORE, "Pull", store_pb2.PullRequest(topic="a"), {subscribe("a")}),
        (STORE, "PullStream", store_pb2.PullStreamRequest(subscribe=PULL), {subscribe("a")}),
        (STORE, "PullStream", store_pb2.PullStreamRequest(credit=store_pb2.Credit(messages=1)), set()),
        (STORE, "ListQueues", store_pb2.ListQueuesRequest(topic="a"), {subscribe("a", Action.VIEW)}),
        (STORE, "ListQueues", store_pb2.ListQueuesRequest(), {Need(Action.VIEW)}),
        (STORE, "QueryMessage", store_pb2.QueryMessageRequest(topic="a", key="k"), {subscribe("a")}),
        (STORE, "GetOffsets", store_pb2.GetOffsetsRequest(topic="a"), {subscribe("a", Action.VIEW)}),
        (DELIVERY, "Receive", RECEIVE, {group("g"), subscribe("a")}),
        (
            DELIVERY,
            "ReceiveStream",
            delivery_pb2.ReceiveStreamRequest(subscribe=RECEIVE),
            {group("g"), subscribe("a")},
        ),
        (DELIVERY, "ReceiveStream", delivery_pb2.ReceiveStreamRequest(credit=store_pb2.Credit(messages=1)), set()),
        (
            DELIVERY,
            "Acknowledge",
            delivery_pb2.AcknowledgeRequest(group="g", topic="a", handles=["h"]),
            {group("g"), subscribe("a")},
        ),
        (DELIVERY, "SendBack", delivery_pb2.SendBackRequest(group="g"), {group("g"), subscribe(ALL)}),
        (
            DELIVERY,
            "CommitOffsets",
            delivery_pb2.CommitOffsetsRequest(
                group="g", commits=[delivery_pb2.OffsetCommit(topic=topic) for topic in "aba"]
            ),
            {group("g"), subscribe("a"), subscribe("b")},
        ),
        (DELIVERY, "EndTransaction", delivery_pb2.EndTransactionRequest(topic="a", group="g"), {publish("a")}),
        (DELIVERY, "Recall", delivery_pb2.RecallRequest(topic="a"), {publish("a")}),
        (DELIVERY, "Attend", HEARTBEAT, {group("g"), group("p"), subscribe("a")}),
        (DELIVERY, "Leave", delivery_pb2.LeaveRequest(groups=["g", "p"]), {group("g"), group("p")}),
        (
            METADATA,
            "CommitOffsets",
            metadata_pb2.CommitOffsetsRequest(commits=COMMITS),
            {group("g", *INSTEAD), subscribe("a", *INSTEAD), subscribe("b", *INSTEAD)},
        ),
        (
            METADATA,
            "CommitOffsets",
            metadata_pb2.CommitOffsetsRequest(commits=COMMITS, reset=True),
            {Need(Action.MANAGE)},
        ),
        (
            METADATA,
            "QueryOffsets",
            metadata_pb2.QueryOffsetsRequest(queries=[metadata_pb2.OffsetQuery(group=name) for name in "gh"]),
            {group(name, Action.VIEW, Action.INTERNAL) for name in "gh"},
        ),
        (ADMIN, "SendMessage", admin_pb2.SendMessageRequest(topic="a"), {publish("a")}),
        (ADMIN, "Tail", admin_pb2.TailRequest(topic="a"), {subscribe("a")}),
        (ADMIN, "FindMessages", admin_pb2.FindMessagesRequest(topic="a", key="k"), {subscribe("a")}),
        (ADMIN, "FindMessages", admin_pb2.FindMessagesRequest(topic="a", message_id="0"), {subscribe(ALL)}),
        (ADMIN, "GetGroup", admin_pb2.GetGroupRequest(group="g"), {group("g", Action.VIEW)}),
        (ADMIN, "ResetOffsets", admin_pb2.ResetOffsetsRequest(group="g", topic="a"), {Need(Action.MANAGE)}),
        (ADMIN, "ResetOffsets", admin_pb2.ResetOffsetsRequest(group="g", dry_run=True), {Need(Action.VIEW)}),
        (ADMIN, "ResendMessages", admin_pb2.ResendMessagesRequest(group="g"), {subscribe("%DLQ%g"), publish(ALL)}),
        (ADMIN, "ResendMessages", admin_pb2.ResendMessagesRequest(group="g", dry_run=True), {subscribe("%DLQ%g")}),
    ],
)
def test_what_a_request_needs(service: str, method: str, request_: Message, needs: set[Need]) -> None:
    assert needs_of(service, method, request_) == needs


def test_the_gate_takes_all_of_them() -> None:
    gate = Gate.__new__(Gate)
    gate._rules = {}
    for service, rules in RULES.items():
        gate.register(service, rules, rules)
    assert len(gate._rules) == sum(len(service.methods) for service in SERVICES.values())
