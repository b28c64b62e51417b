"""Hooks that are installed where stores find them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.hooks.hook_package import BAD_HOOKS, PROJECT, documented, installed


@pytest.fixture(scope="session")
def hook_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages."""
    root = tmp_path_factory.mktemp("hooks")
    installed(root / "audit", root / "site", documented())
    installed(root / "bad", root / "site", {"pyproject.toml": PROJECT, "bad_hooks.py": BAD_HOOKS})
    return root / "site"


@pytest.fixture(scope="module")
def with_hooks(hook_packages: Path) -> Iterator[pytest.MonkeyPatch]:
    """Processes that are started find the packages."""
    with pytest.MonkeyPatch.context() as patch:
        before = os.environ.get("PYTHONPATH")
        patch.setenv("PYTHONPATH", f"{hook_packages}{os.pathsep}{before}" if before else str(hook_packages))
        yield patch
