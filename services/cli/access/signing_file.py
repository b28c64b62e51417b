"""access.signing.toml, edited: what users sign with, beside the access file."""

import fcntl
import json
import os
import tempfile
from pathlib import Path

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.common.access.signing import MODE, read_secrets

_HEAD = "# What users sign with (docs/rocketmq5.md). Made by `tandem user signing-secret`.\n\n[secrets]\n"


def change(path: Path, name: str, secret: str | None) -> None:
    """Set or remove one user's secret; the file is replaced whole. Raises CommandFailed, AccessFileError."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        secrets = read_secrets(path)
        if secret is None:
            if secrets.pop(name, None) is None:
                return
        else:
            secrets[name] = secret
        text = _HEAD + "".join(f"{_text(one)} = {_text(value)}\n" for one, value in secrets.items())
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
            new.write(text)
            new.flush()
            os.fchmod(new.fileno(), MODE)
            os.fsync(new.fileno())
        os.replace(new.name, path)
        os.fsync(directory)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error
    finally:
        os.close(directory)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
