"""The protocols that the store speaks: translate, call the broker, answer. No decisions here.

::

    native/       our own gRPC contract, for clients
    rocketmq5/    the contract of official RocketMQ 5 clients
    remoting/     the protocol of classic RocketMQ clients
    internal/     the contracts between the services of a node
    access.py     who may call what
"""
