"""Store: log, disk, latencies, calls, recovery of each store."""

from boards.model import Dashboard, Row, lines, stat

_STATE = Row(
    "State",
    (
        stat(
            "Takes messages", "short",
            "Whether each master takes messages. No: its disk is full or failed, or a newer master has replaced it; "
            "its health and its log say which. Slaves never do and are not shown.",
            'tandem_store_writable{@} and on (instance) tandem_store_role{role=~".*_MASTER"}', "{{node}}", width=6,
            words=((0, "no", "red"), (1, "yes", "green")),
        ),
        stat(
            "Disk used", "percentunit",
            "Used share of the disk that the store is on. From 75 % on expired files go at any hour, from 85 % on "
            "unexpired ones too, at the limit no messages are taken (diskMaxUsedSpaceRatio, "
            "diskSpaceCleanForciblyRatio, diskSpaceWarningLevelRatio).",
            "tandem_disk_used_ratio{@}", "{{node}}", width=6, at_most=1, steps=(("orange", 0.85), ("red", 0.9)),
        ),
        stat(
            "Recovery", "percentunit",
            "How far recovery at the start, or a rebuild of queues or index, has come. 100 %: done. A store recovers "
            "its log before it serves; queues and index are rebuilt while it serves.",
            "tandem_recovery_progress_ratio{@}", "{{node}} {{phase}}", width=6, at_most=1, base="orange",
            steps=(("green", 1),),
        ),
        stat(
            "Damaged bytes", "bytes",
            "Bytes of the log whose checksums are wrong. Must be 0. `tandem data inspect` says where they are.",
            "tandem_damaged_bytes{@}", "{{node}}", width=6, steps=(("red", 1),),
        ),
    ),
)  # fmt: skip

_LOG = Row(
    "Log and disk",
    (
        lines(
            "Log written", "Bps",
            "Bytes by which each log grows, a second: by sends on a master, by what the master sent on a slave. The "
            "lines of a pair should lie on each other.",
            "rate(tandem_log_end_offset{@}[$__rate_interval])",
        ),
        lines(
            "Length of the log", "bytes",
            "From the oldest byte kept to the end. Flat under load when retention removes as much as comes.",
            "tandem_log_bytes{@}",
        ),
        lines(
            "Start and end of the log", "bytes",
            "Physical offsets of the oldest byte and of the end. The ends of a pair should be equal.",
            ("tandem_log_end_offset{@}", "{{node}} end"),
            ("tandem_log_begin_offset{@}", "{{node}} begin"),
        ),
        lines(
            "Not on disk yet", "bytes",
            "Log bytes that were not yet made durable. Up to some MiB between two flushes with ASYNC_FLUSH; a line "
            "that rises means that the disk is too slow, or failing.",
            "rocketmq_storage_flush_behind_bytes{@}",
            steps=(("red", 64 << 20),),
        ),
        lines(
            "Not in queues yet", "bytes",
            "Log bytes whose messages consumers cannot see yet. Near 0; with SYNC_FLUSH at most what waits for the "
            "disk.",
            "rocketmq_storage_dispatch_behind_bytes{@}",
            steps=(("red", 64 << 20),),
        ),
        lines(
            "Age of the oldest message", "ms",
            "How long messages are kept at present. At most fileReservedTime and a file's worth; falling under it "
            "means that the disk is too small for that.",
            "rocketmq_storage_message_reserve_time_milliseconds{@}",
        ),
        lines(
            "Disk used", "percentunit",
            "Used share of the disk, and the share from which on no messages are taken.",
            "tandem_disk_used_ratio{@}",
            ("tandem_disk_limit_ratio{@}", "{{node}} limit"),
            at_most=1,
        ),
        lines(
            "Room left", "bytes",
            "What the store can still write on its disk.",
            "tandem_disk_free_bytes{@}",
        ),
        lines(
            "Used on the disk", "bytes",
            "Used space of the whole disk, by whomever: RocketMQ's rocketmq_storage_size.",
            "rocketmq_storage_size_bytes{@}",
        ),
    ),
)  # fmt: skip

_STEPS = Row(
    "Time of each step",
    (
        lines(
            "Append", "s",
            "Time to copy a record or batch into the mapped log, 99 of 100. Tens of microseconds; more means that "
            "pages must be fetched or written back first: memory is short.",
            "histogram_quantile(0.99, sum by (le, node) (rate(tandem_append_duration_seconds_bucket{@}"
            "[$__rate_interval])))",
        ),
        lines(
            "Flush", "s",
            "Time of one group commit on disk. It is what a SYNC_FLUSH send waits for: single milliseconds on an SSD. "
            "Above half a second the disk is ill or overloaded.",
            ("histogram_quantile(0.99, sum by (le, node) (rate(tandem_flush_duration_seconds_bucket{@}"
             "[$__rate_interval])))", "{{node}} p99"),
            ("histogram_quantile(0.5, sum by (le, node) (rate(tandem_flush_duration_seconds_bucket{@}"
             "[$__rate_interval])))", "{{node}} p50"),
        ),
        lines(
            "Dispatch", "s",
            "Time to write queue units and index entries of one group of records, 99 of 100.",
            "histogram_quantile(0.99, sum by (le, node) (rate(tandem_dispatch_duration_seconds_bucket{@}"
            "[$__rate_interval])))",
        ),
        lines(
            "Made durable", "Bps",
            "Log bytes that were synced to disk, a second.",
            "rate(tandem_flushed_bytes_total{@}[$__rate_interval])",
        ),
        lines(
            "Dispatched", "ops",
            "Messages that got their queue units, a second.",
            "rate(tandem_dispatched_messages_total{@}[$__rate_interval])",
        ),
        lines(
            "Hooks", "s",
            "Time of each call of a hook, on average. Nothing else goes on meanwhile: above a millisecond a hook holds "
            "up every client.",
            ("rate(tandem_hook_duration_seconds_sum{@}[$__rate_interval]) / "
             "rate(tandem_hook_duration_seconds_count{@}[$__rate_interval])", "{{node}} {{hook}} {{point}}"),
            steps=(("red", 0.001),),
        ),
        lines(
            "Hooks that raise", "ops",
            "Calls in which a hook raised, a second: before_… refused something, after_… is a fault of the hook.",
            ("rate(tandem_hook_failures_total{@}[$__rate_interval])", "{{node}} {{hook}} {{point}}"),
        ),
        lines(
            "Group commits", "ops",
            "Syncs of the log, a second. With SYNC_FLUSH: sends divided by this is how many share one.",
            "rate(tandem_flush_duration_seconds_count{@}[$__rate_interval])",
        ),
    ),
)  # fmt: skip

_INTEGRITY = Row(
    "What does not fit the log",
    (
        lines(
            "Findings", "short",
            "What did not fit the log in the last hour: queue units and places of the index, which are made anew from "
            "it, and messages that a queue numbers and the log does not have. Must be 0.",
            ("increase(tandem_findings_total{@}[1h])", "{{node}} {{kind}}"), width=6,
        ),
        lines(
            "Scrub", "percentunit",
            "How much of the log the present scrub has read with checksums, and compared with queues and index. It "
            "rises to 100 % and begins anew a day later; one that stands still for an hour is stuck.",
            "tandem_scrub_progress_ratio{@}", at_most=1, width=6,
        ),
        lines(
            "Scrubs", "short",
            "Scrubs of the whole log that came to their end in the last week. 0 for long: the log is too large for "
            "scrubBytesPerSecond, or the store is started too often.",
            ("increase(tandem_scrubs_total{@}[7d])", "{{node}}"), width=6,
        ),
        lines(
            "Unusable files", "short",
            "Files beside the log whose checksum does not fit, or that say what cannot be true: the store does without "
            "them. Nothing here is right.",
            ("tandem_unusable_files{@}", "{{node}} {{file}}"), width=6,
        ),
        stat(
            "Faults of the last audit", "short",
            "What the last `tandem data audit` of each store found that readers run into. Must be 0; nothing here: "
            "nobody has audited it.",
            'sum by (node) (tandem_audit_findings{@,fault="true"}) or sum by (node) (0 * '
            "tandem_audit_timestamp_seconds{@})",
            "{{node}}", width=6, height=8, steps=(("red", 1),),
        ),
        stat(
            "Time since the last audit", "s",
            "When somebody last compared all of a store with its log. Audits are run by hand, or as jobs of admin's.",
            "time() - tandem_audit_timestamp_seconds{@}", "{{node}}", width=6, height=8, base="blue",
        ),
        lines(
            "What the last audit found", "short",
            "By kind, faults and notes; docs/spark.md says what each kind means.",
            ("tandem_audit_findings{@}", "{{node}} {{kind}}"), width=6,
        ),
        lines(
            "Bytes that cannot be read", "bytes",
            "Bytes of the log whose checksums are wrong (damaged), and those of files that are not there (missing). "
            "Must be 0.",
            ("tandem_damaged_bytes{@}", "{{node}} damaged"),
            ("tandem_missing_log_bytes{@}", "{{node}} missing"), width=6,
        ),
    ),
)  # fmt: skip

_CALLS = Row(
    "Calls",
    (
        lines(
            "Calls", "ops",
            "Calls that ended, a second, by method. Streams (SendStream, PullStream) are not counted as calls; their "
            "messages are.",
            ("sum by (node, request_code) (rate(rocketmq_rpc_latency_milliseconds_count{@}[$__rate_interval]))",
             "{{node}} {{request_code}}"),
        ),
        lines(
            "Time of a call", "ms",
            "99 of 100 calls are quicker, by method. Pulls that wait for messages are left out.",
            ('histogram_quantile(0.99, sum by (le, node, request_code) (rate(rocketmq_rpc_latency_milliseconds_bucket'
             '{@,is_long_polling="false"}[$__rate_interval])))', "{{node}} {{request_code}}"),
        ),
        lines(
            "Calls that failed", "ops",
            "Calls that ended with an error, a second, by method and RocketMQ's name of the error.",
            ('sum by (node, request_code, response_code) (rate(rocketmq_rpc_latency_milliseconds_count{@,'
             'response_code!="success"}[$__rate_interval]))', "{{node}} {{request_code}} {{response_code}}"),
        ),
        lines(
            "Sends that wait for slaves", "short",
            "Sends that are stored here and not yet on enough slaves (SYNC_MASTER). A few dozen under load; hundreds "
            "mean that slaves or network are too slow.",
            "tandem_sends_waiting_for_replicas{@}",
        ),
        lines(
            "Pulls that wait", "short",
            "Long polls: consumers that have read everything and wait. As many as there are idle consumers.",
            "tandem_long_polls_waiting{@}",
        ),
        lines(
            "Event loop", "s",
            "How late the event loop calls: what each send waits for before anything else. Its 99th percentile stays "
            "below some milliseconds.",
            ("histogram_quantile(0.99, sum by (le, node) (rate(tandem_loop_lag_seconds_bucket{@}[$__rate_interval])))",
             "{{node}} p99"),
        ),
        lines(
            "Compiled sends", "ops",
            "Sends that the compiled core has taken, a second; all others are Python's, as all are where it is not "
            "used (tandem_compiled_core is 0). By the lane: those of gRPC whose frames it has read, too.",
            ("sum by (node, call) (rate(tandem_compiled_calls_total{@}[$__rate_interval]))", "{{node}} {{call}}"),
            ("sum by (node) (rate(tandem_lane_calls_total{@}[$__rate_interval]))", "{{node}} by the lane"),
            ("tandem_compiled_core{@}", "{{node}} in use"),
        ),
        lines(
            "Messages sent again", "short",
            "Copies that were recognized and not stored (deduplicationWindow).",
            "rate(tandem_duplicate_messages_total{@}[$__rate_interval])",
        ),
        lines(
            "Size of messages", "bytes",
            "Mean size of a stored record, and the size below which 99 of 100 are.",
            ("sum by (node) (rate(rocketmq_message_size_sum{@}[$__rate_interval])) / "
             "sum by (node) (rate(rocketmq_message_size_count{@}[$__rate_interval]))", "{{node}} mean"),
            ("histogram_quantile(0.99, sum by (le, node) (rate(rocketmq_message_size_bucket{@}[$__rate_interval])))",
             "{{node}} p99"),
        ),
    ),
)  # fmt: skip

_INSIDE = Row(
    "Inside",
    (
        lines(
            "Background failures", "short",
            "Failures of flush, dispatch, checkpoint, rebuild and retention in the last ten minutes. Must be 0; a "
            "failed flush makes the store read-only.",
            ("increase(tandem_background_failures_total{@}[10m])", "{{node}} {{task}}"),
        ),
        lines(
            "Recovery", "bytes",
            "Log bytes that recovery, or a rebuild of queues or index, has read, and that it has to read. A line that "
            "stands still below the other is stuck.",
            ("tandem_recovery_done_bytes{@}", "{{node}} {{phase}} read"),
            ("tandem_recovery_size_bytes{@}", "{{node}} {{phase}} to read"),
        ),
        lines(
            "Topics, permission", "short",
            "Topics that the store knows; and RocketMQ's permission of the broker: 6 reads and writes, 4 reads only.",
            ("rocketmq_topic_number{@}", "{{node}} topics"),
            ("rocketmq_broker_permission{@}", "{{node}} permission"),
        ),
        lines(
            "Open files", "short",
            "Files and connections that stores have open, and how many they may. Each log, queue and index file "
            "counts.",
            ('process_open_fds{#,service="store"}', "{{node}}"),
            ('process_max_fds{#,service="store"}', "{{node}} limit"),
        ),
        lines(
            "Memory", "bytes",
            "Resident memory of stores: mapped log files count, and the kernel takes them back when it needs to.",
            ('process_resident_memory_bytes{#,service="store"}', "{{node}}"),
        ),
        lines(
            "Processor", "percentunit",
            "Processor time of stores: 100 % is one core, which is what an event loop can use.",
            ('rate(process_cpu_seconds_total{#,service="store"}[$__rate_interval])', "{{node}}"),
        ),
        lines(
            "Garbage collections", "ops",
            "Runs of Python's garbage collector, a second, by generation. Those of generation 2 pause the store; they "
            "should be rare.",
            ('rate(python_gc_collections_total{#,service="store"}[$__rate_interval])', "{{node}} {{generation}}"),
        ),
    ),
)  # fmt: skip

STORE = Dashboard(
    "store",
    "Store",
    "Log, disk, findings, the time of each step from call to disk, calls, and what goes on inside each store.",
    (_STATE, _LOG, _INTEGRITY, _STEPS, _CALLS, _INSIDE),
)
