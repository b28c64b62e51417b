"""Alerts about pairs of nodes: replication and the copying of metadata."""

from boards.alert_model import Alert

_OF_A_SLAVE = "and on (instance) tandem_metadata_master == 0"

PAIR_ALERTS = (
    Alert(
        "replication", "TandemTwoMasters", "critical",
        "count by (cluster, node_id) (\n"
        '  tandem_store_role{role=~".*_MASTER"} == 1 and on (instance) tandem_store_writable == 1) > 1', "15s",
        "Broker {{ $labels.node_id }} has {{ $value }} masters that take messages",
        "Two nodes take messages under one name. What one of them stores the other will never have.",
        panel="Role",
    ),
    Alert(
        "replication", "TandemNoSlaveInSync", "critical",
        'tandem_replicas_in_sync == 0 and on (instance) tandem_replicator_role{role="SYNC_MASTER"}', "1m",
        "The master {{ $labels.node }} has no slave in sync",
        "Whatever is stored now is on one machine only.",
    ),
    Alert(
        "replication", "TandemReplicasNotEnough", "critical",
        "tandem_replicas_enough == 0", "30s",
        "Not enough slaves for the synchronous sends of {{ $labels.node }}",
        "Fewer slaves are connected than inSyncReplicas asks for: sends are answered SLAVE_NOT_AVAILABLE, or refused.",
    ),
    Alert(
        "replication", "TandemSlaveDisconnected", "warning",
        "tandem_replica_connected == 0", "1m",
        "Slave {{ $labels.replica }} of {{ $labels.node }} is not connected",
        "The master has known this slave, and it has been away for a minute.",
    ),
    Alert(
        "replication", "TandemSlaveLagBytes", "warning",
        "tandem_replica_lag_bytes > 67108864 and tandem_replica_connected == 1", "2m",
        "Slave {{ $labels.replica }} of {{ $labels.node }} is {{ $value | humanize1024 }}B behind",
        "It is connected, and receives less than its master stores.",
    ),
    Alert(
        "replication", "TandemSlaveLagSeconds", "warning",
        "tandem_replica_lag_seconds > 30 and tandem_replica_connected == 1", "1m",
        "Slave {{ $labels.replica }} of {{ $labels.node }} is {{ $value | humanizeDuration }} behind",
        "What the master stored since then would be lost with its machine.",
    ),
    Alert(
        "replication", "TandemSlaveSilent", "warning",
        "tandem_replica_silent_seconds > 5", "",
        "Slave {{ $labels.replica }} of {{ $labels.node }} has not reported for {{ $value | humanizeDuration }}",
        "Its connection is open, and nothing comes: it hangs, or the network loses what it sends.",
        panel="Silence of slaves",
    ),
    Alert(
        "replication", "TandemFollowerRefused", "critical",
        'tandem_follower_state{state="refused"} == 1', "",
        "The slave {{ $labels.node }} must not follow its master",
        "Following would damage its log, or the master is the wrong one. It stays so until somebody acts.",
    ),
    Alert(
        "replication", "TandemFollowerFork", "critical",
        'tandem_ha_follow_ends_total{reason=~"fork|ahead"} > 0\n'
        'and on (instance) tandem_follower_state{state="refused"} == 1', "",
        "The logs of {{ $labels.node }} and its master have parted ({{ $labels.reason }})",
        "The slave has bytes that its master does not have. Before you throw any away: tandem data audit --pair tells "
        "which of the two is damaged, and heals it with --repair.",
    ),
    Alert(
        "replication", "TandemReplicaBytesRefused", "warning",
        'increase(tandem_ha_follow_ends_total{reason="corrupt"}[15m]) > 0', "",
        "Bytes that came to {{ $labels.node }} from its master are no records",
        "They changed on the way, or the master's log is damaged there. None was acknowledged; they are fetched again.",
    ),
    Alert(
        "replication", "TandemFollowerNotFollowing", "warning",
        'tandem_follower_state{state="following"} == 0', "2m",
        "The slave {{ $labels.node }} does not follow",
        "For two minutes it has been dialling its master, comparing logs, or refusing.",
    ),
    Alert(
        "replication", "TandemFollowerSilent", "warning",
        "tandem_follower_silent_seconds > 12", "",
        "The slave {{ $labels.node }} hears nothing from its master",
        "The connection stands, and nothing has come for {{ $value | humanizeDuration }}; heartbeats come every 5 s.",
    ),
    Alert(
        "replication", "TandemReplicatorUnlinked", "critical",
        "tandem_store_linked == 0", "30s",
        "The replicator of {{ $labels.node }} has lost its store",
        "It is not linked to the store beside it: nothing is replicated.",
    ),
    Alert(
        "replication", "TandemOldMasterFenced", "warning",
        "increase(tandem_fences_total[15m]) > 0", "",
        "{{ $labels.node }} has fenced an old master",
        "An old master came back and was told that it was replaced. What it stored meanwhile, nobody else has.",
    ),
    Alert(
        "metadata", "TandemMetadataSyncProblem", "warning",
        "tandem_metadata_sync_problem == 1", "1m",
        "{{ $labels.node }} cannot copy the table {{ $labels.table }}",
        "The slave's copying of this table has been failing for a minute. The tables it has stay in force.",
    ),
    Alert(
        "metadata", "TandemMetadataSyncOld", "warning",
        "tandem_metadata_sync_age_seconds > 60", "1m",
        "The table {{ $labels.table }} of {{ $labels.node }} is {{ $value | humanizeDuration }} old",
        "The slave has not found this table equal to the master's for that long. After a promotion it would be so old.",
    ),
    Alert(
        "metadata", "TandemMetadataNeverSynced", "warning",
        f"tandem_metadata_sync_age_seconds == -1 {_OF_A_SLAVE}", "2m",
        "{{ $labels.node }} has never copied the table {{ $labels.table }}",
        "The slave's metasync runs, and has not reached its master's since it started.",
    ),
    Alert(
        "metadata", "TandemMetadataWriteFailures", "critical",
        "increase(tandem_metadata_write_failures_total[5m]) > 0", "",
        "{{ $labels.node }} cannot write the table {{ $labels.table }}",
        "A table could not be written to disk in the last five minutes: disk full, or failing?",
    ),
    Alert(
        "metadata", "TandemMetadataUnsaved", "critical",
        "min_over_time(tandem_metadata_unsaved[2m]) == 1\n"
        "and on (instance, table) increase(tandem_metadata_write_failures_total[5m]) > 0", "",
        "The table {{ $labels.table }} of {{ $labels.node }} has not been on disk for two minutes",
        "Changes are in memory only, since writing fails. They are lost if the process ends.",
    ),
    Alert(
        "metadata", "TandemMetadataCommitsWaiting", "info",
        "tandem_metadata_pending_commits > 0", "10m",
        "{{ $value }} offsets wait on the slave {{ $labels.node }}",
        "Consumers committed them there, and the master has not been there to take them for ten minutes.",
    ),
)  # fmt: skip
