"""Brokers for the tests of applications: started in a moment, gone with the test.

With pytest and `pip install tandemmq[testing]` there are fixtures::

    def test_orders_are_billed(tandem_broker):
        topic = tandem_broker.create_topic()
        start_my_application(endpoint=tandem_broker.address, topic=topic)

Without pytest, or for a broker of one's own::

    from tandemmq.testing import TemporaryBroker

    with TemporaryBroker() as broker:
        print(broker.address)

docs/testing.md has more. Which module has what::

    broker.py      TemporaryBroker: the process, its directory, its port
    container.py   BrokerContainer: the same in a container
    plugin.py      the fixtures tandem_broker, own_tandem_broker, tandem_settings
    errors.py      BrokerNotStarted, NameTaken
"""

from tandemmq.testing.broker import TemporaryBroker
from tandemmq.testing.container import BrokerContainer
from tandemmq.testing.errors import BrokerNotStarted, NameTaken

__all__ = ["BrokerContainer", "BrokerNotStarted", "NameTaken", "TemporaryBroker"]
