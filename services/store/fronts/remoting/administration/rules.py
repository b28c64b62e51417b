"""What the administration of a broker needs to know beside the front's rules."""

from collections.abc import Callable
from dataclasses import dataclass

from tandemmq.store.fronts.remoting.rules import Announced
from tandemmq.store.table_edits import TableEdits

SYSTEM_TOPICS = frozenset(
    {
        "SELF_TEST_TOPIC", "TBW102", "BenchmarkTest", "OFFSET_MOVED_EVENT", "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRACE_TOPIC", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)  # fmt: skip
"""RocketMQ's own; tools leave them out of their lists."""


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

    @property
    def system_topics(self) -> list[str]:
        """All topics that are nobody's."""
        return sorted({*SYSTEM_TOPICS, self.cluster, self.broker_name, f"{self.cluster}_REPLY_TOPIC"})
