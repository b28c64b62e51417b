"""The gateway: official RocketMQ 5 clients reach several brokers through it as if they were one.

It keeps nothing that outlives it: which clients are there is told to the brokers, which hold on to it for a while when
a gateway ends. So there may be several of them, behind one address.

::

    __main__.py          the service
    settings.py          brokers, ports, limits
    metrics.py           numbers of the gateway
    broker_link.py       one stream to one store: questions and their answers
    remote_broker.py     one broker: its master is found among its addresses
    remote_entries.py    its topics and groups, as far as they were asked for
    cluster.py           all brokers as one: what the front asks (`fronts/broker_port.py`)
    cluster_tables.py    ... topics and groups
    cluster_delivery.py  ... messages, handles and transactions, each at its broker
    any_broker.py        ... a receive that names no broker
    passed_sends.py      SendMessage of plain messages, passed on by the compiled core
    passed_receives.py   ReceiveMessage of simple consumers, for messages that are there
    passed_acknowledgements.py  AckMessage, those of a turn together
    choosing.py          which broker a message goes to
    tokens.py            handles that name their broker
    clients.py           the clients that are there, told to all brokers
    questions.py         questions as bytes, answers as values
    errors.py            what cannot be done
"""
