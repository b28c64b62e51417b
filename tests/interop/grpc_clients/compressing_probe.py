"""The probe service with answers that are compressed by gzip; options as tests.grpc_probe has."""

import functools

import grpc

from tests import grpc_probe

if __name__ == "__main__":
    grpc_probe.make_server = functools.partial(grpc_probe.make_server, compression=grpc.Compression.Gzip)
    grpc_probe.main()
