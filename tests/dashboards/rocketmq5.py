"""Metric names that dashboards for RocketMQ 5 ask for, as its broker exposes them, and what TandemMQ does about each.

The list is that of RocketMQ 5's own instruments (broker, store, remoting, pop, timer, tiered store, clients), with the
units that its Prometheus exporter appends. Histograms are named without `_bucket`, `_sum`, `_count`.
"""

SERVED: dict[str, tuple[str, str]] = {
    "rocketmq_broker_permission": ("store", ""),
    "rocketmq_topic_number": ("store", ""),
    "rocketmq_messages_in_total": ("store", "`message_type` is always `normal`"),
    "rocketmq_throughput_in_total": ("store", "`message_type` is always `normal`"),
    "rocketmq_message_size": ("store", "histogram"),
    "rocketmq_messages_out_total": ("store", ""),
    "rocketmq_throughput_out_total": ("store", ""),
    "rocketmq_rpc_latency_milliseconds": (
        "store",
        "histogram; `protocol_type` is `grpc`, `request_code` the method in lower case (`send`, `pull`, …); "
        "name servers' are without `cluster`",
    ),
    "rocketmq_storage_size_bytes": ("store", "used space of the whole disk, as in RocketMQ"),
    "rocketmq_storage_flush_behind_bytes": ("store", ""),
    "rocketmq_storage_dispatch_behind_bytes": ("store", ""),
    "rocketmq_storage_message_reserve_time_milliseconds": ("store", ""),
    "rocketmq_commit_messages_total": ("store", ""),
    "rocketmq_rollback_messages_total": ("store", ""),
    "rocketmq_finish_message_latency_milliseconds": ("store", "histogram; from the half message, or its last check"),
    "rocketmq_half_messages": ("store", ""),
    "rocketmq_consumer_inflight_messages": ("store", ""),
    "rocketmq_consumer_ready_messages": ("store", ""),
    "rocketmq_consumer_queueing_latency_milliseconds": ("store", ""),
    "rocketmq_consumer_connections": (
        "store",
        "`protocol_type` is `native`, `rocketmq5` or `remoting`; `consume_mode` is `pop`, of remoting clients `push`",
    ),
    "rocketmq_producer_connections": ("store", "`protocol_type` likewise"),
    "rocketmq_timing_messages": ("store", "without `topic`: the index of timers does not know it"),
    "rocketmq_timer_enqueue_lag": ("store", ""),
    "rocketmq_timer_enqueue_total": ("store", "a message that is stored again to outlive its file counts once"),
    "rocketmq_timer_dequeue_total": ("store", "what was delivered"),
    "rocketmq_timer_dequeue_lag": ("store", ""),
    "rocketmq_timer_dequeue_latency_milliseconds": ("store", "delay levels too, if these are later"),
    "rocketmq_send_to_dlq_messages_total": ("store", ""),
    "rocketmq_consumer_group_number": ("admin", ""),
    "rocketmq_consumer_lag_messages": ("admin", ""),
    "rocketmq_consumer_lag_latency_milliseconds": ("admin", ""),
}
"""Name -> which service serves it, and a remark."""

_NO_POP = "there is no pop consumption as RocketMQ has it: what groups hold is in the metrics above"
_NO_TIMER = "`tandem_delayed_messages_total` counts what became of delayed messages, of all topics together"
_OF_CLIENTS = "RocketMQ's client libraries expose it, not the broker"

ABSENT: dict[str, str] = {
    "rocketmq_processor_watermark": "there are no thread pools with queues: one event loop does it all",
    "rocketmq_pop_*": _NO_POP,
    "rocketmq_topic_create_execution_time_milliseconds": "metasync creates topics; it counts no times",
    "rocketmq_consumer_group_create_execution_time_milliseconds": "metasync creates groups; it counts no times",
    "rocketmq_timer_enqueue_latency_milliseconds": "`rocketmq_timer_enqueue_lag` counts the messages instead",
    "rocketmq_timer_message_snapshot": "the index of timers is not counted by time",
    "rocketmq_delay_message_latency_milliseconds": _NO_TIMER,
    "rocketmq_rocksdb_*": "queues and offsets are not kept in RocksDB",
    "rocketmq_tiered_store_*": "there is no tiered store",
    "rocketmq_proxy_up": "clients talk to the store, or to a gateway, which has metrics of its own",
    "rocketmq_send_cost_time_milliseconds": _OF_CLIENTS,
    "rocketmq_process_time_milliseconds": _OF_CLIENTS,
    "rocketmq_await_time_milliseconds": _OF_CLIENTS,
    "rocketmq_consumer_cached_messages": _OF_CLIENTS,
    "rocketmq_consumer_cached_bytes": _OF_CLIENTS,
}
"""Name, or the beginning of names -> why there is no such thing here."""

LABELS: dict[str, set[str]] = {
    "rocketmq_messages_in_total": {"topic", "message_type", "is_system"},
    "rocketmq_throughput_in_total": {"topic", "message_type", "is_system"},
    "rocketmq_messages_out_total": {"topic", "consumer_group", "is_system"},
    "rocketmq_throughput_out_total": {"topic", "consumer_group", "is_system"},
    "rocketmq_storage_size_bytes": {"storage_type", "storage_medium"},
    "rocketmq_storage_flush_behind_bytes": {"storage_type", "storage_medium"},
    "rocketmq_storage_dispatch_behind_bytes": {"storage_type", "storage_medium"},
    "rocketmq_storage_message_reserve_time_milliseconds": {"storage_type", "storage_medium"},
    "rocketmq_timer_enqueue_total": {"topic"},
    "rocketmq_timer_dequeue_total": {"topic"},
    "rocketmq_commit_messages_total": {"topic"},
    "rocketmq_rollback_messages_total": {"topic"},
    "rocketmq_finish_message_latency_milliseconds": {"topic"},
    "rocketmq_half_messages": {"topic"},
    "rocketmq_consumer_inflight_messages": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_connections": {
        "consumer_group",
        "language",
        "version",
        "consume_mode",
        "protocol_type",
        "is_system",
    },
    "rocketmq_producer_connections": {"language", "version", "protocol_type"},
    "rocketmq_consumer_queueing_latency_milliseconds": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_send_to_dlq_messages_total": {"consumer_group", "topic", "is_system"},
    "rocketmq_consumer_lag_messages": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_lag_latency_milliseconds": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_ready_messages": {"consumer_group", "topic", "is_retry", "is_system"},
}
"""Labels of its own that RocketMQ 5 gives a metric."""

COMMON_LABELS = {"cluster", "node_type", "node_id"}
HISTOGRAMS = {
    "rocketmq_message_size",
    "rocketmq_rpc_latency_milliseconds",
    "rocketmq_finish_message_latency_milliseconds",
}
