"""What the last audit of the store's directory has left there."""

import logging
from pathlib import Path

from tandemmq.store.format.audit_result import NAME, AuditResult

log = logging.getLogger(__name__)


class AuditFile:
    """``tandem.audit`` of one store, read at each look: an audit is a process of its own and may end at any time."""

    def __init__(self, root: Path) -> None:
        self._path = root / NAME
        self.problem = ""
        """Why the file cannot be used; empty where it can, or is not there. As of the last `read`."""

    def read(self) -> AuditResult | None:
        """What it says; None where nothing is known. A file that cannot be used is logged once."""
        result, problem = None, ""
        try:
            result = AuditResult.decode(self._path.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            problem = str(error)
        if problem and problem != self.problem:
            log.warning("%s cannot be used: %s; the next audit writes it anew", self._path, problem)
        self.problem = problem
        return result
