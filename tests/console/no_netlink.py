"""Runs a program that cannot watch the machine's network interfaces: ``python no_netlink.py PROGRAM ARGUMENTS``.

Chromium drops the requests that wait for a connection (net::ERR_NETWORK_CHANGED) whenever an interface of the machine
comes or goes, on the loopback interface too, and other tests make network namespaces at the same time. No option of
Chromium's says otherwise. A program that gets no netlink socket hears of no interface, and Chromium then takes the
network for there and unchanged. Everything else of the network is as it is.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_FILTER = 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_SYSCALL, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Where a filter finds them (struct seccomp_data, little-endian)."""

_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Machine -> the kernel's name for it, and its number of the system call `socket`."""


def refuse_netlink() -> None:
    """From now on this process and its children get EAFNOSUPPORT for a netlink socket. Raises OSError."""
    if platform.machine() not in _SOCKET_CALLS:
        return  # a browser there sees interfaces come and go
    architecture, call = _SOCKET_CALLS[platform.machine()]
    code = b"".join(
        struct.pack("=HBBI", operation, on_true, on_false, value)
        for operation, on_true, on_false, value in (
            (_LOAD, 0, 0, _ARCHITECTURE),
            (_EQUAL, 0, 5, architecture),
            (_LOAD, 0, 0, _SYSCALL),
            (_EQUAL, 0, 3, call),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_EQUAL, 0, 1, socket.AF_NETLINK),
            (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    instructions = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, first, second in ((_PR_SET_NO_NEW_PRIVS, 1, None), (_PR_SET_SECCOMP, _FILTER, program)):
        if libc.prctl(option, ctypes.c_ulong(first), second, ctypes.c_ulong(0), ctypes.c_ulong(0)):
            raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


if __name__ == "__main__":
    refuse_netlink()
    os.execv(sys.argv[1], sys.argv[1:])
