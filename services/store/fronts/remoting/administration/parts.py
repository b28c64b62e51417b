"""The parts of administration, put together."""

from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.administration.broker_status import BrokerStatus
from tandemmq.store.fronts.remoting.administration.connections import Connections
from tandemmq.store.fronts.remoting.administration.consumption import Consumption
from tandemmq.store.fronts.remoting.administration.group_admin import GroupAdmin
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.administration.tables import TableAnswers
from tandemmq.store.fronts.remoting.administration.topic_admin import TopicAdmin
from tandemmq.store.fronts.remoting.call import Handler
from tandemmq.store.fronts.remoting.clients import RemotingClients


def administration(
    broker: Broker, delivery: Delivery, clients: RemotingClients, rules: AdministrationRules
) -> dict[int, Handler]:
    """What answers tools, by request code."""
    topics = TopicAdmin(broker, delivery, rules)
    return {
        **topics.handlers(),
        **GroupAdmin(broker, delivery, rules).handlers(),
        **Consumption(broker, delivery, topics, rules).handlers(),
        **Connections(delivery.sessions, clients, broker.store.timers).handlers(),
        **BrokerStatus(broker, delivery, rules).handlers(),
        **TableAnswers(broker, delivery, rules).handlers(),
    }
