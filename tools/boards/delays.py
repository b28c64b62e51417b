"""Delays: messages that wait for their time, and how late they are."""

from boards.model import Row, lines

DELAYS = Row(
    "Delayed messages",
    (
        lines(
            "Messages that wait for their time", "short",
            "Messages with a time of their own, and those of each delay level.",
            ("sum (rocketmq_timing_messages{@})", "own time"),
            ("sum by (level) (tandem_delay_level_messages{@})", "level {{level}}"),
        ),
        lines(
            "How late they are", "ms",
            "How long the next message has been due. Above a few ms for long: the store cannot keep up, or cannot copy "
            "messages to their topics; its log says why.",
            ("max by (node) (rocketmq_timer_dequeue_latency_milliseconds{@})", "{{node}}"),
        ),
        lines(
            "Due, and not indexed", "short",
            "Messages that are due and not delivered, and those that the index of timers does not have yet.",
            ("sum by (node) (rocketmq_timer_dequeue_lag{@})", "due: {{node}}"),
            ("sum by (node) (rocketmq_timer_enqueue_lag{@})", "not indexed: {{node}}"),
        ),
        lines(
            "What became of them", "ops",
            "Delayed messages a second by outcome: delivered, recalled, stored again to outlive their file (rolled), "
            "and what could not be delivered.",
            ("sum by (outcome) (rate(tandem_delayed_messages_total{@}[$__rate_interval]))", "{{outcome}}"),
        ),
        lines(
            "Messages with a time of their own, by topic", "ops",
            "How many a second come in to wait, and how many are delivered.",
            ("sum by (topic) (rate(rocketmq_timer_enqueue_total{@}[$__rate_interval]))", "in: {{topic}}"),
            ("sum by (topic) (rate(rocketmq_timer_dequeue_total{@}[$__rate_interval]))", "delivered: {{topic}}"),
        ),
    ),
)  # fmt: skip
