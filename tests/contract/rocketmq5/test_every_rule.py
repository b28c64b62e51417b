"""Each of the 25 rules of the protocol's description has a test that names its number."""

import re
from pathlib import Path

RULES = range(1, 26)


def test_each_rule_has_a_test_that_names_it() -> None:
    found: set[int] = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        for numbers in re.findall(r"def test_rules?((?:_\d+(?:_and)?)+)_", file.read_text()):
            found.update(map(int, re.findall(r"\d+", numbers)))
    assert found == set(RULES)
