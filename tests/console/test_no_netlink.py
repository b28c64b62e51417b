"""The browser of these tests is started so that it hears nothing of the machine's interfaces: that this works."""

import platform
import subprocess
import sys

import pytest

from tests.console import no_netlink

_TRY = """
import socket
socket.create_server(("127.0.0.1", 0)).close()
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.skipif(platform.machine() not in no_netlink._SOCKET_CALLS, reason="no filter is known for this machine")
def test_a_program_gets_no_netlink_socket_but_others() -> None:
    command = [sys.executable, no_netlink.__file__, sys.executable, "-c", _TRY]
    told = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, "Address family not supported by protocol\n", "")
