"""Results for people: a table a case, and the goals at the end."""

from bench.goals import HEADINGS, GoalStanding
from bench.model import Results, Series

_UNITS: dict[str, tuple[str, float, int]] = {
    "rate": ("k/s", 1e-3, 1), "cpu_us": ("CPU µs", 1, 1), "p50_us": ("p50 µs", 1, 0), "p99_us": ("p99 µs", 1, 0),
    "us": ("CPU µs", 1, 2), "gb_s": ("GB/s", 1, 2), "m_rec_s": ("M records/s", 1, 2), "seconds": ("s", 1, 2),
    "open_s": ("open s", 1, 2), "rss_mb": ("RSS MB", 1, 0), "anon_mb": ("anonymous MB", 1, 0),
    "disk_mb": ("disk MB", 1, 0), "cpu_s_gb": ("CPU s/GB", 1, 2), "held_mb": ("RSS MB connected", 1, 0),
    "lag_p99_ms": ("lag p99 ≤ ms", 1, 0), "lag_max_ms": ("lag max ≤ ms", 1, 0),
    "added_p50_us": ("added p50 µs", 1, 0), "added_p99_us": ("added p99 µs", 1, 0),
    "alone_p50_us": ("alone p50 µs", 1, 0), "alone_p99_us": ("alone p99 µs", 1, 0),
    "log_gb_s": ("log alone GB/s", 1, 2),
    "master_us": ("master µs", 1, 1), "master_repl_us": ("its replicator µs", 1, 1),
    "slave_us": ("slave µs", 1, 1), "slave_repl_us": ("its replicator µs", 1, 1),
    "master_gb": ("master s/GB", 1, 2), "master_repl_gb": ("its replicator s/GB", 1, 2),
    "slave_gb": ("slave s/GB", 1, 2), "slave_repl_gb": ("its replicator s/GB", 1, 2),
    "installed_mb": ("installed MB", 1, 1), "runtime_mb": ("runtime MB", 1, 0),
    "connection_kb": ("KiB a connection", 1, 1), "peak_mb": ("peak MB", 1, 0),
    "m_msg_s": ("M msg/s", 1, 2), "unsynced_gb_s": ("unsynced GB/s", 1, 2), "scan_s": ("scan s", 1, 2),
    "index_s": ("index s", 1, 2), "check_s": ("check s", 1, 2), "driver_s": ("driver alone s", 1, 2),
    "session_s": ("session s", 1, 2), "task_s": ("first task s", 1, 2), "first_s": ("first rebuild s", 1, 2),
    "warm_s": ("second s", 1, 2), "overhead_s": ("overhead s", 1, 2), "worker_mb": ("a worker MB", 1, 0),
    "idle_mb": ("idle MB", 1, 0), "worker_rss_mb": ("with mapped files MB", 1, 0), "workers": ("workers", 1, 0),
    "workers_mb": ("all workers MB", 1, 0), "jvm_mb": ("Java MB", 1, 0), "driver_mb": ("driver MB", 1, 0),
    "us_a_range": ("µs a range", 1, 0), "ns_a_key": ("ns a key", 1, 1),
    "base_mb": ("base MB", 1, 1), "log_mb": ("log MB", 1, 0), "load_ms": ("load of those due ms", 1, 1),
    "given_us": ("given out µs", 1, 2), "dealt_us": ("dealt with µs", 1, 2),
}  # fmt: skip
"""Heading, factor and decimals of the metrics that are shown; all others are only in the JSON."""
_SATURATED = 0.95
"""Share of a core from which on a generator counts as the limit."""


def lines(results: Results, standings: list[GoalStanding]) -> list[str]:
    """Everything, as Markdown."""
    text = [" | ".join(f"{name} {value}" for name, value in results.machine.items()), ""]
    for name, case in results.cases.items():
        shown = [metric for metric in _UNITS if any(metric in series.metrics for series in case.series.values())]
        shown.sort(key=lambda metric: metric != case.metric)
        text += [f"{case.title}  ({name})", ""]
        rows = [["", *(_UNITS[metric][0] for metric in shown), "range"]]
        for who, series in case.series.items():
            cells = [_at_least(series, metric) + _number(series.median(metric), metric) for metric in shown]
            rows.append([who, *cells, _range(series, case.metric)])
        text += [*_table(rows), ""]
    if standings:
        text += ["Goals", ""]
        text += _table([HEADINGS, *(row.cells for row in standings)], left=2)
    if results.notes:
        text += ["", "Not measured:", *(f"- {note}" for note in results.notes)]
    return text


def _at_least(series: Series, metric: str) -> str:
    """Marks a throughput that the load generator may have limited: it used a whole core."""
    busy = series.median("client_cpu")
    return "≥ " if metric in ("rate", "gb_s") and busy is not None and busy > _SATURATED else ""


def _number(value: float | None, metric: str) -> str:
    if value is None:
        return "–"
    _, factor, decimals = _UNITS[metric]
    return f"{value * factor:,.{decimals}f}"


def _range(series: Series, metric: str) -> str:
    spread = series.spread(metric)
    return "" if spread is None else f"{_number(spread[0], metric)} … {_number(spread[1], metric)}"


def _table(rows: list[list[str]], left: int = 1) -> list[str]:
    """A Markdown table with even columns; the first `left` of them are text."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(cells: list[str]) -> str:
        sized = list(zip(cells, widths, strict=True))
        padded = [cell.ljust(width) for cell, width in sized[:left]] + [
            cell.rjust(width) for cell, width in sized[left:]
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths[:left])
    rule += "|" + "|".join("-" * (width + 1) + ":" for width in widths[left:]) + "|"
    return [line(rows[0]), rule, *(line(row) for row in rows[1:])]
