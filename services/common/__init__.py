"""What every TandemMQ service needs and no library gives.

One noun per file::

    errors.py            TandemError: an error that knows its gRPC code and its RocketMQ status
    properties_file.py   reads a Java properties file (broker.conf)
    settings.py          typed settings: profile < broker.conf < environment < command line, with origins
    server_settings.py   the settings that every service has: addresses, TLS, metrics, logging, shutdown
    process.py           open files, malloc thresholds, garbage collector
    log_output.py        readable lines on a terminal, JSON elsewhere
    tls.py               server credentials from certificate files
    guard.py             gRPC handlers that answer errors with the right status, and count what is in flight
    health.py            grpc.health.v1, a status per service
    metrics_endpoint.py  the Prometheus endpoint
    shutdown.py          SIGTERM and SIGINT as something to wait for
    server.py            ServiceHost: all of the above as one server

A service's `__main__.py` is a list of steps over these; see `server.ServiceHost`.
"""
