"""What services cost while nothing happens, and how quickly admin and its console answer for a large cluster."""

import json
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from bench.context import Context
from bench.groups.hour import hour
from bench.groups.watched import watched
from bench.model import Case, Contestant, Sample, Unavailable
from bench.process import ServerProcess, free_port
from bench.store import Store
from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.store.v1 import message_pb2, store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub

TOPICS, GROUPS, QUEUES, TOPICS_OF_A_GROUP = 1_000, 10_000, 8, 2
SERVICES = ("store", "replicator", "metasync", "admin")
GRPC, CONSOLE = "gRPC", "console"

_IDLE_SECONDS = 3.0
_CALLS = 60
_AT_ONCE = 10_000
_READY_SECONDS = 120.0

CALLS: Mapping[str, tuple[str, Message]] = {
    "GetCluster": ("the cluster", pb.GetClusterRequest()),
    "ListTopics": ("a page of 100 topics", pb.ListTopicsRequest()),
    "FindTopics": ("topics by a part of the name", pb.ListTopicsRequest(match="77")),
    "GetTopic": ("a topic with its queues and groups", pb.GetTopicRequest(topic="topic-00042")),
    "ListGroups": ("a page of 100 groups with their lag", pb.ListGroupsRequest()),
    "LaggingGroups": ("all groups compared by lag", pb.ListGroupsRequest(min_lag=1)),
    "GetGroup": ("a group with its progress", pb.GetGroupRequest(group="group-00042")),
}
"""By case: what it is, and the request; the method is that of the request's type."""


def admin(context: Context) -> None:
    """Start and idle memory of each service, sends while people look, and the admin of many topics and groups."""
    starts = [Contestant(one, partial(_start, context, one)) for one in SERVICES]
    title = "Start of each service to its first connection, and idle"
    context.run([Case("admin.start", title, "seconds", starts, rounds=3)])
    watched(context)
    hour(context)
    names = [f"admin.{name}" for name in CALLS]
    if not any(map(context.wants, names)):
        return
    with _large(context) as large:
        cases = [
            Case(
                f"admin.{name}",
                f"{what.capitalize()}, of {TOPICS:,} topics and {GROUPS:,} groups",
                "p50_us",
                [
                    Contestant(GRPC, partial(_timed, large, partial(large.call, request))),
                    Contestant(CONSOLE, partial(_timed, large, partial(large.post, request))),
                ],
                rounds=1,
            )
            for name, (what, request) in CALLS.items()
        ]
        context.run(cases)


def _start(context: Context, service: str) -> Sample:
    server = _server(context.fresh(f"start-{service}"), service)
    try:
        seconds = server.start()
        time.sleep(_IDLE_SECONDS)
        resident, anonymous = server.memory_mb()
        return {"seconds": seconds, "rss_mb": resident, "anon_mb": anonymous}
    finally:
        server.discard()


def _server(directory: Path, service: str, **settings: object) -> ServerProcess:
    port = free_port()
    own: dict[str, dict[str, object]] = {
        "store": {"storePathRootDir": directory / "store", "internalPort": 0},
        "replicator": {"storePathRootDir": directory / "store", "haListenPort": 0},
        "metasync": {"storePathRootDir": directory / "store"},
        "admin": {"adminDirectory": directory / "admin", "consolePort": 0},
    }
    lines = {"grpcPort": port, "metricsPort": 0, "logLevel": "WARNING", **own[service], **settings}
    conf = directory / f"{service}.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    command = [sys.executable, "-m", f"tandemmq.{service}", "--config", str(conf)]
    return ServerProcess(f"tandem-{service}", command, directory, port)


class _Large:
    """A node with its admin."""

    def __init__(self, admin: ServerProcess, console: int) -> None:
        self.admin = admin
        self._console = console
        self._channel = grpc.insecure_channel(admin.target, options=[("grpc.max_receive_message_length", 64 << 20)])
        self._stub = AdminStub(self._channel)

    def call(self, request: Message) -> Message:
        """Over gRPC."""
        answer: Message = getattr(self._stub, _method(request))(request, timeout=30)
        return answer

    def post(self, request: Message) -> bytes:
        """As the console's pages do."""
        url = f"http://127.0.0.1:{self._console}/api/{_method(request)}"
        body = json.dumps(MessageToDict(request)).encode()
        headers = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{self._console}"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as answer:
            return bytes(answer.read())

    def close(self) -> None:
        """Its connections."""
        self._channel.close()


def _method(request: Message) -> str:
    return request.DESCRIPTOR.name.removesuffix("Request")


def _timed(large: _Large, call: Callable[[], object]) -> Sample:
    """Latencies of calls one after the other, over more than a second: queue ends are asked for again on the way."""
    call()
    cpu = large.admin.cpu()
    latencies = []
    for _ in range(_CALLS):
        begun = time.perf_counter()
        call()
        latencies.append((time.perf_counter() - begun) * 1e6)
        time.sleep(0.02)
    cpu = large.admin.cpu() - cpu
    return {
        "p50_us": statistics.median(latencies),
        "p99_us": statistics.quantiles(latencies, n=100)[98],
        "max_us": max(latencies),
        "cpu_us": cpu * 1e6 / _CALLS,
        "rss_mb": large.admin.memory_mb()[0],
    }


@contextmanager
def _large(context: Context) -> Iterator[_Large]:
    directory = context.fresh("admin-large")
    metasync = _server(directory, "metasync", storeAddress="", brokerName="bench", brokerRole="ASYNC_MASTER")
    store = Store(directory / "node", profile="embedded", brokerName="bench", metasyncAddress=metasync.target)
    nodes = f"one={store.server.target};metasync={metasync.target};replicator=127.0.0.1:{free_port()}"
    console = free_port()
    servers = [store.server, metasync]
    try:
        metasync.start()
        store.start()
        context.say(f"  making {TOPICS:,} topics and {GROUPS:,} groups")
        _fill(metasync.target, store.server.target)
        admin = _server(directory, "admin", adminNodes=nodes, consolePort=console)
        servers.append(admin)
        admin.start()
        large = _Large(admin, console)
        try:
            yield large
        finally:
            large.close()
    finally:
        for server in reversed(servers):
            server.discard()


def _fill(metasync: str, store: str) -> None:
    """Raises Unavailable."""
    topics = [f"topic-{number:05}" for number in range(TOPICS)]
    groups = [f"group-{number:05}" for number in range(GROUPS)]
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(metasync, options=options) as channel:
        metadata = MetadataStub(channel)
        configs = [metadata_pb2.TopicConfig(name=name, read_queues=QUEUES, write_queues=QUEUES) for name in topics]
        metadata.PutTopics(metadata_pb2.PutTopicsRequest(topics=configs))
        wanted = [metadata_pb2.SubscriptionGroupConfig(name=name) for name in groups]
        metadata.PutGroups(metadata_pb2.PutGroupsRequest(groups=wanted))
        commits = [
            metadata_pb2.OffsetCommit(topic=topics[(at + more) % TOPICS], group=group, queue_id=queue, offset=at % 2)
            for at, group in enumerate(groups)
            for more in range(TOPICS_OF_A_GROUP)
            for queue in range(QUEUES)
        ]
        for at in range(0, len(commits), _AT_ONCE):
            metadata.CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=commits[at : at + _AT_ONCE]))
    with grpc.insecure_channel(store, options=options) as channel:
        stub = StoreStub(channel)
        deadline = time.monotonic() + _READY_SECONDS
        while len(stub.ListQueues(store_pb2.ListQueuesRequest()).topics) < TOPICS:
            if time.monotonic() > deadline:
                raise Unavailable("the store did not learn of the topics")
            time.sleep(0.1)
        for name in topics:
            messages = [message_pb2.Message(topic=name, queue_id=queue, body=b"x") for queue in range(QUEUES)]
            stub.SendBatch(store_pb2.SendBatchRequest(messages=messages))
