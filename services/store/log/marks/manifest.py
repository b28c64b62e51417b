"""Reading and writing the file ``tandem.manifest``; what it says is told in `tandemmq.store.format.manifest`."""

from pathlib import Path

from tandemmq.common.files.replacing import write_atomically
from tandemmq.store.format.manifest import NAME, Manifest
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.recovery.file_problems import FileProblem

__all__ = ["NAME", "Manifest", "read_manifest", "write_manifest"]


def read_manifest(root: Path, problems: list[FileProblem] | None = None) -> Manifest | None:
    """Read the manifest of a store directory.

    None where it is missing, or unreadable, which goes to ``problems``; it costs a look at more of the log.
    """
    try:
        return Manifest.decode((root / NAME).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        if problems is not None:
            problems.append(FileProblem(NAME, f"{error}; queues and index are compared with the log"))
        return None


def write_manifest(root: Path, manifest: Manifest, disk: Disk) -> None:
    """Replace the manifest atomically."""
    write_atomically(disk, root / NAME, manifest.encode())
