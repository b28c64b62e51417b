"""``tandem.audit`` as a store looks at it, at each scrape."""

import logging
from pathlib import Path

import pytest

from tandemmq.store.audit_file import AuditFile
from tandemmq.store.format.audit_result import NAME, AuditResult

RESULT = AuditResult(1_764_000_000_000, 0, 100, {"rot": 2}, {})


def test_each_look_sees_what_is_there_now(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, path = AuditFile(tmp_path), tmp_path / NAME
    assert (file.read(), file.problem) == (None, "")
    path.write_bytes(RESULT.encode())
    assert (file.read(), file.problem) == (RESULT, "")
    path.write_bytes(RESULT.encode().replace(b'"rot":2', b'"rot":0'))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert (file.read(), file.problem) == (None, "the checksum does not fit")
    assert len(caplog.records) == 1, "once for all scrapes"
    path.unlink()
    path.mkdir()
    assert file.read() is None
    assert "directory" in file.problem
    path.rmdir()
    path.write_bytes(RESULT.encode())
    assert (file.read(), file.problem) == (RESULT, "")
