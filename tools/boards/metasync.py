"""Metasync: the tables of topics, groups and offsets, and how slaves copy them."""

from boards.model import Dashboard, Row, lines, stat

_STATE = Row(
    "State",
    (
        stat(
            "Takes changes", "short",
            "Whether each metasync is a master's: there topics and groups are changed. A slave takes offsets only.",
            "tandem_metadata_master{@}", "{{node}}", width=6, words=((0, "slave", "blue"), (1, "master", "green")),
        ),
        stat(
            "Tables that cannot be copied", "short",
            "On slaves: tables whose copying fails at present. Must be 0.",
            "sum by (node) (tandem_metadata_sync_problem{@})", "{{node}}", width=6, steps=(("red", 1),),
        ),
        stat(
            "Tables that cannot be written", "short",
            "Tables that failed to be written to disk in the last ten minutes. Must be 0: what is not on disk is lost "
            "with the process.",
            "sum by (node) (increase(tandem_metadata_write_failures_total{@}[10m]))", "{{node}}", width=6,
            steps=(("red", 1),),
        ),
        stat(
            "Commits that wait for the master", "short",
            "Offsets that consumers committed on a slave and that its master does not have yet. Rises while the master "
            "is away; falls to 0 when it is back.",
            "sum by (node) (tandem_metadata_pending_commits{@})", "{{node}}", width=6, steps=(("orange", 1),),
        ),
    ),
)  # fmt: skip

_TABLES = Row(
    "Tables",
    (
        lines(
            "Entries", "short",
            "Entries of each table. The lines of a pair should lie on each other.",
            ("tandem_metadata_entries{@}", "{{node}} {{table}}"),
        ),
        lines(
            "Versions", "short",
            "Counter of each table's version: it rises with each change. A slave's lags for up to metasyncInterval.",
            ("tandem_metadata_version{@}", "{{node}} {{table}}"),
        ),
        lines(
            "Epoch of the versions", "short",
            "State version of each table: the mastership in which it was last changed. Equal on a pair.",
            ("tandem_metadata_version_state{@}", "{{node}} {{table}}"),
        ),
        lines(
            "Not on disk", "short",
            "1 while a table has changes that are not on disk. Offsets are written every 5 s, so theirs is often 1 "
            "under load; topics and groups are written before a change is answered.",
            ("tandem_metadata_unsaved{@}", "{{node}} {{table}}"), stacked=True,
        ),
        lines(
            "Failed to be written", "short",
            "Tables that could not be written, in ten minutes. Must be 0.",
            ("increase(tandem_metadata_write_failures_total{@}[10m])", "{{node}} {{table}}"),
        ),
        lines(
            "Watchers", "short",
            "Who is told of every change: a store watches its metasync. 0 on a node with a store: the store does not "
            "learn of new topics.",
            "tandem_metadata_watchers{@}",
        ),
    ),
)  # fmt: skip

_COPYING = Row(
    "Copying",
    (
        lines(
            "Age of the copy", "s",
            "On slaves: time since each table was last equal to the master's. It rises to metasyncInterval (10 s) and "
            "falls back. Below 0: never yet.",
            ("tandem_metadata_sync_age_seconds{@} and on (instance) tandem_metadata_master == 0",
             "{{node}} {{table}}"), steps=(("red", 60),), at_least=None,
        ),
        lines(
            "Tables taken over", "short",
            "Tables that a slave took over from its master, in ten minutes.",
            ("increase(tandem_metadata_syncs_total{@}[10m])", "{{node}} {{table}}"),
        ),
        lines(
            "Copying failed", "short",
            "Tables that could not be copied, in ten minutes. Some while the master is away; else look at the log.",
            ("increase(tandem_metadata_sync_failures_total{@}[10m])", "{{node}} {{table}}"),
        ),
        lines(
            "Whole tables asked for", "short",
            "Whole tables that slaves and tools asked for, in ten minutes. A slave asks only when versions differ.",
            ("increase(tandem_metadata_tables_sent_total{@}[10m])", "{{node}} {{table}}"),
        ),
        lines(
            "Offsets handed over", "short",
            "Offsets that were committed on a slave and handed to its master, in ten minutes.",
            "increase(tandem_metadata_handed_over_total{@}[10m])",
        ),
    ),
)  # fmt: skip

_COMMITS = Row(
    "Commits of offsets",
    (
        lines(
            "Commits", "ops",
            "Consumer offsets committed, a second, by what became of them. committed is good; unknown_topic and "
            "unknown_group are consumers that speak of what does not exist.",
            ("sum by (node, status) (rate(tandem_metadata_commits_total{@}[$__rate_interval]))",
             "{{node}} {{status}}"), width=12,
        ),
        lines(
            "Memory", "bytes",
            "Resident memory of metasyncs.",
            ('process_resident_memory_bytes{#,service="metasync"}', "{{node}}"), width=12,
        ),
    ),
)  # fmt: skip

METASYNC = Dashboard(
    "metasync",
    "Metasync",
    "Topics, groups and offsets: what is in the tables, on disk, and copied to slaves.",
    (_STATE, _TABLES, _COPYING, _COMMITS),
)
