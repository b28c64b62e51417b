"""How a worker of a cluster comes to our package: this file is the ``tandemmq/__init__.py`` of what shipping.py sends.

It lies in a zip, beside the whole package as another zip. When a worker imports ``tandemmq``, that is unpacked into the
user's cache, into a directory named by its contents, once for each version of the code, and the package's modules come
from there: machine code cannot be loaded out of a zip.
"""

import hashlib
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

PACKAGE = "package.zip"
"""Name of the zip in the zip; beside it is user_cache.py, under that name."""

_TIME = 315_532_800
"""Modification time of all files: 1980-01-01, the first that a zip can hold."""


def unpack(contents: bytes, directory_for: Callable[[str], Path]) -> Path:
    """The directory with the package's modules; made, by one of several workers, if it is not there. Raises OSError."""
    place = directory_for("code " + hashlib.sha256(contents).hexdigest())
    target = place / "tandemmq"
    if target.is_dir():
        return target
    scratch = Path(tempfile.mkdtemp(dir=place))
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            archive.extractall(scratch)
        for path in scratch.rglob("*.py"):
            os.utime(path, (_TIME, _TIME))
        try:
            os.rename(scratch / "tandemmq", target)
        except OSError:
            if not target.is_dir():  # else another worker was quicker
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


if __name__ == "tandemmq":
    from tandemmq.user_cache import cache_directory  # type: ignore[import-not-found,unused-ignore]

    assert __spec__ is not None
    _contents = __spec__.loader.get_data(os.path.join(os.path.dirname(__file__), PACKAGE))  # type: ignore[union-attr]
    __path__ = [str(unpack(_contents, cache_directory))]
