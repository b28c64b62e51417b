"""Which messages of a store its topics still keep, as its copy of the topic table says.

A store of a metadata service has that in tandem.topics, another one in config/topics.json. A copy of a log alone has
neither: then all messages are kept.
"""

from pathlib import Path

from tandemmq.common.attributes.topic_retention import reserve_hours
from tandemmq.common.documents import java_json
from tandemmq.spark.errors import UnreadableTopics

_FILES = ("tandem.topics", "config/topics.json", "config/topics.json.bak")
_HOUR_MS = 3_600_000


def kept_since(root: Path, now_ms: int) -> dict[str, int]:
    """By topic the store time in ms before which nobody is given messages; only topics with a retention of their own.

    Raises UnreadableTopics.
    """
    table = _table(root)
    found = {name: reserve_hours(name, entry.get("attributes")) for name, entry in table.items()}
    return {name: max(now_ms - hours * _HOUR_MS, 0) for name, hours in found.items() if hours}


def _table(root: Path) -> dict[str, dict[str, object]]:
    reasons = []
    for name in _FILES:
        try:
            table = java_json.loads((root / name).read_bytes()).get("topicConfigTable")
            if isinstance(table, dict) and all(isinstance(entry, dict) for entry in table.values()):
                return table
            reasons.append(f"{root / name} has no topics")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reasons.append(f"{root / name}: {error}")
    if reasons:
        raise UnreadableTopics(f"Nobody knows for how long topics keep messages: {'; '.join(reasons)}.")
    return {}
