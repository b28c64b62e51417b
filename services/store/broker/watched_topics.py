"""The store's own copy of the topic table, when a metadata service keeps the real one."""

from pathlib import Path

from tandemmq.store.broker.topics import TOPICS, TopicConfig
from tandemmq.store.broker.watched_table import WatchedTable
from tandemmq.store.log.edges.disk import Disk


class WatchedTopicTable(WatchedTable[TopicConfig]):
    """A `TopicTable` that follows a metadata service; its copy is `tandem.topics`."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read the copy of the store directory `root`, or begin with config/topics.json. Raises UnreadableTable."""
        super().__init__(TOPICS, root, disk)
