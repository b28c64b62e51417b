"""TandemMQ: a durable, replicated message broker, byte-compatible with Apache RocketMQ.

One distribution, four small gRPC services, one command. Where to find what::

    tandemmq.store          the store: the only writer of commit log, consume queues and index
        .format             bytes and nothing else: records, properties, units, index layout, checkpoint
        .log                files on disk: append, flush, dispatch, recovery, retention
        .broker             meaning: send, pull, query, topics
        .service            gRPC: translate, validate, map errors to statuses
        .v1                 generated from protos/tandemmq/store/v1
    tandemmq.client         what users import: send, pull, query, decode raw records
    tandemmq.cli            the `tandem` command
    tandemmq.common         what every service needs: settings, server bootstrap, errors, log output
    tandemmq.replicator     copies the log between brokers (to come)
    tandemmq.metasync       topics, groups and offsets (to come)
    tandemmq.admin          API and console for people (to come)

Who may import whom is written in pyproject.toml and checked by the tests: service -> broker -> log -> format, never
back; services know each other over gRPC only.
"""
