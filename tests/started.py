"""Starting a service's process for a `with` statement: one that does not come up in time does not stay."""

import subprocess
from typing import Protocol, Self, TypeVar


class Startable(Protocol):
    """A kit around a process."""

    process: subprocess.Popen[bytes] | None

    def start(self) -> Self:
        """Starts it and waits until it serves; raises when it does not."""


Kit = TypeVar("Kit", bound=Startable)


def started(kit: Kit) -> Kit:
    """The kit, started. A process that was too slow is killed: it would take time from all tests that follow."""
    try:
        return kit.start()
    except BaseException:
        if kit.process is not None:
            kit.process.kill()
            kit.process.wait()
        raise
