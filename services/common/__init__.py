"""What every TandemMQ service needs and no library gives.

::

    errors.py            TandemError, and the kinds that errors are of
    topic_names.py       what topics and groups may be called, and which names are the broker's own
    timers.py            what comes later, handed in, so that tests need not wait for it
    tasks.py             ending what runs in the background
    slices.py            long work on the event loop, in slices
    log_output.py        readable lines on a terminal, JSON elsewhere
    counted.py           numbers of things, as people read them
    health_probe.py      `python -m tandemmq.common.health_probe` asks for a server's health
    settings/            typed settings: where values come from, and the settings that services share
    serving/             a service's gRPC server, with all that is around it
    identity/            who each side of a connection says it is: certificates, names with secrets
    access/              users and roles from one file, and the check before each call
    calling/             other services of ours: their addresses, channels to them, attempts to reach them
    metrics/             what services tell Prometheus, and the endpoint that answers it
    processes/           what concerns a whole process, and processes that we start
    documents/           small files as text: Java properties, RocketMQ's JSON, JSON of ours
    attributes/          which attributes topics and groups may have, and with which values
    files/               files written as a whole and durably, locks on directories: the same with a broker and
                         without
    grpc_transport/      our own gRPC server: HTTP/2 on asyncio; knows nothing of TandemMQ
    wire/                protocols of others as bytes, without I/O: RocketMQ's remoting
    net/                 sockets under those: connections, server and client of remoting
    server_packages.py   what is said where only the client is installed

A service's start-up is a list of steps over these; see `serving.server.ServiceHost`.
"""
