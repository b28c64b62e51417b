"""Alerts about processes, and about each store by itself."""

from boards.alert_model import Alert
from boards.model import SENDS

_MASTER = 'and on (instance) tandem_store_role{role=~".*_MASTER"}'

STORE_ALERTS = (
    Alert(
        "services", "TandemStoreDown", "critical",
        'up{job=~"tandem.*",service="store"} == 0', "30s",
        "The store of node {{ $labels.node }} is down",
        "Prometheus has not reached {{ $labels.instance }} for 30 seconds. On a master nothing can be sent or pulled; "
        "on a slave there is no copy of what is stored now.",
    ),
    Alert(
        "services", "TandemServiceDown", "warning",
        'up{job=~"tandem.*",service!="store"} == 0', "1m",
        "{{ $labels.service }} of node {{ $labels.node }} is down",
        "Prometheus has not reached {{ $labels.instance }} for a minute. Without its replicator a node does not "
        "replicate, without metasync topics and offsets cannot be changed, without admin nobody sees lag.",
    ),
    Alert(
        "services", "TandemServiceRestarting", "warning",
        'changes(process_start_time_seconds{job=~"tandem.*"}[15m]) > 2', "",
        "{{ $labels.service }} of node {{ $labels.node }} starts again and again",
        "It started {{ $value }} times in 15 minutes. Its log says why it ended.",
    ),
    Alert(
        "services", "TandemFilesRunningOut", "warning",
        'process_open_fds{job=~"tandem.*"} / process_max_fds{job=~"tandem.*"} > 0.8', "5m",
        "{{ $labels.service }} of node {{ $labels.node }} has nearly as many files open as it may",
        "{{ $value | humanizePercentage }} of the allowed number of open files and connections are in use. At 100 % "
        "new connections and new queue files fail.",
    ),
    Alert(
        "services", "TandemVersionsDiffer", "info",
        'count by (cluster) (count by (cluster, version) (tandem_build_info{cluster!=""})) > 1', "1h",
        "Cluster {{ $labels.cluster }} runs {{ $value }} versions",
        "Services of more than one version have been running for an hour: an upgrade that was not finished?",
    ),
    Alert(
        "services", "TandemAccessFileBroken", "warning",
        "tandem_access_file_good == 0", "1m",
        "The accessFile of {{ $labels.service }} of node {{ $labels.node }} cannot be used",
        "The last good state of it is in force: what was changed since, removed users too, does not count.",
    ),
    Alert(
        "services", "TandemSecretsGuessed", "warning",
        'rate(tandem_access_refused_total{reason="too_many_attempts"}[5m]) > 0', "5m",
        "Somebody tries secrets on {{ $labels.service }} of node {{ $labels.node }}",
        "Too many wrong secrets for five minutes: somebody guesses, or a client has an old secret.",
    ),
    Alert(
        "services", "TandemCallersDoNotRead", "warning",
        "tandem_grpc_held_bytes / tandem_grpc_budget_bytes > 0.5", "2m",
        "{{ $labels.service }} of node {{ $labels.node }} holds much that its callers do not take",
        "{{ $value | humanizePercentage }} of the memory budget of its {{ $labels.port }} port are in use for two "
        "minutes. Callers who hold most are refused, told or closed; others are served.",
    ),
    Alert(
        "services", "TandemCallersMisbehave", "warning",
        'rate(tandem_grpc_ended_total{reason="misbehaved"}[5m]) > 0', "5m",
        "Somebody floods {{ $labels.service }} of node {{ $labels.node }}",
        "Connections to its {{ $labels.port }} port are ended for floods of frames or resets, for five minutes.",
    ),
    Alert(
        "store", "TandemStoreNotWritable", "critical",
        f"tandem_store_writable == 0 {_MASTER}", "30s",
        "The master {{ $labels.node }} takes no messages",
        "Its store refuses sends: the disk is full or failed, or a newer master has replaced it. Reads go on.",
    ),
    Alert(
        "store", "TandemFlushBehind", "warning",
        "rocketmq_storage_flush_behind_bytes > 67108864", "1m",
        "The disk of {{ $labels.node }} does not keep up",
        "{{ $value | humanize1024 }}B of the log are not on disk. A power cut would take them, unless a slave has "
        "them.",
    ),
    Alert(
        "store", "TandemDispatchBehind", "warning",
        "rocketmq_storage_dispatch_behind_bytes > 67108864", "1m",
        "Consumers of {{ $labels.node }} do not see new messages",
        "{{ $value | humanize1024 }}B of the log have no queue units yet. The messages are stored, and cannot be "
        "pulled.",
    ),
    Alert(
        "store", "TandemDiskFilling", "warning",
        "tandem_disk_used_ratio > tandem_disk_limit_ratio - 0.05", "5m",
        "The disk of {{ $labels.node }} is {{ $value | humanizePercentage }} full",
        "Less than five percent are left before no messages are taken. Old files are removed before they expire.",
    ),
    Alert(
        "store", "TandemDiskFullSoon", "warning",
        "tandem_disk_used_ratio + 4 * delta(tandem_disk_used_ratio[1h]) > tandem_disk_limit_ratio\n"
        "and tandem_disk_used_ratio > 0.6", "15m",
        "The disk of {{ $labels.node }} will be full within four hours",
        "If it goes on filling as in the last hour, no messages will be taken in four hours or less.",
    ),
    Alert(
        "store", "TandemDamagedRanges", "warning",
        "tandem_damaged_ranges > 0", "",
        "The log of {{ $labels.node }} is damaged in {{ $value }} places",
        "Bytes of the commit log do not fit their checksums and are read around. The disk, or somebody, changed them.",
    ),
    Alert(
        "store", "TandemDerivedFilesWrong", "warning",
        'increase(tandem_findings_total{kind!="message"}[1h]) > 0', "",
        "Queues or index of {{ $labels.node }} did not fit the log ({{ $labels.kind }})",
        "Consume queue units, or places of the index, were wrong and are made anew from the log. No message is lost, "
        "but the disk, or somebody, changes bytes.",
    ),
    Alert(
        "store", "TandemMessagesMissing", "critical",
        'increase(tandem_findings_total{kind="message"}[1h]) > 0', "",
        "The log of {{ $labels.node }} lacks messages that its queues number",
        "Consumers go on after them. The store's log names queues and offsets.",
    ),
    Alert(
        "store", "TandemAuditFindings", "warning",
        'tandem_audit_findings{fault="true"} > 0', "",
        "The last audit of {{ $labels.node }} found faults ({{ $labels.kind }})",
        "tandem data audit compared log, queues and index, and found {{ $value }} faults of this kind. It stays so "
        "until an audit finds none.",
    ),
    Alert(
        "store", "TandemUnusableFiles", "warning",
        "tandem_unusable_files > 0", "",
        "{{ $labels.file }} of {{ $labels.node }} could not be used",
        "A file beside the log does not fit its checksum, or says what cannot be true. The store has started without "
        "it. The disk, or somebody, changed it.",
    ),
    Alert(
        "store", "TandemLogFilesMissing", "critical",
        "tandem_missing_log_bytes > 0", "",
        "Log files of {{ $labels.node }} are gone",
        "{{ $value | humanize1024 }}B of the commit log have no files: every message in there is lost on this node "
        "until they are put back.",
    ),
    Alert(
        "store", "TandemBackgroundFailures", "critical",
        "increase(tandem_background_failures_total[10m]) > 0", "",
        "{{ $labels.task }} failed in the store of {{ $labels.node }}",
        "A background task of the store failed in the last ten minutes. After a failed flush the store is read-only.",
    ),
    Alert(
        "store", "TandemRecoveryStuck", "critical",
        "tandem_recovery_progress_ratio < 1 and changes(tandem_recovery_done_bytes[5m]) == 0", "1m",
        "Recovery ({{ $labels.phase }}) of {{ $labels.node }} does not go on",
        "It stands at {{ $value | humanizePercentage }} and has read nothing for five minutes.",
    ),
    Alert(
        "store", "TandemFlushSlow", "warning",
        "histogram_quantile(0.99, sum by (le, cluster, node) (rate(tandem_flush_duration_seconds_bucket[5m]))) > 0.5",
        "5m",
        "The disk of {{ $labels.node }} is slow",
        "One of a hundred group commits takes {{ $value | humanizeDuration }} or more. With SYNC_FLUSH every send "
        "waits for one.",
    ),
    Alert(
        "store", "TandemSendLatencyHigh", "warning",
        "histogram_quantile(0.99, sum by (le, cluster, node) (\n"
        f"  rate(rocketmq_rpc_latency_milliseconds_bucket{{{SENDS}}}[5m]))) > 200", "5m",
        "Sends to {{ $labels.node }} are slow",
        "One of a hundred sends takes {{ $value | humanize }} ms or more.",
    ),
    Alert(
        "store", "TandemSendsFail", "warning",
        "sum by (cluster, node) (rate(\n"
        f'  rocketmq_rpc_latency_milliseconds_count{{{SENDS},response_code!="success"}}[5m]))\n'
        "/ sum by (cluster, node) (rate(\n"
        f"  rocketmq_rpc_latency_milliseconds_count{{{SENDS}}}[5m])) > 0.01", "2m",
        "{{ $value | humanizePercentage }} of the sends to {{ $labels.node }} fail",
        "More than one of a hundred sends was refused, or told that it is less safe than it is to be, in the last five "
        "minutes.",
        panel="Calls that failed",
    ),
)  # fmt: skip
