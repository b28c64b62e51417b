"""docs/known-faults.md names tests; they must exist, and every trap must be in it."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = (REPOSITORY / "docs" / "known-faults.md").read_text()


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", DOCUMENT))
    assert len(named) > 30
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (REPOSITORY / path).is_file() or f"def {name}(" not in (REPOSITORY / path).read_text()
    ]
    assert not missing


def test_every_trap_is_listed() -> None:
    listed = set(re.findall(r"\bT(\d+)\b", "".join(re.findall(r"^\|[^|]*\|", DOCUMENT, re.MULTILINE))))
    assert listed == {str(number) for number in range(1, 29)}
