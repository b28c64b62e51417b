"""What is told of errors that nobody foresaw."""

from tandemmq.cli.talk.failures import unexpected


def test_a_package_that_is_missing_is_told_with_what_installs_it() -> None:
    """An audit needs more than a broker does."""
    told = unexpected(ModuleNotFoundError("No module named 'llvmlite.binding'", name="llvmlite.binding")).message
    assert "the Python package llvmlite is not installed" in told
    assert "pip install 'tandemmq[spark]'" in told
    assert "make venv" in told


def test_a_module_of_ours_that_is_missing_is_our_fault() -> None:
    told = unexpected(ModuleNotFoundError("No module named 'tandemmq.nothing'", name="tandemmq.nothing")).message
    assert "a fault of tandem itself" in told
