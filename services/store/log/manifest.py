"""Reading and writing the file ``tandem.manifest``; what it says is told in `tandemmq.store.format.manifest`."""

from pathlib import Path

from tandemmq.store.format.manifest import NAME, Manifest
from tandemmq.store.log.disk import Disk, write_atomically

__all__ = ["NAME", "Manifest", "read_manifest", "write_manifest"]


def read_manifest(root: Path) -> Manifest | None:
    """Read the manifest of a store directory.

    None where it is missing or unreadable, which costs a look at the whole log.
    """
    try:
        return Manifest.decode((root / NAME).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write_manifest(root: Path, manifest: Manifest, disk: Disk) -> None:
    """Replace the manifest atomically."""
    write_atomically(disk, root / NAME, manifest.encode())
