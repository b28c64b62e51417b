"""The table at the end of `make test`: every file counts once, in the line of its package and in the sum."""

import pytest

from tools.coverage_table import is_compiled, package_of, table


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("services/__init__.py", "tandemmq"),
        ("services/admin/console/pages.py", "admin"),
        ("services/store/settings.py", "store"),
        ("services/store/log/queues/queue.py", "store.log"),
        ("services/common/grpc_transport/http2/frames.py", "common.grpc_transport"),
        ("spark/auditing/audit.py", "spark"),
    ],
)
def test_packages(path: str, package: str) -> None:
    assert package_of(path) == package


def test_lines_are_added_up() -> None:
    files = {
        "services/store/log/a.py": {"summary": {"covered_lines": 30, "num_statements": 40}},
        "services/store/log/b/c.py": {"summary": {"covered_lines": 0, "num_statements": 20}},
        "services/admin/a.py": {"summary": {"covered_lines": 1500, "num_statements": 1500}},
        "services/__init__.py": {"summary": {"covered_lines": 0, "num_statements": 0}},
    }
    head, *rows = table(files).splitlines()
    assert head.startswith("coverage: ")
    assert [row.split() for row in rows] == [
        ["admin", "100.0%", "of", "1,500"],
        ["store.log", "50.0%", "of", "60"],
        ["all", "98.1%", "of", "1,560"],
    ]


def test_the_compiled_core_is_told_by_its_declarations() -> None:
    assert is_compiled("services/store/log/compiled/appender.py")
    assert not is_compiled("services/store/log/message_store.py")
