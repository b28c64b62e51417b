"""What tests/conftest.py gives to tests that do not say it themselves."""

import pytest

from tests.conftest import PATIENCE_OF_SLOW


@pytest.mark.slow
def test_a_slow_test_has_more_time(request: pytest.FixtureRequest) -> None:
    [limit] = request.node.iter_markers("timeout")
    assert limit.args == (PATIENCE_OF_SLOW,)


@pytest.mark.slow
@pytest.mark.timeout(100)
def test_unless_it_says_what_it_needs(request: pytest.FixtureRequest) -> None:
    [limit] = request.node.iter_markers("timeout")
    assert limit.args == (100,)


def test_a_quick_one_has_the_limit_of_all(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("timeout") is None


def assert_named(request: pytest.FixtureRequest) -> None:
    """Beside others a test of a group is named after it: so xdist sends it to the worker of the group."""
    [group] = request.node.iter_markers("xdist_group")
    assert hasattr(request.config, "workerinput") == request.node.nodeid.endswith(f"@{group.args[0]}")


@pytest.mark.rocketmq
@pytest.mark.parametrize("versions", ["4.9.7", "ours-4.9.7"])
def test_rocketmq_4_is_on_one_worker(request: pytest.FixtureRequest, versions: str) -> None:
    [group] = request.node.iter_markers("xdist_group")
    assert group.args == ("rocketmq 4",), versions
    assert_named(request)


@pytest.mark.rocketmq
@pytest.mark.parametrize("versions", ["5.3.2", "ours-5.3.2", "5.3.3-5.3.2"])
def test_rocketmq_5_is_on_another(request: pytest.FixtureRequest, versions: str) -> None:
    [group] = request.node.iter_markers("xdist_group")
    assert group.args == ("rocketmq 5",), versions
    assert_named(request)
