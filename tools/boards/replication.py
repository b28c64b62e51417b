"""Replication: masters and their slaves, the HA connections, promotions."""

from boards.model import Dashboard, Panel, Query, Row, lines, stat

_YES_NO = ((0, "no", "red"), (1, "yes", "green"))

_STATE = Row(
    "State",
    (
        stat(
            "Role", "short",
            "What each replicator's store is. \"unknown\" while the replicator has not spoken to its store.",
            "tandem_replicator_role{@} == 1", "{{node}} {{role}}", names=True, width=6, base="blue",
        ),
        stat(
            "Mastership", "short",
            "The number (epoch) of the mastership that each store knows. Equal on a pair; a node with a smaller one "
            "has not heard of the last promotion.",
            "tandem_store_epoch{@}", "{{node}}", width=6, base="blue",
        ),
        stat(
            "Slaves in sync", "short",
            "Slaves that are less than haMaxGapNotInSync behind, by master. 0: no copy of what is stored now.",
            'tandem_replicas_in_sync{@} and on (instance) tandem_replicator_role{role=~".*_MASTER"}', "{{node}}",
            width=6, base="orange", steps=(("green", 1),),
        ),
        stat(
            "Enough slaves", "short",
            "Whether as many slaves are connected as a synchronous send needs. No: sends are answered "
            "SLAVE_NOT_AVAILABLE or refused.",
            "tandem_replicas_enough{@}", "{{node}}", width=6, words=_YES_NO,
        ),
    ),
)  # fmt: skip

_BEHIND = Row(
    "Lag",
    (
        lines(
            "Lag of slaves, bytes", "bytes",
            "As masters see it: bytes of their log that a slave does not have.",
            ("tandem_replica_lag_bytes{@}", "slave {{replica}} of {{node}}"), width=6,
        ),
        lines(
            "Lag of slaves, time", "s",
            "As masters see it: age of the oldest byte that a slave does not have. 0 while it has everything.",
            ("tandem_replica_lag_seconds{@}", "slave {{replica}} of {{node}}"), width=6,
        ),
        lines(
            "As the slave sees it", "bytes",
            "Bytes of the master's log that are missing here, and bytes received that are not yet acknowledged. When "
            "this is small and the master's view is large, acknowledgements do not get through.",
            ("tandem_follower_lag_bytes{@}", "{{node}} missing"),
            ("tandem_follower_unacked_bytes{@}", "{{node}} not acknowledged"), width=6,
        ),
        lines(
            "Ends of the logs", "bytes",
            "Where each store's log ends. The lines of a pair should lie on each other.",
            "tandem_log_end_offset{@}", width=6,
        ),
    ),
)  # fmt: skip

_LINKS = Row(
    "Connections",
    (
        Panel(
            "Slaves connected", "short",
            "Each slave that a master knows: green while it is connected. It is forgotten some time after it left.",
            (Query("tandem_replica_connected{@}", "slave {{replica}} of {{node}}"),), kind="state-timeline",
            words=_YES_NO,
        ),
        Panel(
            "Slaves in sync", "short",
            "Each slave that a master knows: green while it counts as in sync.",
            (Query("tandem_replica_in_sync{@}", "slave {{replica}} of {{node}}"),), kind="state-timeline",
            words=_YES_NO,
        ),
        Panel(
            "What slaves do", "short",
            "Connecting: looking for the master. Comparing: checking that the logs agree. Following: taking what "
            "comes. Refused: it must not follow, and somebody has to act.",
            (Query("tandem_follower_state{@}", "{{node}} {{state}}"),), kind="state-timeline",
            words=((0, "-", "#44444444"), (1, "now", "blue")),
        ),
        Panel(
            "Store and replicator", "short",
            "Whether each replicator is linked to its store, and each store to its replicator. A break here stops "
            "replication, and sends of a SYNC_MASTER are not acknowledged as replicated.",
            (Query("tandem_store_linked{@}", "{{node}} replicator sees store"),
             Query("tandem_store_replicator_linked{@}", "{{node}} store sees replicator")),
            kind="state-timeline", words=_YES_NO,
        ),
        lines(
            "Last report", "s",
            "Time since a slave's last report. Slaves report at least every haSendHeartbeatInterval (5 s); after "
            "haHousekeepingInterval (20 s) the connection ends.",
            ("tandem_replica_ack_age_seconds{@}", "slave {{replica}} of {{node}}"), steps=(("red", 12),),
        ),
        lines(
            "Silence of slaves", "s",
            "How long nothing has come from a slave though something was due: for 2 s an ack of what it lacks, or two "
            "of its reports. 0 is good.",
            ("tandem_replica_silent_seconds{@}", "slave {{replica}} of {{node}}"), steps=(("red", 5),),
        ),
        lines(
            "Silence of the master", "s",
            "On slaves that follow: time since the master's last byte. Heartbeats come every 5 s, so 12 s is too long.",
            "tandem_follower_silent_seconds{@}", steps=(("red", 12),),
        ),
    ),
)  # fmt: skip

_TRAFFIC = Row(
    "Traffic",
    (
        lines(
            "Bytes", "Bps",
            "Bytes sent to slaves, and received from the master, a second.",
            ("rate(tandem_ha_sent_bytes_total{@}[$__rate_interval])", "{{node}} sent"),
            ("rate(tandem_ha_received_bytes_total{@}[$__rate_interval])", "{{node}} received"),
        ),
        lines(
            "Frames", "ops",
            "Frames of the HA protocol, a second, and heartbeats among them.",
            ("rate(tandem_ha_frames_sent_total{@}[$__rate_interval])", "{{node}} sent"),
            ("rate(tandem_ha_frames_received_total{@}[$__rate_interval])", "{{node}} received"),
            ("rate(tandem_ha_heartbeats_sent_total{@}[$__rate_interval])", "{{node}} heartbeats sent"),
            ("rate(tandem_ha_heartbeats_received_total{@}[$__rate_interval])", "{{node}} heartbeats received"),
        ),
        lines(
            "Reports", "ops",
            "Reports and acknowledgements, a second: sent by slaves, received by masters.",
            ("rate(tandem_ha_reports_sent_total{@}[$__rate_interval])", "{{node}} sent"),
            ("rate(tandem_ha_reports_received_total{@}[$__rate_interval])", "{{node}} received"),
        ),
        lines(
            "Pauses", "short",
            "Times in ten minutes that a slave's store was slower than its master. Often: the slave's disk or "
            "processor is too weak.",
            "increase(tandem_ha_staging_pauses_total{@}[10m])",
        ),
        lines(
            "Sends that wait", "short",
            "Sends that wait for slaves (SYNC_MASTER).",
            "tandem_sends_waiting_for_replicas{@}",
        ),
        lines(
            "Connections of slaves", "short",
            "Open HA connections at each master: one for each slave.",
            "tandem_ha_connections{@}",
        ),
    ),
)  # fmt: skip

_EVENTS = Row(
    "Events in ten minutes",
    (
        lines(
            "Following ended", "short",
            "Attempts to follow that ended, by reason. unreachable, closed and silent pass; fork, ahead, expired, "
            "epoch and role need somebody (docs/replication.md). Empty while nothing ends.",
            ("increase(tandem_ha_follow_ends_total{@}[10m]) > 0", "{{node}} {{reason}}"),
        ),
        lines(
            "Connections ended", "short",
            "Connections of slaves that ended or were refused, by reason.",
            ("increase(tandem_ha_connections_closed_total{@}[10m])", "{{node}} {{reason}}"),
        ),
        lines(
            "Connections made", "short",
            "Connections that masters accepted and that slaves made, slaves that introduced themselves, and attempts "
            "to follow again. Many: the network is unsteady, or a slave restarts again and again.",
            ("increase(tandem_ha_connections_accepted_total{@}[10m])", "{{node}} accepted"),
            ("increase(tandem_ha_master_connections_total{@}[10m])", "{{node}} made"),
            ("increase(tandem_ha_joins_total{@}[10m])", "{{node}} introduced"),
            ("increase(tandem_ha_reconnects_total{@}[10m])", "{{node}} again"),
        ),
        lines(
            "Links to the store", "short",
            "Times that a replicator made the link to its store: 1 at a start of either; more is a store that "
            "restarts.",
            "increase(tandem_store_links_total{@}[10m])",
        ),
        lines(
            "Damage mended", "short",
            "Damaged stretches of a log that were fetched again from a peer, and attempts that failed; and what the "
            "stores have back of it. Anything here: bytes of a log changed on a disk. See docs/replication.md.",
            ("increase(tandem_heals_total{@}[10m])", "{{node}} mended"),
            ("increase(tandem_heal_failures_total{@}[10m])", "{{node}} failed"),
            ("increase(tandem_repaired_records_total{@}[10m])", "{{node}} records"),
            ("increase(tandem_repaired_bytes_total{@}[10m])", "{{node}} bytes"),
        ),
        lines(
            "Fenced", "short",
            "Times that an old master was told that it was replaced. After a promotion: 1. Again and again: an old "
            "master comes back as one; see docs/runbook.md.",
            "increase(tandem_fences_total{@}[10m])",
        ),
        stat(
            "Serving", "short",
            "Whether each replicator's health says that it serves. No: it has no store, or it must not follow.",
            "tandem_replicator_serving{@}", "{{node}}", width=8, height=7, words=_YES_NO,
        ),
    ),
)  # fmt: skip

REPLICATION = Dashboard(
    "replication",
    "Replication",
    "Who follows whom, how far behind, over which connections, and what happened to them.",
    (_STATE, _BEHIND, _LINKS, _TRAFFIC, _EVENTS),
)
