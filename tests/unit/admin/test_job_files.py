"""JobFiles: a job comes back as it was kept, or not at all."""

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson

from tandemmq.admin.jobs.job_files import JobFiles
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.documents.sealed import seal

JOB = admin_pb2.Job(
    id="20260101-000000-abcdef", kind=admin_pb2.AUDIT, node="one", started_ms=7, report_json='{"faults": 0}'
)


def test_a_job_comes_back(tmp_path: Path) -> None:
    JobFiles(tmp_path / "jobs").write(JOB)
    again = JobFiles(tmp_path / "jobs")
    assert again.read(JOB.id) == JOB
    assert again.all() == [JOB]
    again.remove(JOB.id)
    assert again.all() == []


def test_a_flipped_bit_makes_it_unreadable_and_never_another_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files, path = JobFiles(tmp_path), tmp_path / f"{JOB.id}.json"
    files.write(JOB)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert files.read(JOB.id) is None, at
    assert [one.getMessage() for one in caplog.records] == ["job not readable"] * len(whole)


@pytest.mark.parametrize(
    "document", [{"version": 2, "job": {}}, {"version": 1}, {"version": 1, "job": []}, {"job": {"id": 3}}]
)
def test_another_form_is_not_read(tmp_path: Path, document: dict[str, object]) -> None:
    (tmp_path / "x.json").write_bytes(seal(document))
    assert JobFiles(tmp_path).read("x") is None
    (tmp_path / "x.json").write_text(json.dumps({"id": "x", "version": 1}))
    assert JobFiles(tmp_path).all() == []


def test_a_job_of_before_there_was_a_checksum_is_read(tmp_path: Path) -> None:
    older = MessageToJson(JOB, preserving_proto_field_name=True, ensure_ascii=False)
    (tmp_path / f"{JOB.id}.json").write_text(older)
    assert JobFiles(tmp_path).all() == [JOB]
