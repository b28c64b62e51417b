"""access.signing.toml, edited: what users sign with, beside the access file."""

import json
from pathlib import Path

from tandemmq.cli.access.replacing import replacing
from tandemmq.common.access.signing import read_secrets

_HEAD = "# What users sign with (docs/rocketmq5.md). Made by `tandem user signing-secret`.\n\n[secrets]\n"


def change(path: Path, name: str, secret: str | None) -> None:
    """Set or remove one user's secret. Raises CommandFailed; AccessFileError for a file that others can read."""
    with replacing(path) as replace:
        secrets = read_secrets(path)
        if secret is None:
            if secrets.pop(name, None) is None:
                return
        else:
            secrets[name] = secret
        replace(_HEAD + "".join(f"{_text(one)} = {_text(value)}\n" for one, value in secrets.items()))


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
