"""What every TandemMQ service needs and no library gives.

One noun per file::

    errors.py            TandemError: an error that knows its gRPC code and its RocketMQ status
    properties_file.py   reads a Java properties file (broker.conf)
    java_json.py         the JSON of RocketMQ's config files, which is not quite JSON
    settings.py          typed settings: profile < broker.conf < environment < command line, with origins
    server_settings.py   the settings that every service has: addresses, TLS, metrics, logging, shutdown
    process.py           open files, malloc thresholds, garbage collector
    log_output.py        readable lines on a terminal, JSON elsewhere
    tls.py               TLS from certificate files
    grpc_transport/      our own gRPC server: HTTP/2 on asyncio; knows nothing of TandemMQ
    grpc_server.py       that one or grpcio's, as the settings say
    guard.py             gRPC handlers that answer errors with the right status, and count what is in flight
    health.py            grpc.health.v1, a status per service
    metrics_endpoint.py  the Prometheus endpoint
    shutdown.py          SIGTERM and SIGINT as something to wait for
    server.py            ServiceHost: all of the above as one server

A service's `__main__.py` is a list of steps over these; see `server.ServiceHost`.
"""
