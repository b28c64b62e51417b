"""TandemMQ: a durable, replicated message broker, byte-compatible with Apache RocketMQ.

One distribution, one command; a node is four services. Where to find what::

    tandemmq.store          the store: the only writer of commit log, consume queues and index
        .format             bytes and nothing else: records, properties, units, index layout, checkpoint
        .log                files on disk: append, flush, dispatch, recovery, retention
        .broker             meaning: send, pull, query, topics
        .delivery           who gets which message, when, and how often: groups, retries, delays, transactions
        .fronts             the protocols: translate, call the broker, answer
        .v1                 generated from protos/tandemmq/store/v1
    tandemmq.delivery       generated from protos/tandemmq/delivery/v1: consuming as a group, served by the store
    tandemmq.metadata, tandemmq.replication, tandemmq.broker
                            generated too: what services ask of each other; .node is what every service says of itself
    tandemmq.rocketmq5      generated from protos/tandemmq/rocketmq5/v2: what official RocketMQ 5 clients speak
    tandemmq.client         what users import: send, pull, query, decode raw records
    tandemmq.testing        a broker for the tests of applications, and fixtures for pytest
    tandemmq.cli            the `tandem` command
    tandemmq.common         what every service needs: settings, server bootstrap, errors, log output
    tandemmq.replicator     copies the log between brokers, in RocketMQ's HA protocol
    tandemmq.metasync       topics, subscription groups and offsets, with DataVersion
    tandemmq.admin          API and console for people
    tandemmq.naming         the name server of classic clients
    tandemmq.gateway        the front of RocketMQ 5 clients over several brokers
    tandemmq.hooks          what hooks of users are written against
    tandemmq.node           what `tandem up` does: the processes of a node
    tandemmq.spark          jobs over a log's files

Who may import whom is written in pyproject.toml and checked by the tests: fronts -> delivery -> broker -> log ->
format, never back; services know each other over gRPC only.
"""
