"""Addresses of other services, as settings hold them: `host:port`, `[::1]:8084`."""

import ipaddress


def parse_host_port(text: str) -> tuple[str, int]:
    """Host (without brackets) and port of `host:port`. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{text!r} is not host:port")
    return host, int(port)


def host_port(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_address(text: str | None) -> str | None:
    """For `setting(check=…)`: what would be allowed, or None if the text is an address."""
    try:
        parse_host_port(text or "")
    except ValueError:
        return "host:port, the port 1 to 65535"
    return None


def host_of(address: str) -> str:
    """The host of `host:port`, for comparisons: all loopback addresses are one."""
    host = address.strip().rpartition(":")[0]
    return "localhost" if is_loopback(host) else host


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    bare = host.strip().removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost"
