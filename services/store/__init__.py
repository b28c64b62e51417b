"""The store: the one service that writes a commit log, its consume queues and its index, and serves them over gRPC.

::

    format/       bytes and nothing else
    log/          files on disk
    broker/       meaning: send, pull, query, topics
    delivery/     who gets which message, when, and how often
    fronts/       the protocols: translate, call, answer
    v1/           generated from protos/tandemmq/store/v1
    table_messages.py   topics and groups as messages of metadata.proto
    settings.py   RocketMQ's settings that this store honours, and a few of its own; remoting_settings.py: of the
                  front of classic clients; other_settings.py: RocketMQ's that change nothing here
    assembly.py   the broker put together over an open store
    exposure.py   who may reach the internal port
    metasync_link.py    tables of topics and groups, from metasync; offsets_link.py: offsets, to it and back
    table_edits.py      topics and groups as an operator's tool changes them
    classic_clients.py  the ports of that front; modes_link.py: a slave's request modes are its master's
    registered.py       what name servers are told of this broker; names_link.py keeps it registered
    compiled_core.py    whether the compiled core can be used, and what of it is
    hook_loading.py     hooks, found by the names of the setting
    metrics.py    what Prometheus is told; delivery_metrics.py: of delivery; gauges.py: what is read at each scrape;
                  loop_lag.py: how late the event loop is; audit_file.py: what the last audit found
    __main__.py   the start-up: `python -m tandemmq.store`
"""
