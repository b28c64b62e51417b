"""The address of a producer or a broker as it stands in a record."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from tandemmq.store.format.errors import FormatError

_PORT_BYTES = 4
V4_SIZE = 4 + _PORT_BYTES
V6_SIZE = 16 + _PORT_BYTES


class IllegalHost(FormatError):
    """Text or bytes that are no address with a port."""


class Host:
    """An IP address and a port.

    Bytes (big-endian): 4 or 16 address bytes, then the port as a 4-byte int: 8 or 20 bytes.
    IPv4-mapped IPv6 addresses (``::ffff:a.b.c.d``, what a dual-stack socket reports) become IPv4, as Java's
    InetAddress makes them. Source: MessageExt.socketAddress2ByteBuffer.
    """

    __slots__ = ("digits", "ip", "is_v6", "packed", "port")

    ip: Final[IPv4Address | IPv6Address]
    port: Final[int]
    packed: Final[bytes]
    """The bytes of the record field, made once."""
    digits: Final[str]
    """``packed`` as upper-case hex, as message ids begin."""
    is_v6: Final[bool]

    def __init__(self, ip: str | bytes | IPv4Address | IPv6Address, port: int) -> None:
        try:
            address = ip if isinstance(ip, IPv4Address | IPv6Address) else ip_address(ip)
        except ValueError as error:
            raise IllegalHost(f"not an IP address: {ip!r}") from error
        if isinstance(address, IPv6Address):
            mapped = address.ipv4_mapped
            # A scope (fe80::1%eth0) means something on one machine only and has no room in the record.
            address = mapped if mapped is not None else IPv6Address(address.packed)
        if not -0x80000000 <= port <= 0x7FFFFFFF:
            raise IllegalHost(f"not a port: {port}")
        self.ip = address
        self.port = port
        self.packed = address.packed + port.to_bytes(_PORT_BYTES, "big", signed=True)
        self.digits = self.packed.hex().upper()
        self.is_v6 = isinstance(address, IPv6Address)

    @classmethod
    def parse(cls, text: str) -> "Host":
        """From ``1.2.3.4:10911`` or ``[::1]:10911``; IllegalHost if it is neither."""
        address, colon, port = text.rpartition(":")
        bracketed = address.startswith("[") and address.endswith("]")
        if not colon or not port.isascii() or not port.isdigit() or (":" in address) != bracketed:
            raise IllegalHost(f"not an address with a port: {text!r}")
        return cls(address[1:-1] if bracketed else address, int(port))

    @staticmethod
    def unpack(data: bytes) -> "Host":
        """From the 8 or 20 bytes of a record field."""
        return _unpack(bytes(data))

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if self.is_v6 else f"{self.ip}:{self.port}"

    def __repr__(self) -> str:
        return f"Host({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Host) and self.packed == other.packed

    def __hash__(self) -> int:
        return hash(self.packed)


@lru_cache(maxsize=4096)
def _unpack(data: bytes) -> Host:
    if len(data) not in (V4_SIZE, V6_SIZE):
        raise IllegalHost(f"{len(data)} bytes are no address: {V4_SIZE} or {V6_SIZE} expected")
    return Host(data[:-_PORT_BYTES], int.from_bytes(data[-_PORT_BYTES:], "big", signed=True))


ANY_HOST = Host("0.0.0.0", 0)
"""Stands for "not known"."""
