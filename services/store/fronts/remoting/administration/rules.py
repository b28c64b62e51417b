"""What the administration of a broker needs to know beside the front's rules."""

from collections.abc import Callable
from dataclasses import dataclass

from tandemmq.common.topic_names import ROCKETMQ_SYSTEM_TOPICS
from tandemmq.store.fronts.remoting.administration.traffic_history import TrafficHistory
from tandemmq.store.fronts.remoting.rules import Announced
from tandemmq.store.table_edits import TableEdits


@dataclass(frozen=True, slots=True)
class AdministrationRules:
    """See above."""

    cluster: str
    broker_name: str
    address: str
    """Where clients reach this broker."""
    edits: TableEdits
    properties: Callable[[], str]
    """The store's settings, as the text of a properties file."""
    started_ms: int
    announced: Announced
    traffic: TrafficHistory

    @property
    def system_topics(self) -> list[str]:
        """All topics that are nobody's."""
        return sorted({*ROCKETMQ_SYSTEM_TOPICS, self.cluster, self.broker_name, f"{self.cluster}_REPLY_TOPIC"})
