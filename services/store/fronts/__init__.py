"""The protocols that the store speaks: translate, call the broker, answer. No decisions here.

::

    native/         our own gRPC contract, for clients
    rocketmq5/      the contract of official RocketMQ 5 clients
    remoting/       the protocol of classic RocketMQ clients
    internal/       the contracts between the services of a node, and with gateways
    compiled/       what compiled decoders of all of them share
    calls_of_turn.py          calls of one turn that ask for the same, looked after together
    receives_of_turn.py       ... receives
    acknowledgements_of_turn.py  ... acknowledgements
    held_answer.py  answers of sends, until disk and replicas have them
    held_receives.py          ... of receives, until the journal is written
    held_acknowledgements.py  ... of acknowledgements, until it is safe
    broker_port.py  what a front asks of the brokers behind it: one, or several
    direct_port.py  the broker in its own process, asked so
    access.py       who may call what
"""
