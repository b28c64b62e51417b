"""What was just made in a metasync is known to its store at once, so that whoever made it can use it."""

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import AdminError
from tandemmq.delivery.v1 import operations_pb2
from tandemmq.metadata.v1 import metadata_pb2


async def usable_topic(node: KnownNode, config: metadata_pb2.TopicConfig) -> None:
    """Tell a master's store of a new topic. One that does not hear it follows its metasync as ever."""
    told = metadata_pb2.TopicConfig()
    told.CopyFrom(config)
    told.ClearField("other_json")
    try:
        await node.ask("store", node.operations.CreateTopic(operations_pb2.CreateTopicRequest(config=told)))
    except AdminError:  # it knows the topic already, or it is away
        return


async def usable_group(node: KnownNode, config: metadata_pb2.SubscriptionGroupConfig) -> None:
    """The same of a new group."""
    told = metadata_pb2.SubscriptionGroupConfig()
    told.CopyFrom(config)
    told.ClearField("other_json")
    try:
        await node.ask("store", node.operations.CreateGroup(operations_pb2.CreateGroupRequest(config=told)))
    except AdminError:
        return
