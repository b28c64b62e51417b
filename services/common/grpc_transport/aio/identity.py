"""Who is at the other end of a socket: its address as gRPC writes it, and what its certificate says."""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

COMMON_NAME = "x509_common_name"
ALTERNATIVE_NAME = "x509_subject_alternative_name"


@dataclass(frozen=True)
class PeerIdentity:
    """What TLS knows of a peer; the property names are grpcio's."""

    key: str | None = None
    """The property that identifies the peer."""
    properties: Mapping[str, list[bytes]] = field(default_factory=dict)


ANONYMOUS = PeerIdentity()


def peer_name(address: Any, family: int) -> str:
    """`ipv4:127.0.0.1:5000`, `ipv6:%5B::1%5D:5000`, `unix:`; of what `getpeername` gives."""
    if family == socket.AF_INET6 and address[0].startswith("::ffff:"):  # an IPv4 caller of a port for both
        return f"ipv4:{address[0].removeprefix('::ffff:')}:{address[1]}"
    if family == socket.AF_INET6:
        return f"ipv6:{quote(f'[{address[0]}]', safe=':')}:{address[1]}"
    if family == socket.AF_INET:
        return f"ipv4:{address[0]}:{address[1]}"
    return "unix:"


def identity(tls: ssl.SSLObject | None) -> PeerIdentity:
    """The identity of a peer behind TLS; ANONYMOUS without."""
    if tls is None:
        return ANONYMOUS
    properties: dict[str, list[bytes]] = {"transport_security_type": [b"ssl"]}
    certificate = tls.getpeercert()
    raw = tls.getpeercert(binary_form=True)
    if not certificate or raw is None:
        return PeerIdentity(None, properties)
    properties["x509_pem_cert"] = [ssl.DER_cert_to_PEM_cert(raw).encode()]
    subject: Any = certificate.get("subject", ())
    alternatives: Any = certificate.get("subjectAltName", ())
    names = [value.encode() for part in subject for name, value in part if name == "commonName"]
    others = [str(value).encode() for _, value in alternatives]
    if names:
        properties[COMMON_NAME] = names
    if others:
        properties[ALTERNATIVE_NAME] = others
    key = ALTERNATIVE_NAME if others else COMMON_NAME if names else None
    return PeerIdentity(key, properties)
