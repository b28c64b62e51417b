"""RequestModes: whether a group pops a topic or pulls it, in RocketMQ's own file (``MessageRequestModeManager``)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.common.documents import java_json
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.store.broker.local_table import LocalTable, TableForm
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk

POP, PULL = "POP", "PULL"
MAP = "messageRequestModeMap"
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class TopicModes:
    """The modes that were set for one topic."""

    name: str
    groups: Mapping[str, Mapping[str, Any]]
    """By group, what the operator's request said: its mode, and fields that have no meaning here."""

    def to_json(self) -> dict[str, Any]:
        """The topic's entry in the file."""
        return {group: dict(said) for group, said in self.groups.items()}

    @classmethod
    def from_json(cls, name: str, entry: Mapping[str, Any]) -> "TopicModes":
        """Read an entry. Raises ValueError."""
        for group, said in entry.items():
            if not isinstance(said, dict):
                raise ValueError(f"what is said of group {group} and topic {name} is no object")
            mode = said.get("mode")
            if mode not in (POP, PULL, None):
                raise ValueError(f"group {group} has a mode for topic {name} that makes no sense: {str(mode)[:40]}")
        return cls(name, entry)


MODES = TableForm("request mode", "messageRequestMode.json", "", MAP, TopicModes.from_json)
"""The modes in files. A slave's are in the same file as a master's: there is no copy."""


class RequestModes:
    """The modes of one store, in `config/messageRequestMode.json`. A group for which none was set pulls."""

    def __init__(self, root: Path, disk: Disk, clock: Clock) -> None:
        """Read those of the store directory `root`. Raises UnreadableTable."""
        self._table = LocalTable(MODES, root, disk, clock)
        self._turn = asyncio.Lock()
        self.follows: Callable[[], bool] = lambda: False
        """Whether the modes are another master's, now or soon: none is set here then."""

    def pops(self, group: str, topic: str) -> bool:
        """Whether the group pops this topic."""
        modes = self._table.get(topic)
        return modes is not None and modes.groups.get(group, {}).get("mode") == POP

    def document(self) -> dict[str, Any]:
        """All of them, as a Java slave reads them."""
        return {MAP: {one.name: one.to_json() for one in sorted(self._table.all(), key=lambda one: one.name)}}

    async def put(self, group: str, topic: str, said: Mapping[str, Any]) -> None:
        """Durable when this returns. Raises TableNotSaved, RemotingRefusal: too many, or only the master sets them."""
        async with self._turn:
            if self.follows():
                raise RemotingRefusal(
                    ResponseCode.SYSTEM_ERROR,
                    "This broker is a slave, or a newer master has replaced it, and it takes its master's modes: "
                    "set it there.",
                )
            modes = self._table.get(topic)
            groups = {} if modes is None else modes.groups
            if group not in groups and sum(len(one.groups) for one in self._table.all()) >= _MOST:
                raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"{_MOST:,} modes are set: no more are kept.")
            await self._table.change([TopicModes(topic, {**groups, group: dict(said)})], [])

    async def take(self, text: str) -> bool:
        """Become the master's: its document. False: nothing is new, or nothing is followed any more.

        Raises ValueError: it makes no sense. TableNotSaved: they stand as they were.
        """
        found = MODES.entries_of(java_json.loads(text.encode())) if text else {}
        async with self._turn:
            now = {one.name: one for one in self._table.all()}
            fresh = [one for name, one in found.items() if now.get(name) != one]
            gone = now.keys() - found.keys()
            if not (fresh or gone) or not self.follows():
                return False
            await self._table.change(fresh, gone)
            return True
