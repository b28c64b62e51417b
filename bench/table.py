"""Results for people: a table a case, and the goals at the end."""

from bench.goals import Standing
from bench.model import Results, Series

_UNITS: dict[str, tuple[str, float, int]] = {
    "rate": ("k/s", 1e-3, 1), "cpu_us": ("CPU µs", 1, 1), "p50_us": ("p50 µs", 1, 0), "p99_us": ("p99 µs", 1, 0),
    "us": ("CPU µs", 1, 2), "gb_s": ("GB/s", 1, 2), "m_rec_s": ("M records/s", 1, 2), "seconds": ("s", 1, 2),
    "open_s": ("open s", 1, 2), "rss_mb": ("RSS MB", 1, 0), "anon_mb": ("anonymous MB", 1, 0),
    "disk_mb": ("disk MB", 1, 0), "cpu_s_gb": ("CPU s/GB", 1, 2),
}  # fmt: skip
"""Heading, factor and decimals of the metrics that are shown; all others are only in the JSON."""


def lines(results: Results, standings: list[Standing]) -> list[str]:
    """Everything, as Markdown."""
    text = [" | ".join(f"{name} {value}" for name, value in results.machine.items()), ""]
    for name, case in results.cases.items():
        shown = [metric for metric in _UNITS if any(metric in series.metrics for series in case.series.values())]
        shown.sort(key=lambda metric: metric != case.metric)
        text += [f"{case.title}  ({name})", ""]
        rows = [["", *(_UNITS[metric][0] for metric in shown), "range"]]
        for who, series in case.series.items():
            cells = [_number(series.median(metric), metric) for metric in shown]
            rows.append([who, *cells, _range(series, case.metric)])
        text += [*_table(rows), ""]
    if standings:
        text += ["Goals", ""]
        text += _table([["goal", "what", "reached", "goal is", "met"], *(row.cells for row in standings)], left=2)
    if results.notes:
        text += ["", "Not measured:", *(f"- {note}" for note in results.notes)]
    return text


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
