"""Jobs as files, so that what they reported outlives admin: `jobs/<id>.json`, a `Job` of the contract each.

JSON, sealed (see `common.documents.sealed`)::

    version   1
    job       the Job, with the names of the contract
    crc32     of the rest

Files of version 0.1 are the job and nothing else; they are read as they are.
"""

from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from tandemmq.admin.errors import CannotRecord
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.common.files.file_system import LOCAL
from tandemmq.common.files.replacing import write_atomically
from tandemmq.common.log_output import get_log

log = get_log(__name__)

_VERSION = 1


class JobFiles:
    """The files of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, job: admin_pb2.Job) -> None:
        """Keep a job as it is now. Raises CannotRecord."""
        path = self._path(job.id)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            document = {"version": _VERSION, "job": MessageToDict(job, preserving_proto_field_name=True)}
            write_atomically(LOCAL, path, seal(document))
        except OSError as error:
            raise CannotRecord(
                f"the job cannot be written down in {path}: {error.strerror}",
                remedy="make room there, or give admin's user the right to write",
            ) from error

    def read(self, job_id: str) -> admin_pb2.Job | None:
        """A job that was kept, None if it cannot be read."""
        try:
            document = unseal(self._path(job_id).read_bytes(), _is_older)
            if _is_older(document):
                document = {"version": _VERSION, "job": document}
            if document.get("version") != _VERSION:
                raise ValueError(f"it is of version {document.get('version')!r}, and this one knows {_VERSION}")
            if not isinstance(job := document.get("job"), dict):
                raise ValueError("there is no job in it")
            return ParseDict(job, admin_pb2.Job(), ignore_unknown_fields=True)
        except (OSError, ParseError, ValueError) as error:
            log.failure("job not readable", error, job=job_id)
            return None

    def all(self) -> list[admin_pb2.Job]:
        """All that can be read, oldest first."""
        try:
            names = sorted(path.stem for path in self._directory.iterdir() if path.suffix == ".json")
        except OSError:  # there were no jobs yet
            return []
        return [job for name in names if (job := self.read(name)) is not None and job.id == name]

    def remove(self, job_id: str) -> None:
        """Forget a job."""
        self._path(job_id).unlink(missing_ok=True)

    def _path(self, job_id: str) -> Path:
        return self._directory / f"{job_id}.json"


def _is_older(document: dict[str, Any]) -> bool:
    """Whether a document is a job itself, as it was before there was a checksum around it."""
    return "id" in document and set(document) <= set(admin_pb2.Job.DESCRIPTOR.fields_by_name)
