"""RocketMQ's name server: brokers register, clients ask which of them have a topic.

Several may run; none knows of the others: every broker registers at each, and clients ask any.

One noun per file::

    routes.py     RouteTable: brokers, topics, who is alive; no I/O, no clock
    broker.py     what the table knows of one broker
    bodies.py     routes and lists as the JSON that clients read
    kv.py         KvStore: small values by namespace and key, in one file
    asked.py      Asked: what answers which request code
    watch.py      brokers that have not been heard of, or whose connections closed, go
    settings.py   NamingSettings
    metrics.py    what it tells Prometheus
    measured.py   handlers, measured
    __main__.py   the start-up, step by step
"""
