"""KvStore: small values by namespace and key, which people and tools put (RocketMQ: ``KVConfigManager``).

The file is RocketMQ's kvConfig.json: ``{"configTable":{"namespace":{"key":"value"}}}``.
"""

from pathlib import Path
from typing import Any

from tandemmq.common.documents import java_json
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.files.file_system import LOCAL
from tandemmq.common.files.replacing import write_atomically

ORDER_TOPICS = "ORDER_TOPIC_CONFIG"
"""The namespace of topics whose queues have an order: `broker:queues;broker:queues` by topic."""

Table = dict[str, dict[str, str]]


class UnreadableValues(TandemError):
    """The file is there and cannot be read."""

    kind = Kind.UNUSABLE
    remedy = "repair the file, or move it away to start without values"


class ValuesNotSaved(TandemError):
    """The file cannot be written; nothing was changed."""

    kind = Kind.DISK_FAILED


class UnknownValue(TandemError):
    """There is no such value."""

    kind = Kind.NOT_FOUND


class KvStore:
    """See the module. Its methods block for as long as a small file is written."""

    def __init__(self, path: Path) -> None:
        """Raises UnreadableValues."""
        self._path = path
        self._table = _loaded(path)

    def get(self, namespace: str, key: str) -> str:
        """A value. Raises UnknownValue."""
        try:
            return self._table[namespace][key]
        except KeyError:
            raise UnknownValue(f"No config item, Namespace: {namespace} Key: {key}") from None

    def of(self, namespace: str) -> dict[str, str]:
        """All of a namespace. Raises UnknownValue."""
        if namespace not in self._table:
            raise UnknownValue(f"No config item, Namespace: {namespace}")
        return dict(self._table[namespace])

    def order_of(self, topic: str) -> str | None:
        """What an ordered topic has."""
        return self._table.get(ORDER_TOPICS, {}).get(topic)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value; durable when this returns. Raises ValuesNotSaved."""
        self._save({**self._table, namespace: {**self._table.get(namespace, {}), key: value}})

    def delete(self, namespace: str, key: str) -> None:
        """Forget a value, if there is one. Raises ValuesNotSaved."""
        if key in self._table.get(namespace, {}):
            left = {name: value for name, value in self._table[namespace].items() if name != key}
            self._save({**self._table, namespace: left})

    def _save(self, table: Table) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(LOCAL, self._path, java_json.dumps({"configTable": table}))
        except OSError as error:
            raise ValuesNotSaved(f"cannot write {self._path}: {error.strerror or error}") from error
        self._table = table


def _loaded(path: Path) -> Table:
    try:
        table: Any = java_json.loads(path.read_bytes()).get("configTable", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UnreadableValues(f"{path} cannot be read: {error}") from error
    if not isinstance(table, dict) or not all(_are_texts(one) for one in table.values()):
        raise UnreadableValues(f"{path} holds no values by namespace and key")
    return table


def _are_texts(said: Any) -> bool:
    return isinstance(said, dict) and all(isinstance(value, str) for value in said.values())
