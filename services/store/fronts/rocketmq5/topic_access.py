"""TopicAccess: the topics that clients name, made at the first sight of them where that is allowed."""

from collections.abc import Sequence

from tandemmq.common.access.needs import publish
from tandemmq.common.topic_names import BROKER_WRITES, GROUP_TOPICS, SYSTEM_PREFIX
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker import rules
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.broker_port import BrokerPort, BrokerTopic
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.message_types import ATTRIBUTE
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

_MIXED = {"attributes": {ATTRIBUTE: "MIXED"}, "order": False, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}


class TopicAccess:
    """Looks topics up, and has the brokers make them."""

    def __init__(self, port: BrokerPort, *, auto_create: bool, queues: int) -> None:
        """`auto_create`: whether clients may make topics by naming them; `queues`: of such a topic."""
        self._port = port
        self._auto_create = auto_create
        self._queues = queues

    async def found_or_made(self, name: str, call: FrontCall) -> TopicConfig:
        """A topic; made, for messages of any type, where there is none. Raises ProtocolRefusal, TableNotSaved."""
        return (await self.everywhere(name, call))[0].config

    async def everywhere(self, name: str, call: FrontCall) -> Sequence[BrokerTopic]:
        """As `found_or_made`: the topic at each broker that has it, one at least."""
        found = await self._port.topic(name, call.user)
        if not found and self._may_make(name, call):
            rules.check_topic_name(name)
            found = await self._port.create_topic(
                TopicConfig(name, self._queues, self._queues, other=_MIXED), call.user
            )
        if not found:
            remedy = "Create it first, or set autoCreateTopicEnable=true."
            raise ProtocolRefusal(pb.TOPIC_NOT_FOUND, f"Topic {name} does not exist.", remedy=remedy)
        return found

    def _may_make(self, name: str, call: FrontCall) -> bool:
        """A retry or dead-letter topic is made by delivery, when something goes there."""
        own = name.startswith((*GROUP_TOPICS, SYSTEM_PREFIX)) or name in BROKER_WRITES
        return self._auto_create and not own and call.may(publish(name))
