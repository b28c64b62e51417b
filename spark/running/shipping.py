"""Our own code for a cluster whose Python workers have not installed it: a zip of the package.

It lies in front of what is installed there, so driver and workers always run the same code. The kernels go along as the
machine code that the driver has, so workers need its processor and version of Python; what it needs besides (numpy,
isal, pyarrow) must be installed there. How it is unpacked: unpacking.py. ``python -m tandemmq.spark.running.shipping
FILE.zip`` writes what is sent, for ``--py-files`` of spark-submit.
"""

import atexit
import io
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import tandemmq
from tandemmq.spark.running import unpacking, user_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("spark", "store", "common", "client", "delivery", "replication", "metadata")
"""What of our package tasks may import, directly or through others."""

KERNELS = "store/format/compiled"
"""Whose machine code tasks use."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all entries, so that the same code gives the same bytes, and is unpacked once."""


def zip_package(target: Path) -> Path:
    """Write what is sent into ``target``, a name that ends in .zip; gives it back. Raises OSError."""
    root = Path(tandemmq.__file__).parent
    sources = [root / "__init__.py", *_sources(root)]
    package = _zipped({f"tandemmq/{path.relative_to(root).as_posix()}": path.read_bytes() for path in sources})
    target.write_bytes(
        _zipped(
            {
                "tandemmq/__init__.py": Path(unpacking.__file__).read_bytes(),
                "tandemmq/user_cache.py": Path(user_cache.__file__).read_bytes(),
                f"tandemmq/{unpacking.PACKAGE}": package,
            }
        )
    )
    return target


def ship(session: "SparkSession") -> None:
    """Give the package to all Python workers of a session, those to come too. Raises OSError."""
    scratch = tempfile.mkdtemp(prefix="tandem-ship-")  # the driver serves the file to executors for as long as it runs
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    session.addArtifacts(str(zip_package(Path(scratch) / "tandemmq.zip")), pyfile=True)


def _zipped(files: dict[str, bytes]) -> bytes:
    """A zip that depends on names and contents only."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, contents)
    return written.getvalue()


def _sources(root: Path) -> list[Path]:
    """Python files of the packages and the kernels, in an order that is always the same."""
    code = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    return sorted([*code, *(root / KERNELS).glob("*.so")])


if __name__ == "__main__":
    zip_package(Path(sys.argv[1]))
