"""An official client that sends and consumes on while something happens to its broker."""

import subprocess
import threading
from collections.abc import Callable, Mapping

from tests.interop.grpc_clients.programs import command_of


def survives(language: str, address: str, seconds: float, events: Mapping[str, Callable[[], None]]) -> None:
    """Run the client; when it says one of the lines of `events`, that happens. It must say OK and end in its time.

    Some log a line or two of their own after the OK.
    """
    command = [*command_of(f"rocketmq5-{language}"), address, "outage", "outage", "outage-group"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        watchdog = threading.Timer(seconds, client.kill)
        watchdog.start()
        try:
            said = []
            assert client.stdout is not None
            for line in client.stdout:
                said.append(line.strip())
                if said[-1] in events:
                    events[said[-1]]()
        finally:
            watchdog.cancel()
    assert client.returncode == 0, "\n".join(said)[-4_000:]
    assert "OK" in said, "\n".join(said)[-4_000:]
