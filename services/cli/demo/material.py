"""What the demo sends: real texts of this machine, with keys that people would look for."""

import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tandemmq.cli.talk.failures import CommandFailed

PACKAGES = "demo-packages"
LIBRARY = "demo-library"
"""The topics."""

_STATUS = Path("/var/lib/dpkg/status")
_NOT_LIBRARY = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
_FILE_SIZE_MAX = 1 << 20
_DEFINITION = re.compile(rb"^(?:async def|def|class) (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Item:
    """One message to send."""

    topic: str
    key: str
    tag: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Material:
    """All messages to send, and in words where they come from."""

    items: list[Item]
    sources: list[str]

    @property
    def size(self) -> int:
        """Bytes of all bodies."""
        return sum(len(item.body) for item in self.items)

    def commonest_tags(self, count: int) -> list[str]:
        """The most frequent tags of the first topic."""
        topic = self.items[0].topic
        return [tag for tag, _ in Counter(item.tag for item in self.items if item.topic == topic).most_common(count)]


def gather(least: int, status: Path = _STATUS, library: Path | None = None) -> Material:
    """At least `least` messages: all package records; then library files, then definitions in them, as far as needed.

    Raises CommandFailed where this machine does not have so many.
    """
    library = library or Path(sysconfig.get_paths()["stdlib"])
    items = list(_packages(status))
    sources = [f"{len(items):,} package records of {status}"] if items else []
    for kind, more in (
        ("files of the Python standard library", _files(library)),
        ("of their classes and functions, one by one", _definitions(library)),
    ):
        taken = list(islice(more, max(least - len(items), 0)))
        items += taken
        sources += [f"{len(taken):,} {kind}"] if taken else []
    if len(items) < least:
        raise CommandFailed(f"there are only {len(items):,} texts to send here; the demo wants {least:,}")
    return Material(items, sources)


def _packages(status: Path) -> Iterator[Item]:
    """Package name as key, section as tag, the whole record as body."""
    if not status.is_file():
        return
    for record in status.read_bytes().split(b"\n\n"):
        fields = dict(line.split(": ", 1) for line in record.decode("utf-8", "replace").split("\n") if ": " in line)
        if "Package" in fields:
            yield Item(PACKAGES, fields["Package"], fields.get("Section", "unknown").replace("/", "-"), record)


def _library(root: Path) -> Iterator[tuple[str, str, bytes]]:
    """(path, package, content) of the library's modules but its tests, by path."""
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if not _NOT_LIBRARY.isdisjoint(name.parts) or " " in str(name) or path.stat().st_size > _FILE_SIZE_MAX:
            continue
        yield str(name), name.parts[0] if len(name.parts) > 1 else "single", path.read_bytes()


def _files(root: Path) -> Iterator[Item]:
    """Path as key, package as tag."""
    for name, package, content in _library(root):
        yield Item(LIBRARY, name, package, content)


def _definitions(root: Path) -> Iterator[Item]:
    """The classes and functions of a module as messages of their own; `json/decoder.py:JSONDecoder` as key."""
    for name, package, content in _library(root):
        found = list(_DEFINITION.finditer(content))
        ends = [*(match.start() for match in found), len(content)][1:]
        for match, end in zip(found, ends, strict=True):
            yield Item(LIBRARY, f"{name}:{match[1].decode()}", package, content[match.start() : end])
