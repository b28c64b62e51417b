"""The document of request modes, which the store keeps: which groups pop which topics, and which pull them.

It is no table of metasync's. A slave's store asks its own metasync, which asks the master; so what is set there once is
known to every slave, and still after a promotion.
"""

from pathlib import Path

from tandemmq.metasync.errors import UnreadableDocument

FILE = "messageRequestMode.json"


def modes_of_store(root: Path) -> str:
    """What the store of this directory keeps; empty if no mode was ever set. Blocks. Raises UnreadableDocument."""
    path = root / "config" / FILE
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise UnreadableDocument(f"The request modes cannot be read: {path}: {error}.") from None
