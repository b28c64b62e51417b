"""TopicAccess: the topics that clients name, made at the first sight of them where that is allowed."""

from tandemmq.common.access.needs import publish
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker import rules
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.message_types import ATTRIBUTE
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

_MIXED = {"attributes": {ATTRIBUTE: "MIXED"}, "order": False, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}
_OF_THE_BROKER = (*rules.GROUP_TOPICS, "rmq_sys_")


class TopicAccess:
    """Looks topics up, and has the broker make them."""

    def __init__(self, broker: Broker, *, auto_create: bool, queues: int) -> None:
        """`auto_create`: whether clients may make topics by naming them; `queues`: of such a topic."""
        self._broker = broker
        self._auto_create = auto_create
        self._queues = queues

    def known(self, name: str) -> TopicConfig:
        """A topic that must be there. Raises ProtocolRefusal."""
        found = self._broker.topics.get(name)
        if found is None:
            remedy = "Create it first, or set autoCreateTopicEnable=true."
            raise ProtocolRefusal(pb.TOPIC_NOT_FOUND, f"Topic {name} does not exist.", remedy=remedy)
        return found

    async def found_or_made(self, name: str, call: FrontCall) -> TopicConfig:
        """A topic; made, for messages of any type, where there is none. Raises ProtocolRefusal, TableNotSaved."""
        found = self._broker.topics.get(name)
        if found is not None:
            return found
        if self._may_make(name, call):
            rules.check_topic_name(name)
            await self._broker.sender.create({name: TopicConfig(name, self._queues, self._queues, other=_MIXED)})
        return self.known(name)

    def _may_make(self, name: str, call: FrontCall) -> bool:
        """A retry or dead-letter topic is made by delivery, when something goes there."""
        own = name.startswith(_OF_THE_BROKER) or name in rules.SYSTEM_TOPICS
        return self._auto_create and not own and call.may(publish(name))
