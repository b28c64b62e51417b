"""A node and an admin beside it, which the tests of a module share; each uses topics and groups of its own."""

from collections.abc import Iterator

import pytest

from tests.admin_process import AdminProcess, lone_node, running
from tests.faults.pair import Node


@pytest.fixture(scope="module", autouse=True)
def transport() -> str:
    """Admin's tests run once: what serves the ports is shown by the tests of store and metasync."""
    return "fast"


@pytest.fixture(scope="package")
def calm_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node for modules that leave it as it is."""
    node = lone_node(tmp_path_factory.mktemp("calm-node") / "alpha")
    with running(node):
        yield node


@pytest.fixture(scope="package")
def calm_admin(calm_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    """Its admin."""
    with AdminProcess(tmp_path_factory.mktemp("calm-admin") / "own", {"one": calm_node}) as process:
        yield process


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A broker of one node, with all its services."""
    node = lone_node(tmp_path_factory.mktemp("admin-node") / "alpha")
    with running(node):
        yield node


@pytest.fixture(scope="module")
def admin(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    """The admin that looks after it, and sees its files."""
    with AdminProcess(tmp_path_factory.mktemp("admin") / "own", {"one": node}, files=True) as process:
        yield process
