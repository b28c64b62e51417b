"""Both servers, and certificates for them."""

from tests.integration.grpc_transport.conftest import certificates, transport

__all__ = ["certificates", "transport"]
