"""A place for what can be made again: ``$XDG_CACHE_HOME/tandem``, else ``~/.cache/tandem``.

Where neither can be written, a directory of this user under the system's directory for temporary files. What lies
there is executed or loaded by Java, so it must belong to this user and nobody else may write to it.
"""

import hashlib
import os
import stat
import tempfile
from pathlib import Path


def cache_directory(key: str) -> Path:
    """The directory for ``key``, made if it is not there; its name is made of the key's digest."""
    name = hashlib.sha256(key.encode()).hexdigest()[:20]
    for root in _roots():
        place = root / name
        try:
            root.parent.mkdir(parents=True, exist_ok=True)
            root.mkdir(exist_ok=True, mode=0o700)
            place.mkdir(exist_ok=True, mode=0o700)
            if _is_ours_alone(root) and _is_ours_alone(place) and os.access(place, os.W_OK):
                return place
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="tandem-cache-"))


def _roots() -> list[Path]:
    named = os.environ.get("XDG_CACHE_HOME", "")
    usual = Path(named) if os.path.isabs(named) else Path(os.path.expanduser("~")) / ".cache"
    return [usual / "tandem", Path(tempfile.gettempdir()) / f"tandem-cache-{os.getuid()}"]


def _is_ours_alone(place: Path) -> bool:
    state = place.lstat()
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022
