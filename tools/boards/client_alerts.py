"""Alerts about consumers, and about the admin service that watches them."""

from boards.alert_model import Alert

CLIENT_ALERTS = (
    Alert(
        "clients", "TandemNotRegistered", "warning",
        'tandem_peer_there{peer="name server"} == 0', "2m",
        "Node {{ $labels.node }} is not registered at name server {{ $labels.name }}",
        "Classic clients that ask there do not find the node: the name server is away, refuses it, or has another "
        "live master of the same name.",
    ),
    Alert(
        "clients", "TandemBrokerWithoutName", "critical",
        'max by (cluster, broker) (tandem_names_broker{broker_id="0"}) == 0', "2m",
        "No name server knows the master of broker {{ $labels.broker }} any more",
        "The master of broker {{ $labels.broker }} in cluster {{ $labels.cluster }} went without unregistering, and "
        "for two minutes none has registered at any name server. Classic clients find nobody to send to.",
    ),
    Alert(
        "clients", "TandemConsumerLagGrowing", "warning",
        "sum by (cluster, consumer_group, topic) (rocketmq_consumer_lag_messages) > 10000\n"
        "and sum by (cluster, consumer_group, topic) (deriv(rocketmq_consumer_lag_messages[10m])) > 0", "10m",
        "Group {{ $labels.consumer_group }} falls behind on {{ $labels.topic }}",
        "{{ $value | humanize }} messages are not consumed, and they become more.",
    ),
    Alert(
        "clients", "TandemConsumerLagLatency", "warning",
        "max by (cluster, consumer_group, topic) (rocketmq_consumer_lag_latency_milliseconds) > 600000", "5m",
        "Group {{ $labels.consumer_group }} is more than ten minutes late on {{ $labels.topic }}",
        "The oldest message that it has not consumed is {{ $value | humanize }} ms old.",
    ),
    Alert(
        "clients", "TandemGroupStuck", "warning",
        "max by (cluster, consumer_group) (tandem_consumer_oldest_message_seconds) > 900\n"
        "and sum by (cluster, consumer_group) (rocketmq_consumer_connections) > 0", "5m",
        "Group {{ $labels.consumer_group }} has members, and a message that is not dealt with",
        "Its oldest message that is not dealt with is {{ $value | humanizeDuration }} old, while consumers are there.",
    ),
    Alert(
        "clients", "TandemDeadLettersGrowing", "warning",
        "sum by (cluster, consumer_group) (increase(rocketmq_send_to_dlq_messages_total[15m])) > 0", "5m",
        "Group {{ $labels.consumer_group }} gives messages up",
        "About {{ $value | humanize }} messages became dead letters in a quarter of an hour.",
    ),
    Alert(
        "clients", "TandemTimersLate", "warning",
        "max by (cluster, node) (rocketmq_timer_dequeue_latency_milliseconds) > 10000", "2m",
        "Delayed messages of node {{ $labels.node }} are late",
        "The next of them has been due for {{ $value | humanize }} ms, and is not delivered.",
    ),
    Alert(
        "clients", "TandemHalfMessagesOld", "warning",
        "max by (cluster, topic) (tandem_half_message_age_seconds) > 600", "5m",
        "Transactions on {{ $labels.topic }} do not end",
        "The oldest half message has waited {{ $value | humanizeDuration }} for its commit or rollback.",
    ),
    Alert(
        "clients", "TandemLagUnknown", "warning",
        "time() - tandem_admin_collect_timestamp_seconds > 120", "1m",
        "Admin has collected no lag for {{ $value | humanizeDuration }}",
        "What dashboards and alerts say of consumers is that old.",
    ),
    Alert(
        "clients", "TandemAdminCannotReachNode", "warning",
        "tandem_admin_node_up == 0", "1m",
        "Admin gets no answer from {{ $labels.service }} of node {{ $labels.node }}",
        "What admin and console show of this node is missing or old; so is its consumers' lag.",
    ),
)  # fmt: skip
