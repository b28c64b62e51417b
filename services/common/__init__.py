"""What every TandemMQ service needs and no library gives.

One noun per file::

    errors.py            TandemError, and the kinds that errors are of
    grpc_status.py       what gRPC callers are told of each kind
    broker_role.py       the roles of RocketMQ's setting brokerRole
    topic_names.py       what topics and groups may be called, and which names are the broker's own
    group_attributes.py  attributes of groups that mean something here
    topic_attributes.py  which values the attributes of topics may have
    topic_retention.py   a topic's own retention
    default_ports.py     where services listen unless told otherwise
    properties_file.py   reads a Java properties file (broker.conf)
    java_json.py         the JSON of RocketMQ's config files, which is not quite JSON
    counted.py           numbers of things, as people read them
    sealed.py            small JSON documents of ours, with a checksum
    settings.py          typed settings: profile < broker.conf < environment < command line, with origins;
                         settings_profiles.py, settings_errors.py, setting_values.py: its parts
    server_settings.py   the settings that every service has: addresses, TLS, metrics, logging, shutdown
    client_port_settings.py  those of a port for RocketMQ 5 clients, a store's or a gateway's
    service_settings.py  which settings each service of a node has, so that one broker.conf serves all;
                         setting_names.py: their names, generated
    addresses.py         addresses of other services, as settings hold them
    command.py           `python -m tandemmq.<service>`: options, and an error as one line
    server_packages.py   what is said where only the client is installed
    process.py           open files, malloc thresholds; memory.py: how much memory there is
    together.py          several services in one process
    started_pool.py      thread pools whose threads run before there is work
    timers.py            what comes later, handed in, so that tests need not wait for it
    tasks.py             ending what runs in the background
    slices.py            long work on the event loop, in slices
    garbage.py           no pause for garbage collection grows with what is alive
    child_process.py     processes that we start, which end when we do
    log_output.py        readable lines on a terminal, JSON elsewhere
    tls.py               TLS from certificate files; made_certificate.py: or from one that is made
    access/              users and roles from one file, and the check before each call
    credentials.py       who a caller says it is; file_credentials.py: who a service says it is
    client_channel.py    calling other services of ours: TLS, certificate, name
    followed_peer.py     attempts to keep in touch with another process, and what the log says of it;
                         backoff.py: the pauses between them
    grpc_transport/      our own gRPC server: HTTP/2 on asyncio; knows nothing of TandemMQ
    wire/                protocols of others as bytes, without I/O: RocketMQ's remoting
    net/                 sockets under those: connections, server and client of remoting
    grpc_server.py       that one or grpcio's, as the settings say
    guard.py             gRPC handlers that answer errors with the right status, and count what is in flight;
                         guarded_direct.py: the short ways of methods, for callers who may
    health.py            grpc.health.v1, a status per service; health_probe.py asks for it
    node_service.py      tandemmq.node.v1.Node: what a process says of itself; node_access.py: to whom
    service_metrics.py   what the collectors of all services share; call_metrics.py: calls of RocketMQ's clients;
                         distribution.py: histograms
    metrics_endpoint.py  the Prometheus endpoint
    shutdown.py          SIGTERM and SIGINT as something to wait for
    files/               files written as a whole and durably, locks on directories: the same with a broker and without
    server.py            ServiceHost: a service's gRPC server, of all of the above

A service's start-up is a list of steps over these; see `server.ServiceHost`.
"""
