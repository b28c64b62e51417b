"""The document of request modes, which the store keeps: which groups pop which topics, and which pull them.

It is no table of metasync's. A slave's store asks its own metasync, which asks the master; so what is set there once is
known to every slave, and still after a promotion.
"""

from pathlib import Path

from tandemmq.common.documents import java_json
from tandemmq.metasync.errors import UnreadableDocument

FILE = "messageRequestMode.json"


def modes_of_store(root: Path) -> str:
    """What the store of this directory keeps; empty if no mode was ever set. Blocks. Raises UnreadableDocument.

    As the store reads it: its back-up counts where the file is missing or broken.
    """
    wrong = []
    path = root / "config" / FILE
    for one in (path, path.with_name(f"{FILE}.bak")):
        try:
            data = one.read_bytes()
            java_json.loads(data)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            wrong.append(f"{one}: {error}")
        else:
            return data.decode("utf-8-sig")
    if wrong:
        raise UnreadableDocument(f"The request modes cannot be read: {'; '.join(wrong)}.")
    return ""
