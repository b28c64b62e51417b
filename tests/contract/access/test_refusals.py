"""Every method of every service, called by everybody: unknown, with a wrong secret, without and with permission."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tandemmq.admin.v1 import admin_pb2 as admin
from tandemmq.broker.v1 import broker_pb2
from tandemmq.delivery.v1 import delivery_pb2 as delivery
from tandemmq.delivery.v1 import operations_pb2 as operations
from tandemmq.metadata.v1 import metadata_pb2 as metadata
from tandemmq.node.v1 import node_pb2 as node
from tandemmq.replication.v1 import healing_pb2
from tandemmq.replication.v1 import replication_pb2 as replication
from tandemmq.store.v1 import derived_files_pb2, log_repair_pb2, message_pb2, replica_log_pb2
from tandemmq.store.v1 import store_pb2 as store
from tests.access_users import USERS, credentials
from tests.contract.access.conftest import Guarded
from tests.unit.common.access.test_rules import SERVICES

pytestmark = pytest.mark.xdist_group("access")

REFUSALS = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
DELIVERY, OPERATIONS = "tandemmq.delivery.v1.Delivery", "tandemmq.delivery.v1.Operations"
STORE, LOG, FILES = "tandemmq.store.v1.Store", "tandemmq.store.v1.ReplicaLog", "tandemmq.store.v1.DerivedFiles"
HEALING, REPAIR = "tandemmq.replication.v1.Healing", "tandemmq.store.v1.LogRepair"
METADATA, REPLICATION = "tandemmq.metadata.v1.Metadata", "tandemmq.replication.v1.Replication"
BROKER = "tandemmq.broker.v1.Broker"
NODE, ADMIN = "tandemmq.node.v1.Node", "tandemmq.admin.v1.Admin"

HELLO = broker_pb2.LinkRequest(questions=[broker_pb2.Question(id=1, hello=broker_pb2.Hello(gateway="g"))])
MINE = message_pb2.Message(topic="mine", queue_id=0)
PULL = store.PullRequest(topic="mine")
MEMBER = delivery.Membership(group="mine-g")
COMMIT = metadata.OffsetCommit(topic="mine", group="mine-g", offset=1)


class Case(NamedTuple):
    """One call, and who may make it; `services` may make all of them."""

    port: str
    service: str
    method: str
    request: Message
    users: str

    def __str__(self) -> str:
        return f"{self.port}-{self.service.rpartition('.')[2]}-{self.method}-{self.users.replace(' ', '+')}"


def described(port: str) -> Case:
    return Case(port, NODE, "Describe", node.DescribeRequest(), "viewer peer")


CASES = [
    Case("store", STORE, "Send", store.SendRequest(message=MINE), "producer"),
    Case("store", STORE, "SendBatch", store.SendBatchRequest(messages=[MINE]), "producer"),
    Case("store", STORE, "SendStream", store.SendBatchRequest(messages=[MINE]), "producer"),
    Case("store", STORE, "Pull", PULL, "consumer reader"),
    Case("store", STORE, "PullStream", store.PullStreamRequest(subscribe=PULL), "consumer reader"),
    Case("store", STORE, "ViewMessage", store.ViewMessageRequest(message_id="0" * 32), "reader"),
    Case("store", STORE, "QueryMessage", store.QueryMessageRequest(topic="mine", key="k"), "consumer reader"),
    Case("store", STORE, "GetOffsets", store.GetOffsetsRequest(topic="mine"), "consumer reader viewer"),
    Case("store", STORE, "ListQueues", store.ListQueuesRequest(topic="mine"), "consumer reader viewer"),
    Case("store", STORE, "ListQueues", store.ListQueuesRequest(), "viewer"),
    Case("store", STORE, "GetLog", store.GetLogRequest(), "viewer"),
    Case("store", DELIVERY, "Receive", delivery.ReceiveRequest(topic="mine", group="mine-g"), "consumer"),
    Case(
        "store",
        DELIVERY,
        "ReceiveStream",
        delivery.ReceiveStreamRequest(subscribe=delivery.ReceiveRequest(topic="mine", group="mine-g")),
        "consumer",
    ),
    Case("store", DELIVERY, "Acknowledge", delivery.AcknowledgeRequest(topic="mine", group="mine-g"), "consumer"),
    Case(
        "store", DELIVERY, "ChangeInvisible", delivery.ChangeInvisibleRequest(topic="mine", group="mine-g"), "consumer"
    ),
    Case(
        "store",
        DELIVERY,
        "ForwardToDeadLetters",
        delivery.ForwardToDeadLettersRequest(topic="mine", group="mine-g"),
        "consumer",
    ),
    Case("store", DELIVERY, "SendBack", delivery.SendBackRequest(group="mine-g", physical_offset=-1), ""),
    Case(
        "store",
        DELIVERY,
        "CommitOffsets",
        delivery.CommitOffsetsRequest(group="mine-g", commits=[delivery.OffsetCommit(topic="mine", offset=-1)]),
        "consumer",
    ),
    Case("store", DELIVERY, "EndTransaction", delivery.EndTransactionRequest(topic="mine"), "producer"),
    Case("store", DELIVERY, "Recall", delivery.RecallRequest(topic="mine"), "producer"),
    Case("store", DELIVERY, "Heartbeat", delivery.HeartbeatRequest(memberships=[MEMBER]), "consumer"),
    Case("store", DELIVERY, "Leave", delivery.LeaveRequest(groups=["mine-g"]), "consumer"),
    Case("store", DELIVERY, "Attend", delivery.HeartbeatRequest(client_id="one", memberships=[MEMBER]), "consumer"),
    Case("store", OPERATIONS, "ViewGroups", operations.ViewGroupsRequest(), "viewer"),
    Case("store", OPERATIONS, "ViewMessages", operations.ViewMessagesRequest(group="readers"), "viewer"),
    Case("store", OPERATIONS, "ViewWaiting", operations.ViewWaitingRequest(), "viewer"),
    Case("store", OPERATIONS, "CreateTopic", operations.CreateTopicRequest(), "manager"),
    Case("store", OPERATIONS, "CreateGroup", operations.CreateGroupRequest(), "manager"),
    Case("store", OPERATIONS, "ShowThreads", operations.ShowThreadsRequest(), "viewer"),
    Case("store", OPERATIONS, "TryMessage", operations.TryMessageRequest(message_id="0" * 32), "manager"),
    *map(described, ("store", "metasync", "replicator", "admin")),
    Case("metasync", METADATA, "ListTopics", metadata.ListTopicsRequest(), "viewer peer"),
    Case("metasync", METADATA, "PutTopics", metadata.PutTopicsRequest(), "manager peer"),
    Case("metasync", METADATA, "DeleteTopics", metadata.DeleteTopicsRequest(names=["none"]), "manager"),
    Case("metasync", METADATA, "ListGroups", metadata.ListGroupsRequest(), "viewer peer"),
    Case("metasync", METADATA, "PutGroups", metadata.PutGroupsRequest(), "manager peer"),
    Case("metasync", METADATA, "DeleteGroups", metadata.DeleteGroupsRequest(names=["none"]), "manager"),
    Case("metasync", METADATA, "CommitOffsets", metadata.CommitOffsetsRequest(commits=[COMMIT]), "consumer peer"),
    Case("metasync", METADATA, "CommitOffsets", metadata.CommitOffsetsRequest(commits=[COMMIT], reset=True), "manager"),
    Case(
        "metasync",
        METADATA,
        "QueryOffsets",
        metadata.QueryOffsetsRequest(queries=[metadata.OffsetQuery(group="mine-g")]),
        "consumer viewer peer",
    ),
    Case("metasync", METADATA, "DeleteOffsets", metadata.DeleteOffsetsRequest(group="none"), "manager"),
    Case("metasync", METADATA, "GetDelayOffsets", metadata.GetDelayOffsetsRequest(), "viewer peer"),
    Case("metasync", METADATA, "PutDelayOffsets", metadata.PutDelayOffsetsRequest(), "manager peer"),
    Case("metasync", METADATA, "GetTable", metadata.GetTableRequest(table=metadata.TOPICS), "viewer peer"),
    Case("metasync", METADATA, "GetRequestModes", metadata.GetRequestModesRequest(), "viewer peer"),
    Case("metasync", METADATA, "Watch", metadata.WatchRequest(tables=[metadata.TOPICS]), "viewer peer"),
    Case("metasync", METADATA, "Status", metadata.StatusRequest(), "viewer peer"),
    Case("replicator", REPLICATION, "Status", replication.StatusRequest(), "viewer peer"),
    Case("replicator", REPLICATION, "Join", replication.JoinRequest(), "peer"),
    Case("replicator", REPLICATION, "Checksum", replication.ChecksumRequest(), "peer"),
    Case("replicator", REPLICATION, "Promote", replication.PromoteRequest(), "operates"),
    Case("replicator", REPLICATION, "Fence", replication.FenceRequest(), "peer"),
    Case("replicator", REPLICATION, "Follow", replication.FollowRequest(), "operates"),
    Case("replicator", HEALING, "Fetch", healing_pb2.FetchRequest(), "peer"),
    Case("replicator", HEALING, "Checksums", healing_pb2.ChecksumsRequest(), "peer"),
    Case("replicator", HEALING, "Records", healing_pb2.RecordsRequest(), "peer"),
    Case("replicator", HEALING, "Audit", healing_pb2.AuditRequest(), "operates"),
    Case("internal", REPAIR, "GetDamage", log_repair_pb2.GetDamageRequest(), "peer"),
    Case("internal", REPAIR, "Examine", log_repair_pb2.ExamineRequest(), "peer"),
    Case("internal", REPAIR, "Repair", log_repair_pb2.RepairBytes(), "peer"),
    Case("internal", BROKER, "Link", HELLO, "peer"),
    Case("internal", LOG, "Link", replica_log_pb2.ReplicationProgress(), "peer"),
    Case("internal", LOG, "Receive", replica_log_pb2.ReplicaBytes(), "peer"),
    Case("internal", LOG, "GetRole", replica_log_pb2.GetRoleRequest(), "peer"),
    Case("internal", LOG, "Promote", replica_log_pb2.PromoteRequest(), "peer"),
    Case("internal", LOG, "Fence", replica_log_pb2.FenceRequest(), "peer"),
    Case("internal", LOG, "Demote", replica_log_pb2.DemoteRequest(epoch=-1), "peer"),
    Case("internal", LOG, "Remember", replica_log_pb2.ReplicaGroup(epoch=-1), "peer"),
    Case("internal", FILES, "Adopt", derived_files_pb2.AdoptRequest(), "operates peer"),
    Case("admin", ADMIN, "GetCluster", admin.GetClusterRequest(), "viewer"),
    Case("admin", ADMIN, "GetHistory", admin.GetHistoryRequest(topic="mine"), "viewer"),
    Case("admin", ADMIN, "GetConfiguration", admin.GetConfigurationRequest(), "viewer"),
    Case("admin", ADMIN, "ListTopics", admin.ListTopicsRequest(), "viewer"),
    Case("admin", ADMIN, "GetTopic", admin.GetTopicRequest(topic="mine"), "viewer"),
    Case("admin", ADMIN, "PutTopic", admin.PutTopicRequest(), "manager"),
    Case("admin", ADMIN, "DeleteTopic", admin.DeleteTopicRequest(), "manager"),
    Case("admin", ADMIN, "ListGroups", admin.ListGroupsRequest(), "viewer"),
    Case("admin", ADMIN, "GetWaiting", admin.GetWaitingRequest(), "viewer"),
    Case("admin", ADMIN, "GetGroup", admin.GetGroupRequest(group="mine-g"), "consumer viewer"),
    Case("admin", ADMIN, "PutGroup", admin.PutGroupRequest(), "manager"),
    Case("admin", ADMIN, "DeleteGroup", admin.DeleteGroupRequest(), "manager"),
    Case("admin", ADMIN, "ResetOffsets", admin.ResetOffsetsRequest(), "manager"),
    Case("admin", ADMIN, "ResetOffsets", admin.ResetOffsetsRequest(dry_run=True), "viewer"),
    Case("admin", ADMIN, "FindMessages", admin.FindMessagesRequest(topic="mine", key="k"), "consumer reader"),
    Case("admin", ADMIN, "FindMessages", admin.FindMessagesRequest(topic="mine", message_id="0" * 32), "reader"),
    Case("admin", ADMIN, "TraceMessage", admin.TraceMessageRequest(topic="mine", key="k"), "reader"),
    Case("admin", ADMIN, "Tail", admin.TailRequest(topic="mine", last=1), "consumer reader"),
    Case("admin", ADMIN, "SendMessage", admin.SendMessageRequest(topic="mine"), "producer"),
    Case("admin", ADMIN, "ResendMessages", admin.ResendMessagesRequest(group="mine-g"), ""),
    Case(
        "admin", ADMIN, "ResendMessages", admin.ResendMessagesRequest(group="mine-g", dry_run=True), "consumer reader"
    ),
    Case("admin", ADMIN, "PromoteNode", admin.PromoteNodeRequest(node="none"), "operates"),
    Case("admin", ADMIN, "FollowMaster", admin.FollowMasterRequest(node="none"), "operates"),
    Case("admin", ADMIN, "StartJob", admin.StartJobRequest(), "operates"),
    Case("admin", ADMIN, "ListJobs", admin.ListJobsRequest(), "viewer"),
    Case("admin", ADMIN, "GetJob", admin.GetJobRequest(id="none"), "viewer"),
    Case("admin", ADMIN, "WatchJob", admin.GetJobRequest(id="none"), "viewer"),
    Case("admin", ADMIN, "CancelJob", admin.GetJobRequest(id="none"), "operates"),
    Case("admin", ADMIN, "GetSupportBundle", admin.GetSupportBundleRequest(), "operates"),
    Case("admin", ADMIN, "ListActions", admin.ListActionsRequest(), "operates"),
    Case("admin", ADMIN, "ListUsers", admin.ListUsersRequest(), "operates"),
    Case("admin", ADMIN, "WhoAmI", admin.WhoAmIRequest(), " ".join(USERS)),
]


def test_no_method_is_left_out() -> None:
    called = {(case.service, case.method) for case in CASES}
    assert called == {(name, method.name) for name, service in SERVICES.items() for method in service.methods}


@pytest.fixture(scope="module")
def channels(guarded: Guarded) -> Iterator[dict[str, grpc.Channel]]:
    """One to each port. The topic `mine` has a message."""
    opened = {port: grpc.insecure_channel(guarded.address(port)) for port in {case.port for case in CASES}}
    code, details = answer(opened["store"], CASES[0], "producer")
    assert code is grpc.StatusCode.OK, details
    yield opened
    for channel in opened.values():
        channel.close()


@cache
def method_of(service: str, name: str) -> MethodDescriptor:
    return SERVICES[service].methods_by_name[name]


def answer(
    channel: grpc.Channel, case: Case, user: str | None, secret: str = "the secret"
) -> tuple[grpc.StatusCode, str]:
    """How a call ends, or begins if it is a stream without an end: OK as soon as there is an answer."""
    method = method_of(case.service, case.method)
    kinds = {
        (False, False): channel.unary_unary,
        (True, False): channel.stream_unary,
        (False, True): channel.unary_stream,
        (True, True): channel.stream_stream,
    }
    kind: Any = kinds[method.client_streaming, method.server_streaming]
    callable_ = kind(
        f"/{case.service}/{case.method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    request = iter([case.request]) if method.client_streaming else case.request
    try:
        call = callable_(request, metadata=credentials(user, secret), timeout=60)
        if method.server_streaming:
            next(call, None)
            call.cancel()
    except grpc.RpcError as error:
        failed: Any = error
        return failed.code(), failed.details()
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_who_may_call_it_and_who_may_not(channels: dict[str, grpc.Channel], case: Case) -> None:
    channel = channels[case.port]
    code, details = answer(channel, case, None)
    assert (code, "no credentials" in details) == (grpc.StatusCode.UNAUTHENTICATED, True)
    assert "TANDEM_SECRET_FILE" in details, "it says what to do"
    code, details = answer(channel, case, "services", "guess")
    assert (code, "no user 'services' with this secret" in details) == (grpc.StatusCode.UNAUTHENTICATED, True)
    code, details = answer(channel, case, "mallory", "guess")
    assert code is grpc.StatusCode.UNAUTHENTICATED
    for user in USERS:
        code, details = answer(channel, case, user)
        if user in case.users.split() or user == "services":
            assert code not in REFUSALS, f"{user}: {details}"
            assert code is not grpc.StatusCode.UNIMPLEMENTED
        else:
            assert code is grpc.StatusCode.PERMISSION_DENIED, f"{user} may, with {code} {details}"
            assert details.startswith(f"user {user} may not ")
            assert "an administrator can give it a role with" in details
