"""Overview: is everything there, does it take messages, what is it doing. The page to begin with."""

from boards.model import SENDS, Dashboard, Panel, Query, Row, lines, stat

_UP = ((0, "down", "red"), (1, "up", "green"))

_NOW = Row(
    "Is it well?",
    (
        stat(
            "Services down", "short",
            "Services that Prometheus cannot scrape. Anything above 0 is a process that is gone, hangs, or cannot be "
            "reached.",
            "sum(1 - up{#})", steps=(("red", 1),),
        ),
        stat(
            "Alerts", "short",
            "Alerts of TandemMQ that are firing. Each has an entry in docs/runbook.md: what it means and what to do.",
            'count(ALERTS{alertname=~"Tandem.*",alertstate="firing"}) or vector(0)', steps=(("red", 1),),
        ),
        stat(
            "Masters that take no messages", "short",
            "Masters whose store refuses sends: the disk is full or failed, or a newer master has replaced it. Must "
            "be 0.",
            'sum((1 - tandem_store_writable{@}) and on (instance) tandem_store_role{role=~".*_MASTER"})',
            steps=(("red", 1),),
        ),
        stat(
            "Slaves in sync", "short",
            "The fewest slaves in sync that any master has. 0: a message that is acknowledged now is on one machine.",
            'min(tandem_in_sync_replicas{@} and on (instance) tandem_store_role{role=~".*_MASTER"})',
            base="orange", steps=(("green", 1),),
        ),
        stat(
            "Fullest disk", "percentunit",
            "Used share of the fullest store's disk. By default old files go from 75 % on, even unexpired ones from "
            "85 % on, and at 90 % no messages are taken any more.",
            "max(tandem_disk_used_ratio{@})", at_most=1, steps=(("orange", 0.85), ("red", 0.9)),
        ),
        stat(
            "Damaged ranges", "short",
            "Ranges of commit logs whose checksums are wrong, and that are read around. Must be 0; what was in them "
            "may be on the other node.",
            "sum(tandem_damaged_ranges{@})", steps=(("red", 1),),
        ),
    ),
)  # fmt: skip

_TRAFFIC = Row(
    "Messages",
    (
        lines(
            "Messages stored", "ops",
            "Messages that producers stored, a second. Retry and dead-letter topics are left out, as RocketMQ does. "
            "A fall to 0 with producers at work is bad.",
            "sum by (node) (rate(rocketmq_messages_in_total{@}[$__rate_interval]))",
        ),
        lines(
            "Messages given to consumers", "ops",
            "Messages handed out by pulls, a second. Below what is stored for long: consumers fall behind.",
            "sum by (node) (rate(rocketmq_messages_out_total{@}[$__rate_interval]))",
        ),
        lines(
            "Bytes in and out", "Bps",
            "Bytes of records stored and handed out, a second.",
            ("sum by (node) (rate(rocketmq_throughput_in_total{@}[$__rate_interval]))", "{{node}} in"),
            ("sum by (node) (rate(rocketmq_throughput_out_total{@}[$__rate_interval]))", "{{node}} out"),
        ),
        lines(
            "Time of a send", "ms",
            "How long sends take in the store, with the wait for disk and slaves where the settings ask for it. 99 of "
            "100 are quicker than p99. Above 200 ms producers feel it.",
            ('histogram_quantile(0.99, sum by (le, node) (rate(rocketmq_rpc_latency_milliseconds_bucket{@,'
             f'{SENDS}}}[$__rate_interval])))', "{{node}} p99"),
            ('histogram_quantile(0.5, sum by (le, node) (rate(rocketmq_rpc_latency_milliseconds_bucket{@,'
             f'{SENDS}}}[$__rate_interval])))', "{{node}} p50"),
            steps=(("red", 200),),
        ),
        lines(
            "Calls that failed", "ops",
            "Calls that ended with an error, a second, by RocketMQ's name of it. Single ones are clients' mistakes; a "
            "steady stream says that something is wrong, here or there.",
            ('sum by (node, response_code) (rate(rocketmq_rpc_latency_milliseconds_count{@,response_code!="success"}'
             "[$__rate_interval]))", "{{node}} {{response_code}}"),
        ),
        lines(
            "Largest lag", "short",
            "The ten consumer groups with the most messages that they have not consumed. A line that only rises is a "
            "group that cannot keep up, or that nobody runs any more.",
            ("topk(10, sum by (consumer_group) (rocketmq_consumer_lag_messages{%}))", "{{consumer_group}}"),
        ),
    ),
)  # fmt: skip

_COPIES = Row(
    "Copies",
    (
        lines(
            "Lag of slaves, bytes", "bytes",
            "Bytes of the master's log that a slave does not have. Some KiB under load is normal; a rising line means "
            "that the slave, its disk or the network is too slow.",
            ("tandem_replica_lag_bytes{@}", "slave {{replica}} of {{node}}"),
        ),
        lines(
            "Lag of slaves, time", "s",
            "Age of the oldest byte that a slave does not have: what would be lost with the master's machine, "
            "acknowledged or not.",
            ("tandem_replica_lag_seconds{@}", "slave {{replica}} of {{node}}"),
        ),
        lines(
            "Metadata copied", "s",
            "On slaves: time since topics, groups and offsets were last equal to the master's. It rises to 10 s and "
            "falls back (metasyncInterval); above a minute it is stuck. Below 0: never yet.",
            ("max by (node) (tandem_metadata_sync_age_seconds{@} and on (instance) tandem_metadata_master == 0)",
             "{{node}}"), at_least=None,
        ),
    ),
)  # fmt: skip

_PROCESSES = Row(
    "Processes",
    (
        Panel(
            "Up", "short",
            "Each service of each node: green while Prometheus reaches it. Short gaps are restarts.",
            (Query("up{#}", "{{node}} {{service}}"),), kind="state-timeline", width=12, words=_UP,
        ),
        stat(
            "Role", "short",
            "What each store is. Exactly one master a broker; two for long would mean that both take messages.",
            "tandem_store_role{@} == 1", "{{node}} {{role}}", names=True, width=6, height=7, base="blue",
        ),
        stat(
            "Version", "short",
            "Versions of TandemMQ that run. More than one is normal during an upgrade only.",
            "count by (version) (tandem_build_info{@})", "{{version}}", width=6, height=7, base="blue",
        ),
        lines(
            "Memory", "bytes",
            "Resident memory of each process. Mapped log files count in a store's, and the kernel takes them back when "
            "it needs to; a line that rises for days is a leak.",
            ("process_resident_memory_bytes{#}", "{{node}} {{service}}"),
        ),
        lines(
            "Processor", "percentunit",
            "Processor time of each process: 100 % is one core. A store at 100 % for long is at its limit: its event "
            "loop runs on one core.",
            ("rate(process_cpu_seconds_total{#}[$__rate_interval])", "{{node}} {{service}}"),
        ),
        lines(
            "Running for", "s",
            "Time since each process started. A fall to 0 is a restart.",
            ("time() - process_start_time_seconds{#}", "{{node}} {{service}}"),
        ),
        lines(
            "Calls refused", "ops",
            "Calls that the access list has refused, by reason. `too_many_attempts` is somebody who guesses, or a "
            "client with an old secret.",
            ("sum by (service, reason) (rate(tandem_access_refused_total{@}[$__rate_interval]))",
             "{{service}} {{reason}}"),
        ),
        stat(
            "Access list", "short",
            "1 while the services use their accessFile as it is, or have none. 0: the file cannot be used, and an "
            "older state of it is in force.",
            "min by (service) (tandem_access_file_good{@})", "{{service}}", width=8, height=8, base="blue",
        ),
        Panel(
            "Peers", "short",
            "Whether each service is in touch with the processes that it keeps in touch with: its store, its metadata "
            "service, name servers, brokers. Why one is away is in the service's log: `peer is away`.",
            (Query("tandem_peer_there{@}", "{{node}} {{service}}: {{peer}} {{name}}"),), kind="state-timeline",
            words=((0, "away", "red"), (1, "there", "green")),
        ),
        lines(
            "Held for callers", "percentunit",
            "Share of a port's memory budget (grpcMemoryBudget) that is in use: answers that callers have not taken, "
            "requests that are not complete. Above one half those who hold most are told or closed.",
            ("max by (service, port) (tandem_grpc_held_bytes{@} / tandem_grpc_budget_bytes{@})",
             "{{service}} {{port}}"),
        ),
        lines(
            "Callers held back", "ops",
            "Calls refused for want of memory, calls and connections ended as callers did not go on reading or "
            "sending, connections ended for floods.",
            ("sum by (service, port, reason) (rate(tandem_grpc_ended_total{@}[$__rate_interval]))",
             "{{service}} {{port}} {{reason}}"),
        ),
    ),
)  # fmt: skip

OVERVIEW = Dashboard(
    "overview",
    "Overview",
    "Whether all services are there, take messages and keep copies; what they do. Begin here.",
    (_NOW, _TRAFFIC, _COPIES, _PROCESSES),
)
