"""What is told of errors that nobody foresaw."""

import pytest

from tandemmq.cli.talk.failures import unexpected


@pytest.mark.parametrize(
    ("module", "extra"), [("lark.lexer", "server"), ("uvloop", "server"), ("pyspark.sql", "spark")]
)
def test_a_package_that_is_missing_is_told_with_what_installs_it(module: str, extra: str) -> None:
    """An audit needs more than a broker does."""
    told = unexpected(ModuleNotFoundError(f"No module named '{module}'", name=module)).message
    assert f"the Python package {module.partition('.')[0]} is not installed" in told
    assert f"pip install 'tandemmq[{extra}]'" in told
    assert "make venv" in told


def test_a_module_of_ours_that_is_missing_is_our_fault() -> None:
    told = unexpected(ModuleNotFoundError("No module named 'tandemmq.nothing'", name="tandemmq.nothing")).message
    assert "a fault of tandem itself" in told
