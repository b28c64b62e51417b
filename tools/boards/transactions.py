"""Transactions: half messages that wait, and how they end."""

from boards.model import Row, lines

TRANSACTIONS = Row(
    "Transactions",
    (
        lines(
            "Half messages", "short",
            "Half messages whose transactions have not ended, by topic. Rising for long: producers do not end them, "
            "and nobody answers when the broker asks.",
            ('sum by (topic) (rocketmq_half_messages{@,topic=~"$topic"})', "{{topic}}"),
        ),
        lines(
            "Oldest half message", "s",
            "Age of the oldest half message of each topic, since its producer made it.",
            ('max by (topic) (tandem_half_message_age_seconds{@,topic=~"$topic"})', "{{topic}}"),
        ),
        lines(
            "Ends of transactions", "ops",
            "Transactions that were committed and rolled back, a second.",
            ("sum (rate(rocketmq_commit_messages_total{@}[$__rate_interval]))", "committed"),
            ("sum (rate(rocketmq_rollback_messages_total{@}[$__rate_interval]))", "rolled back"),
        ),
        lines(
            "Time to the end", "ms",
            "From a half message, or the last check of it, to the end of its transaction: 9 of 10 are quicker.",
            ("histogram_quantile(0.9, sum by (le) (rate(rocketmq_finish_message_latency_milliseconds_bucket{@}"
             "[$__rate_interval])))", "p90"),
        ),
    ),
)  # fmt: skip
