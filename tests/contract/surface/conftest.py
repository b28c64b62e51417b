"""The services whose surface is looked at; one node for all tests, throw-away ones for each that changes roles."""

import base64
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.contract.surface.scene import Scene, throw_away, whole_node


@pytest.fixture(scope="package", autouse=True)
def transport() -> str:
    """These tests run once: that both transports answer alike is shown elsewhere."""
    return "fast"


@pytest.fixture(scope="package")
def node(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Store, replicator, metasync and admin."""
    with whole_node(tmp_path_factory.mktemp("surface")) as scene:
        yield scene


@pytest.fixture(scope="package")
def log_bytes(node: Scene) -> str:
    """The first record of the node's log, as a master sends it to a slave; in base64."""
    record = node.ports["store"].ask("/tandemmq.store.v1.Store/Pull", topic="surface", maxMessages=1).records
    return base64.b64encode(record).decode()


@pytest.fixture
def spoil(log_bytes: str, tmp_path: Path) -> Callable[[str], AbstractContextManager[Scene]]:
    """Makes a throw-away node: `slave` or `store`."""
    return lambda kind: throw_away(tmp_path, kind, log_bytes)


@pytest.fixture(scope="module")
def spoilt(log_bytes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Scene]]:
    """Throw-away nodes that the tests of a module share, one of each kind; for those that change next to nothing."""
    made: dict[str, Scene] = {}
    with ExitStack() as stack:

        def one(kind: str) -> Scene:
            if kind not in made:
                made[kind] = stack.enter_context(throw_away(tmp_path_factory.mktemp("spoilt"), kind, log_bytes))
            return made[kind]

        yield one
