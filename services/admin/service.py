"""tandemmq.admin.v1.Admin: each call goes to the part that knows."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from tandemmq.admin.access import keep_seen_groups
from tandemmq.admin.actions.actions import Actions
from tandemmq.admin.actions.recording import recorded
from tandemmq.admin.bundle.bundle import Bundle
from tandemmq.admin.catalogue.groups import Groups
from tandemmq.admin.catalogue.topics import Topics
from tandemmq.admin.cluster.cluster import ClusterView
from tandemmq.admin.cluster.configuration import read_configuration
from tandemmq.admin.cluster.nodes import Nodes
from tandemmq.admin.cluster.role_changes import RoleChanges
from tandemmq.admin.consuming.resets import Resets
from tandemmq.admin.consuming.views import Waiting
from tandemmq.admin.history.history import HourHistory
from tandemmq.admin.history.history_answer import tell_history
from tandemmq.admin.jobs.jobs import Jobs
from tandemmq.admin.messages.dead_letters import DeadLetters
from tandemmq.admin.messages.message_ways import MessageWays
from tandemmq.admin.messages.messages import Messages
from tandemmq.admin.messages.tail import Tails
from tandemmq.admin.users import Users
from tandemmq.admin.v1 import admin_pb2, admin_pb2_grpc
from tandemmq.replication.v1 import replication_pb2

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class AdminParts:
    """What knows the answers."""

    nodes: Nodes
    cluster: ClusterView
    history: HourHistory
    topics: Topics
    groups: Groups
    waiting: Waiting
    resets: Resets
    messages: Messages
    ways: MessageWays
    tails: Tails
    dead_letters: DeadLetters
    role_changes: RoleChanges
    jobs: Jobs
    bundle: Bundle
    actions: Actions
    users: Users


class AdminServicer(admin_pb2_grpc.AdminServicer):
    """The calls of the contract; what they mean is in admin.proto."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self.actions = parts.actions

    async def GetCluster(self, request: admin_pb2.GetClusterRequest, context: Context) -> admin_pb2.Cluster:
        """See admin.proto."""
        return await self._parts.cluster.look()

    async def GetHistory(self, request: admin_pb2.GetHistoryRequest, context: Context) -> admin_pb2.GetHistoryResponse:
        """See admin.proto."""
        return tell_history(self._parts.history, request)

    async def GetConfiguration(
        self, request: admin_pb2.GetConfigurationRequest, context: Context
    ) -> admin_pb2.Configuration:
        """See admin.proto."""
        return await read_configuration(self._parts.nodes, request)

    async def ListTopics(self, request: admin_pb2.ListTopicsRequest, context: Context) -> admin_pb2.ListTopicsResponse:
        """See admin.proto."""
        return await self._parts.topics.list(request)

    async def GetTopic(self, request: admin_pb2.GetTopicRequest, context: Context) -> admin_pb2.TopicDetails:
        """See admin.proto."""
        return await self._parts.topics.get(request)

    @recorded
    async def PutTopic(self, request: admin_pb2.PutTopicRequest, context: Context) -> admin_pb2.PutTopicResponse:
        """See admin.proto."""
        return await self._parts.topics.put(request)

    @recorded
    async def DeleteTopic(
        self, request: admin_pb2.DeleteTopicRequest, context: Context
    ) -> admin_pb2.DeleteTopicResponse:
        """See admin.proto."""
        return await self._parts.topics.delete(request)

    async def ListGroups(self, request: admin_pb2.ListGroupsRequest, context: Context) -> admin_pb2.ListGroupsResponse:
        """See admin.proto."""
        return await self._parts.groups.list(request)

    async def GetGroup(self, request: admin_pb2.GetGroupRequest, context: Context) -> admin_pb2.GroupDetails:
        """See admin.proto."""
        return await self._parts.groups.get(request)

    async def GetWaiting(self, request: admin_pb2.GetWaitingRequest, context: Context) -> admin_pb2.GetWaitingResponse:
        """See admin.proto."""
        return await self._parts.waiting.get(request)

    @recorded
    async def PutGroup(self, request: admin_pb2.PutGroupRequest, context: Context) -> admin_pb2.PutGroupResponse:
        """See admin.proto."""
        return await self._parts.groups.put(request)

    @recorded
    async def DeleteGroup(
        self, request: admin_pb2.DeleteGroupRequest, context: Context
    ) -> admin_pb2.DeleteGroupResponse:
        """See admin.proto."""
        return await self._parts.groups.delete(request)

    @recorded
    async def ResetOffsets(
        self, request: admin_pb2.ResetOffsetsRequest, context: Context
    ) -> admin_pb2.ResetOffsetsResponse:
        """See admin.proto."""
        return await self._parts.resets.reset(request)

    async def FindMessages(
        self, request: admin_pb2.FindMessagesRequest, context: Context
    ) -> admin_pb2.FindMessagesResponse:
        """See admin.proto."""
        answer = await self._parts.messages.find(request)
        keep_seen_groups(answer.messages, self.actions.caller(context))
        return answer

    async def TraceMessage(self, request: admin_pb2.TraceMessageRequest, context: Context) -> admin_pb2.MessageTrace:
        """See admin.proto."""
        answer = await self._parts.ways.trace(request)
        keep_seen_groups(answer.messages, self.actions.caller(context))
        return answer

    async def Tail(self, request: admin_pb2.TailRequest, context: Context) -> AsyncIterator[admin_pb2.FoundMessage]:
        """See admin.proto."""
        async with aclosing(self._parts.tails.follow(request)) as messages:
            async for message in messages:
                yield message

    @recorded
    async def SendMessage(
        self, request: admin_pb2.SendMessageRequest, context: Context
    ) -> admin_pb2.SendMessageResponse:
        """See admin.proto."""
        return await self._parts.messages.send(request)

    @recorded
    async def ResendMessages(
        self, request: admin_pb2.ResendMessagesRequest, context: Context
    ) -> admin_pb2.ResendMessagesResponse:
        """See admin.proto."""
        return await self._parts.dead_letters.resend(request)

    @recorded
    async def PromoteNode(
        self, request: admin_pb2.PromoteNodeRequest, context: Context
    ) -> replication_pb2.PromoteResponse:
        """See admin.proto."""
        return await self._parts.role_changes.promote(request)

    @recorded
    async def FollowMaster(
        self, request: admin_pb2.FollowMasterRequest, context: Context
    ) -> replication_pb2.FollowResponse:
        """See admin.proto."""
        return await self._parts.role_changes.follow(request)

    @recorded
    async def StartJob(self, request: admin_pb2.StartJobRequest, context: Context) -> admin_pb2.Job:
        """See admin.proto."""
        return await self._parts.jobs.start(request, self.actions.user(context))

    async def ListJobs(self, request: admin_pb2.ListJobsRequest, context: Context) -> admin_pb2.ListJobsResponse:
        """See admin.proto."""
        return self._parts.jobs.list()

    async def GetJob(self, request: admin_pb2.GetJobRequest, context: Context) -> admin_pb2.Job:
        """See admin.proto."""
        return self._parts.jobs.get(request.id)

    async def WatchJob(self, request: admin_pb2.GetJobRequest, context: Context) -> AsyncIterator[admin_pb2.Job]:
        """See admin.proto."""
        async with aclosing(self._parts.jobs.watch(request.id)) as states:
            async for state in states:
                yield state

    @recorded
    async def CancelJob(self, request: admin_pb2.GetJobRequest, context: Context) -> admin_pb2.Job:
        """See admin.proto."""
        return await self._parts.jobs.cancel(request.id)

    @recorded
    async def GetSupportBundle(
        self, request: admin_pb2.GetSupportBundleRequest, context: Context
    ) -> AsyncIterator[admin_pb2.BundlePart]:
        """See admin.proto."""
        async with aclosing(self._parts.bundle.parts()) as parts:
            async for part in parts:
                yield part

    async def ListActions(
        self, request: admin_pb2.ListActionsRequest, context: Context
    ) -> admin_pb2.ListActionsResponse:
        """See admin.proto."""
        return self.actions.list(request.limit)

    async def ListUsers(self, request: admin_pb2.ListUsersRequest, context: Context) -> admin_pb2.ListUsersResponse:
        """See admin.proto."""
        return self._parts.users.list()

    async def WhoAmI(self, request: admin_pb2.WhoAmIRequest, context: Context) -> admin_pb2.WhoAmIResponse:
        """See admin.proto."""
        return self.actions.who(context)
