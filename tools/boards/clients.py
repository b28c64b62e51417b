"""Clients: what producers and consumers do, by topic and by group. Lag comes from the admin service."""

from boards.delays import DELAYS
from boards.model import CLUSTER, NODE, SENDS, Choice, Dashboard, Row, lines, stat
from boards.transactions import TRANSACTIONS

_TOPIC = Choice("topic", "topic", 'rocketmq_messages_in_total{cluster=~"$cluster"}', "Topic")
_GROUP = Choice("group", "consumer_group", 'rocketmq_consumer_lag_messages{cluster=~"$cluster"}', "Group")

_NOW = Row(
    "Now",
    (
        stat(
            "Lag", "short",
            "Messages that groups have not consumed, all together. A message counts once for each group.",
            'sum(rocketmq_consumer_lag_messages{%,consumer_group=~"$group"})', width=6,
        ),
        stat(
            "Longest lag time", "ms",
            "Age of the oldest message that a group has not consumed, of the group that is worst.",
            'max(rocketmq_consumer_lag_latency_milliseconds{%,consumer_group=~"$group"})', width=6,
            steps=(("orange", 60_000), ("red", 600_000)),
        ),
        stat(
            "Consumer groups", "short",
            "Consumer groups that exist.",
            "max(rocketmq_consumer_group_number{%})", width=6, base="blue",
        ),
        stat(
            "Nodes that admin reaches", "percentunit",
            "Share of the services that the admin service can ask. Below 100 % what is shown of groups may be old.",
            'avg(tandem_admin_node_up{node=~"$node"})', width=6, at_most=1, base="red", steps=(("green", 1),),
        ),
    ),
)  # fmt: skip

_PRODUCERS = Row(
    "Producers",
    (
        lines(
            "Messages stored", "ops",
            "Messages stored a second, the ten busiest topics.",
            ('topk(10, sum by (topic) (rate(rocketmq_messages_in_total{@,topic=~"$topic"}[$__rate_interval])))',
             "{{topic}}"),
        ),
        lines(
            "Bytes stored", "Bps",
            "Bytes of records stored a second, the ten busiest topics.",
            ('topk(10, sum by (topic) (rate(rocketmq_throughput_in_total{@,topic=~"$topic"}[$__rate_interval])))',
             "{{topic}}"),
        ),
        lines(
            "Size of messages", "bytes",
            "Mean size of a stored record, the ten topics with the largest.",
            ('topk(10, sum by (topic) (rate(rocketmq_message_size_sum{@,topic=~"$topic"}[$__rate_interval])) / '
             'sum by (topic) (rate(rocketmq_message_size_count{@,topic=~"$topic"}[$__rate_interval])))', "{{topic}}"),
        ),
        lines(
            "Sends", "ops",
            "Calls that send, a second, by answer. success is stored; all others say what kept it.",
            ('sum by (request_code, response_code) (rate(rocketmq_rpc_latency_milliseconds_count{@,'
             f'{SENDS}}}[$__rate_interval]))', "{{request_code}} {{response_code}}"),
            width=12,
        ),
        lines(
            "Time of a send", "ms",
            "How long sends take in the store: the middle one, and the one of a hundred that is slowest.",
            ('histogram_quantile(0.99, sum by (le) (rate(rocketmq_rpc_latency_milliseconds_bucket{@,'
             f'{SENDS}}}[$__rate_interval])))', "p99"),
            ('histogram_quantile(0.5, sum by (le) (rate(rocketmq_rpc_latency_milliseconds_bucket{@,'
             f'{SENDS}}}[$__rate_interval])))', "p50"),
            width=12,
        ),
    ),
)  # fmt: skip

_GATEWAYS = Row(
    "Gateways",
    (
        lines(
            "Brokers that gateways reach", "short",
            "1 while a gateway has a link to a broker's master. At 0 the broker's queues are missing for its clients.",
            ("min by (node_id, broker) (tandem_gateway_broker_up{%})", "{{node_id}} to {{broker}}"),
        ),
        lines(
            "Links made", "short",
            "Links that gateways have made within five minutes: more than one for each broker says that they break.",
            ("sum by (node_id, broker) (increase(tandem_gateway_links_total{%}[5m]))", "{{node_id}} to {{broker}}"),
        ),
        lines(
            "Members at gateways", "short",
            "Clients in their groups, at each gateway.",
            ("sum by (node_id) (tandem_gateway_members{%})", "{{node_id}}"),
        ),
    ),
)  # fmt: skip

_CONSUMERS = Row(
    "Consumers",
    (
        lines(
            "Messages given out", "ops",
            "Messages handed out a second, the ten busiest groups. Consumers that name no group are one.",
            ("topk(10, sum by (consumer_group) (rate(rocketmq_messages_out_total{@}[$__rate_interval])))",
             "{{consumer_group}}"),
        ),
        lines(
            "Bytes given out", "Bps",
            "Bytes of records handed out a second, the ten busiest groups.",
            ("topk(10, sum by (consumer_group) (rate(rocketmq_throughput_out_total{@}[$__rate_interval])))",
             "{{consumer_group}}"),
        ),
        lines(
            "Pulls", "ops",
            "Pulls a second, with and without waiting, by answer. pull_not_found of pulls that wait is a consumer that "
            "has read everything.",
            ('sum by (is_long_polling, response_code) (rate(rocketmq_rpc_latency_milliseconds_count{@,'
             'request_code="pull"}[$__rate_interval]))', "waiting {{is_long_polling}} {{response_code}}"),
        ),
    ),
)  # fmt: skip

_DELIVERY = Row(
    "Receiving with acknowledgement",
    (
        lines(
            "Messages in flight", "short",
            "Messages that consumers hold and have not acknowledged, by group.",
            ('sum by (consumer_group) (rocketmq_consumer_inflight_messages{@,consumer_group=~"$group"})',
             "{{consumer_group}}"),
        ),
        lines(
            "Ready to be received", "short",
            "Messages that each group can get now: new ones, and those that are due again.",
            ('topk(20, sum by (consumer_group) (rocketmq_consumer_ready_messages{@,consumer_group=~"$group"}))',
             "{{consumer_group}}"),
        ),
        lines(
            "Oldest message", "s",
            "Age of the oldest message that each group has not dealt with. Rising while members are there: the group "
            "is stuck on it.",
            ('max by (consumer_group) (tandem_consumer_oldest_message_seconds{@,consumer_group=~"$group"})',
             "{{consumer_group}}"),
        ),
        lines(
            "Members", "short",
            "Clients that consume, by group, protocol and version of the client. 0: nobody consumes.",
            ('sum by (consumer_group, protocol_type, language, version) '
             '(rocketmq_consumer_connections{@,consumer_group=~"$group"})',
             "{{consumer_group}} {{protocol_type}} {{language}} {{version}}"),
        ),
        lines(
            "Clients that send", "short",
            "Producers that are known, by protocol and version of the client.",
            ("sum by (protocol_type, language, version) (rocketmq_producer_connections{@})",
             "{{protocol_type}} {{language}} {{version}}"),
        ),
        lines(
            "Wait for the first delivery", "ms",
            "Age of the oldest message that a group was never given.",
            ('max by (consumer_group) (rocketmq_consumer_queueing_latency_milliseconds{@,consumer_group=~"$group"})',
             "{{consumer_group}}"),
        ),
        lines(
            "Most deliveries of one message", "short",
            "Of a message that the group has not dealt with: how often it was given out. Rising: one fails again and "
            "again.",
            ('max by (consumer_group) (tandem_consumer_most_deliveries{@,consumer_group=~"$group"})',
             "{{consumer_group}}"),
        ),
        lines(
            "Dead letters and losses", "ops",
            "Messages a second that became dead letters, that expired before they were acknowledged, and that were put "
            "off so long that they went to the retry topic.",
            ('sum by (consumer_group) (rate(rocketmq_send_to_dlq_messages_total{@,consumer_group=~"$group"}'
             "[$__rate_interval]))", "dead letters: {{consumer_group}}"),
            ('sum by (consumer_group) (rate(tandem_consumer_expired_messages_total{@,consumer_group=~"$group"}'
             "[$__rate_interval]))", "expired: {{consumer_group}}"),
            ('sum by (consumer_group) (rate(tandem_consumer_moved_messages_total{@,consumer_group=~"$group"}'
             "[$__rate_interval]))", "to the retry topic: {{consumer_group}}"),
        ),
    ),
)  # fmt: skip

_LAG = Row(
    "Lag, by group and topic",
    (
        lines(
            "Lag", "short",
            "Messages behind the committed offset of each group. Rising for long: the group cannot keep up, or nobody "
            "runs it. Retry topics have is_retry=true.",
            ('topk(20, sum by (consumer_group, topic) (rocketmq_consumer_lag_messages{%,consumer_group=~"$group"}))',
             "{{consumer_group}} {{topic}}"),
        ),
        lines(
            "Delay", "ms",
            "Age of the oldest message that each group has not consumed. This is what users of the messages feel.",
            ('topk(20, max by (consumer_group, topic) (rocketmq_consumer_lag_latency_milliseconds{%,'
             'consumer_group=~"$group"}))', "{{consumer_group}} {{topic}}"),
        ),
    ),
)  # fmt: skip

_NAMES = Row(
    "Name servers",
    (
        lines(
            "Registered brokers", "short",
            "Processes that each name server knows, by broker: a master, and its slaves. The lines of all name servers "
            "should lie on each other; a broker that none knows is not found by classic clients.",
            ("sum by (node, broker) (tandem_names_broker)", "{{node}} {{broker}}"),
        ),
        lines(
            "Topics of routes", "short",
            "Topics that a registered broker has, by name server.",
            ("tandem_names_topics", "{{node}}"),
        ),
        lines(
            "Forgotten brokers", "short",
            "Brokers that went without unregistering, in ten minutes: silent ones, and those whose connection closed. "
            "0 unless a broker was killed or cut off.",
            ("increase(tandem_names_forgotten_brokers_total[10m])", "{{node}} {{reason}}"),
        ),
        lines(
            "Asked of name servers", "ops",
            "Requests a second, by code and answer: registrations of brokers, routes that clients ask for.",
            ('sum by (request_code, response_code) (rate(rocketmq_rpc_latency_milliseconds_count{node_type="names"}'
             "[$__rate_interval]))", "{{request_code}} {{response_code}}"),
        ),
        lines(
            "Connections to name servers", "short",
            "Connections of brokers, clients and tools.",
            ("tandem_names_connections", "{{node}}"),
        ),
        lines(
            "Refused by name servers", "short",
            "Connections and requests that were refused in ten minutes, by reason. `idle` is no trouble.",
            ("increase(tandem_names_refused_total[10m])", "{{node}} {{reason}}"),
        ),
    ),
)  # fmt: skip

_ADMIN = Row(
    "Where this comes from",
    (
        lines(
            "Services that admin reaches", "short",
            "1 while the admin service gets answers from a service of a node. 0: its part of the lag is missing.",
            ('tandem_admin_node_up{node=~"$node"}', "{{node}} {{service}}"),
        ),
        lines(
            "Problems", "short",
            "What is wrong with each node, as `tandem cluster show` says it in words. 0 is good.",
            ('tandem_admin_node_problems{node=~"$node"}', "{{node}}"),
        ),
        lines(
            "Time to collect", "s",
            "How long admin takes to ask all nodes for lag and state, and how old its answer is. The time should be "
            "far below adminCollectInterval, the age not much above it.",
            ("tandem_admin_collect_seconds", "takes"),
            ("time() - tandem_admin_collect_timestamp_seconds", "age"),
        ),
        lines(
            "Rounds without lag", "short",
            "Rounds in ten minutes in which the lag, or a broker's part of it, could not be collected; and pairs of "
            "group and topic that are not told, since there are too many: those that lag least.",
            ("increase(tandem_admin_collect_failures_total[10m])", "failed"),
            ("tandem_admin_lags_left_out", "left out"),
        ),
        lines(
            "Actions of people", "short",
            "Calls to admin in ten minutes that changed something, or were turned away, by outcome. `tandem cluster "
            "actions` says who did what.",
            ("sum by (method, outcome) (increase(tandem_admin_actions_total[10m]))", "{{method}} {{outcome}}"),
        ),
        lines(
            "Jobs", "short",
            "Audits and rebuilds that admin remembers, by state.",
            ("tandem_admin_jobs", "{{state}}"),
        ),
    ),
)  # fmt: skip

CLIENTS = Dashboard(
    "clients",
    "Clients",
    "What producers and consumers do, by topic and by group, and how far consumers are behind.",
    (_NOW, _PRODUCERS, TRANSACTIONS, DELAYS, _CONSUMERS, _DELIVERY, _LAG, _GATEWAYS, _NAMES, _ADMIN),
    (CLUSTER, NODE, _TOPIC, _GROUP),
)
