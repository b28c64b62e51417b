"""The number of the version: one in pyproject.toml, and what the changelog and the documents say of it."""

import re
import tomllib
from pathlib import Path

from tools.build_deb import debian_version

REPOSITORY = Path(__file__).resolve().parents[3]


def version() -> str:
    return str(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"])


def test_the_changelog_begins_with_what_will_be_or_is_released() -> None:
    """`X.dev0` comes before X, so that until 0.2.0 is there the number must not be one of 0.1.0."""
    newest = re.search(r"^## (.*)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    number, in_the_making = re.fullmatch(r"(\d+\.\d+\.\d+)(\.dev0)?", version()).groups()  # type: ignore[union-attr]
    if in_the_making:
        assert newest[1] == f"Unreleased ({number})"
    else:
        assert re.fullmatch(rf"{re.escape(number)} \(\d{{4}}-\d{{2}}-\d{{2}}\)", newest[1])


def test_documents_name_the_package_as_it_is_called() -> None:
    named = re.findall(r"tandemmq_(\S+?)_amd64\.deb", (REPOSITORY / "docs" / "install.md").read_text())
    assert named
    assert set(named) == {debian_version(version())}
