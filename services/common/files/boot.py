"""Which start of the machine this is: the page cache outlives a killed process, and no boot."""

from pathlib import Path

NO_BOOT = bytes(16)
"""The kernel does not tell: nothing counts as of this boot."""


def boot_id() -> bytes:
    """16 bytes that change with each start of the machine; `NO_BOOT` where the kernel does not tell."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return bytes.fromhex(text.strip().replace("-", ""))
    except (OSError, ValueError):
        return NO_BOOT
