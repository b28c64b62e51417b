"""The tables of topics and of subscription groups, without files or network.

A table's content never changes: a change makes a new one, which is written to disk first and accepted then. Whoever
holds a content therefore holds a whole table, with the version that belongs to it. An entry is the JSON object of the
file, fields that nobody here knows included.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import StaleMaster

VERSION_KEY = "dataVersion"


class TableKind(IntEnum):
    """The four tables; the numbers are the contract's."""

    TOPICS = 1
    SUBSCRIPTION_GROUPS = 2
    CONSUMER_OFFSETS = 3
    DELAY_OFFSETS = 4

    @property
    def file_name(self) -> str:
        """RocketMQ's name of its file."""
        return _FILES[self][0]

    @property
    def key(self) -> str:
        """RocketMQ's name of the table inside the file."""
        return _FILES[self][1]


_FILES = {
    TableKind.TOPICS: ("topics.json", "topicConfigTable"),
    TableKind.SUBSCRIPTION_GROUPS: ("subscriptionGroup.json", "subscriptionGroupTable"),
    TableKind.CONSUMER_OFFSETS: ("consumerOffset.json", "offsetTable"),
    TableKind.DELAY_OFFSETS: ("delayOffset.json", "offsetTable"),
}


class Stamp(NamedTuple):
    """What a new version is made of."""

    now_ms: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Content:
    """A whole table at one moment. Its mappings are never changed."""

    version: DataVersion = field(default_factory=DataVersion)
    entries: Mapping[str, Any] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)
    """What the file holds beside entries and version."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a table is to become."""

    content: Content
    keys: frozenset[str] | None
    """Entries that are new, different or gone; None: the whole table is another."""


class ConfigTable:
    """Topics or subscription groups, by name."""

    def __init__(self, kind: TableKind) -> None:
        self.kind = kind
        self.content = Content()

    @property
    def version(self) -> DataVersion:
        """Of the table as it is now."""
        return self.content.version

    @property
    def entries(self) -> Mapping[str, Any]:
        """The table as it is now, by name."""
        return self.content.entries

    # -- the file ---------------------------------------------------------------------------------------------------

    def read(self, document: Mapping[str, Any]) -> Content:
        """The content that a document says. Raises ValueError: it is no such document."""
        entries, version, other = split_document(document, self.kind.key)
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                raise ValueError(f"the entry {name[:80]} is no object")
        return Content(version, entries, other)

    def document(self, content: Content) -> dict[str, Any]:
        """The document that says the content."""
        return {**content.other, VERSION_KEY: content.version.to_json(), self.kind.key: content.entries}

    # -- changes ----------------------------------------------------------------------------------------------------

    def put(self, entries: Mapping[str, Any], stamp: Stamp, *, create_only: bool = False) -> Change | None:
        """Add entries or replace those of the same name; None if that changes nothing."""
        now = self.content.entries
        fresh = {
            name: entry
            for name, entry in entries.items()
            if name not in now or (not create_only and now[name] != entry)
        }
        return self._changed({**now, **fresh}, fresh, stamp) if fresh else None

    def delete(self, names: Iterable[str], stamp: Stamp) -> Change | None:
        """Take entries away; None if there is none of them."""
        gone = self.content.entries.keys() & set(names)
        left = {name: entry for name, entry in self.content.entries.items() if name not in gone}
        return self._changed(left, gone, stamp) if gone else None

    def touch(self, stamp: Stamp) -> Change:
        """The same entries in a new version: a mastership begins."""
        return self._changed(self.content.entries, (), stamp)

    def take_over(self, masters: Content, keep: Iterable[str] = ()) -> Change | None:
        """Become the master's table; entries named in `keep` stay where the master has none.

        None if it is the master's already: the versions are equal.

        Raises:
            StaleMaster: the master's table is older than this one.
        """
        own = self.content
        if masters.version == own.version:
            return None
        if masters.version.older_than(own.version):
            raise stale(self.kind, masters.version, own.version)
        kept = {name: own.entries[name] for name in keep if name in own.entries and name not in masters.entries}
        return Change(Content(masters.version, {**masters.entries, **kept}, masters.other), None)

    def accept(self, change: Change) -> None:
        """The change is durable: the table is the new one from now on."""
        self.content = change.content

    def _changed(self, entries: Mapping[str, Any], keys: Iterable[str], stamp: Stamp) -> Change:
        version = self.content.version.next(stamp.now_ms, stamp.epoch)
        return Change(Content(version, entries, self.content.other), frozenset(keys))


def stale(kind: TableKind, masters: DataVersion, own: DataVersion) -> StaleMaster:
    """The refusal of a table that is older than ours."""
    return StaleMaster(
        f"The master's {kind.file_name} is older (version {shown(masters)}) than ours ({shown(own)}): it is not taken.",
        remedy=(
            "Is this the right master, and did it lose its config directory? To take its table all the same, stop this "
            f"node's metasync and move {kind.file_name} and {kind.file_name}.bak away."
        ),
    )


def shown(version: DataVersion) -> str:
    """A version in a message: state version, counter, timestamp."""
    return f"{version.state_version}/{version.counter}/{version.timestamp}"


def split_document(document: Mapping[str, Any], key: str) -> tuple[dict[str, Any], DataVersion, dict[str, Any]]:
    """Entries, version and the rest of a document. Raises ValueError."""
    entries = document.get(key)
    if not isinstance(entries, dict):
        raise ValueError(f"it has no {key}")
    version = DataVersion.from_json(document.get(VERSION_KEY))
    return entries, version, {name: value for name, value in document.items() if name not in (key, VERSION_KEY)}
