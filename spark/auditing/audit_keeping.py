"""Leaving an audit's result where the store finds it, for its metrics."""

from tandemmq.common.files.file_system import LOCAL
from tandemmq.common.files.replacing import write_atomically
from tandemmq.spark.auditing.audit_report import AuditReport
from tandemmq.store.format.audit_result import NAME, AuditResult
from tandemmq.store.format.manifest import NAME as MANIFEST


def keep_result(report: AuditReport) -> bool:
    """Write ``tandem.audit`` into the directory; False: it is not a store of ours, and is left as it is.

    Raises OSError: nothing has changed.
    """
    if not (report.root / MANIFEST).exists():
        return False
    faults, notes = ({kind.name: number for kind, number, _ in report.found(faults=one)} for one in (True, False))
    result = AuditResult(report.made, report.begin, report.end, faults, notes)
    write_atomically(LOCAL, report.root / NAME, result.encode())
    return True
