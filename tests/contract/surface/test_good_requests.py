"""Every method of every port is found by reflection, and answers a good request."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.contract.surface.scene import PORTS, Scene, places, table

pytestmark = pytest.mark.xdist_group("surface")

Spoil = Callable[[str], AbstractContextManager[Scene]]


@pytest.mark.parametrize("port", PORTS)
def test_a_port_has_these_services_and_serves(node: Scene, port: str) -> None:
    assert node.ports[port].services == PORTS[port]
    assert node.ports[port].serving()


def test_no_method_is_forgotten(node: Scene) -> None:
    found = {path for port in node.ports.values() for path in port.methods}
    assert found == set(table()), (
        "tests/contract/surface/requests.json needs a good request for each method, and no other"
    )


@pytest.mark.parametrize(("port", "path"), places("node"))
def test_a_good_request_is_answered(node: Scene, port: str, path: str) -> None:
    entry = table()[path]
    outcome = node.ports[port].call(path, [node.good(port, path)], hold=entry.waits)
    assert (outcome.code, len(outcome.answers)) == ("OK", 1), outcome
    node.check_alive()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["slave", "store"])
def test_good_requests_that_change_the_role(spoil: Spoil, kind: str) -> None:
    with spoil(kind) as scene:
        for port, path in places(kind):
            entry = table()[path]
            outcome = scene.ports[port].call(path, [scene.good(port, path)], hold=entry.waits)
            assert (outcome.code, len(outcome.answers)) == ("OK", 1), (path, outcome)
        scene.check_alive()
