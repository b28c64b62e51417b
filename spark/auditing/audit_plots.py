"""The plots of an audit's report, as SVG texts that stand in an HTML page and need nothing from anywhere."""

import io
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tandemmq.spark.auditing.audit_report import AuditReport
from tandemmq.spark.auditing.audit_statistics import SIZE_STEPS, WIDTHS, Statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_INCHES = 10.4
_TOPICS = 7
_COLOURS = ("#3b6ea8", "#e08e3c", "#5a9e6f", "#b5546b", "#7d6bb0", "#8a7352", "#3fa1a8", "#b0b5bb")
_INK, _PALE, _GOOD, _EMPTY = "#333a44", "#d9dde2", "#9cc3a5", "#eef0f2"
_BAD = {"rot": "#c0392b", "missing": "#7b1e3a", "torn": "#e08e3c", "queue": "#b5546b", "index": "#7d6bb0"}
_BUCKETS = 240
_OUTLIERS = 0.001
"""The share of messages whose times may lie outside of a plot, at either end: no checksum covers store times."""

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "tandem",
    "axes.edgecolor": _PALE,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _EMPTY,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "text.parse_math": False,  # a topic may have a dollar sign
}


def plot_all(report: AuditReport) -> dict[str, str]:
    """SVG texts by name: ``map``, and where there are records ``messages``, ``bytes`` and ``sizes``."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # texts are drawn by the browser
        plots = {"map": _map(report)}
        if report.records:
            times = _Times(report.statistics)
            plots["messages"] = _over_time(times, 0, "messages")
            plots["bytes"] = _over_time(times, 1, "bytes")
            plots["sizes"] = _sizes(report.statistics)
    return plots


def _figure(height: float) -> "tuple[Any, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
    return figure, figure.add_subplot()


def _svg(figure: Any) -> str:
    """The SVG element, without what comes before it in a file of its own; as wide as the page is."""
    target = io.StringIO()
    figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    return text[text.index("<svg") :].replace("<svg ", '<svg preserveAspectRatio="xMinYMin meet" ', 1)


# -- the map of the log ---------------------------------------------------------------------------------------------


def _map(report: AuditReport) -> str:
    """Three lanes over the offsets of the log: damage in it, what the queues lack of it, what the index lacks."""
    lanes = ["log", *(["queues"] if report.queues_compared else []), *(["index"] if report.index is not None else [])]
    figure, axes = _figure(0.62 + 0.36 * len(lanes))
    begin, end = report.begin, max(report.end, report.begin + 1, *(one.end for one in report.damage or ()), 1)
    least = (end - begin) / 350  # what is there is to be seen, small as it may be
    for row, lane in enumerate(reversed(lanes)):
        axes.broken_barh([(begin, report.end - begin)], (row - 0.36, 0.72), facecolor=_GOOD)
        for low, high, colour, alpha in _faults_of(report, lane):
            width = max(high - low, least)
            bar = [(min(low, end - width), width)]
            axes.broken_barh(bar, (row - 0.36, 0.72), facecolor="white")
            axes.broken_barh(bar, (row - 0.36, 0.72), facecolor=colour, alpha=alpha)
    for start in report.files if len(report.files) <= 120 else ():
        axes.axvline(start, color="white", linewidth=0.6)
    axes.set_yticks(range(len(lanes)), list(reversed(lanes)))
    axes.set_xlim(begin, end)
    axes.set_ylim(-0.5, len(lanes) - 0.5)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _byte_axis(axes, "x")
    axes.set_xlabel("log offset")
    return _svg(figure)


def _faults_of(report: AuditReport, lane: str) -> list[tuple[int, int, str, float]]:
    """Begin, end, colour and opacity."""
    if lane == "log":
        return [(one.begin, one.end, _BAD.get(one.kind, _BAD["rot"]), 1.0) for one in report.damage]
    found = []
    for one in report.ranges:
        wrong = one.wrong_units if lane == "queues" else one.wrong_entries
        if wrong:
            share = min(1.0, wrong / max(one.records, 1))
            found.append((one.begin, one.end, _BAD["queue" if lane == "queues" else "index"], 0.35 + 0.65 * share))
    return found


# -- over time ------------------------------------------------------------------------------------------------------


class _Times:
    """Statistics on one axis of time, for the largest topics and the others together."""

    def __init__(self, statistics: Statistics) -> None:
        wide = _without_outliers(statistics).widened(_BUCKETS)
        totals = sorted(wide.totals().items(), key=lambda one: (-one[1][1], one[0]))
        self.width = wide.width
        numbers = [bucket for of_topic in wide.buckets.values() for bucket in of_topic]
        self._low, high = min(numbers), max(numbers)
        self.starts = [self._low + at for at in range(high - self._low + 2)]
        self.names = [topic for topic, _ in totals[:_TOPICS]]
        self._rows: list[list[dict[int, tuple[int, int]]]] = [[wide.buckets[name]] for name in self.names]
        rest = [wide.buckets[topic] for topic, _ in totals[_TOPICS:]]
        if rest:
            self.names.append(f"{len(rest):,} others")
            self._rows.append(rest)

    def series(self, which: int) -> Any:
        """Messages (0) or bytes (1): a row a topic, a column a bucket; the last column is that of the one before."""
        values = np.zeros((len(self._rows), len(self.starts)))
        for row, of_rows in enumerate(self._rows):
            for buckets in of_rows:
                for bucket, counts in buckets.items():
                    values[row, bucket - self._low] += counts[which]
        values[:, -1] = values[:, -2]
        return values


def _without_outliers(statistics: Statistics) -> Statistics:
    """Times of which there are only a handful, far from all others, would make a plot of nothing."""
    per_bucket: dict[int, int] = {}
    for of_topic in statistics.buckets.values():
        for bucket, (messages, _) in of_topic.items():
            per_bucket[bucket] = per_bucket.get(bucket, 0) + messages
    order = sorted(per_bucket)
    running = np.cumsum([per_bucket[bucket] for bucket in order])
    low = order[int(np.searchsorted(running, running[-1] * _OUTLIERS))]
    high = order[int(np.searchsorted(running, running[-1] * (1 - _OUTLIERS)))]
    span = max(high - low, 10)
    if order[-1] - order[0] <= 4 * span:
        return statistics
    kept = Statistics(statistics.width)
    kept.buckets = {
        topic: {bucket: counts for bucket, counts in of_topic.items() if low - span <= bucket <= high + span}
        for topic, of_topic in statistics.buckets.items()
    }
    return kept


def _over_time(times: _Times, which: int, unit: str) -> str:
    figure, axes = _figure(2.5)
    moments: Any = [_moment(start * times.width) for start in times.starts]
    series = times.series(which)
    colours = [_COLOURS[min(at, len(_COLOURS) - 1)] for at in range(len(times.names))]
    labels = [_label(name) for name in times.names]
    axes.stackplot(moments, series, labels=[f" {label}" for label in labels], colors=colours, step="post", linewidth=0)
    axes.set_xlim(moments[0], moments[-1])
    axes.set_ylim(bottom=0)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(f"{unit} in {_width_words(times.width)}")
    if which:
        _byte_axis(axes, "y")
    else:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _time_axis(axes)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.02), handlelength=0.9)
    return _svg(figure)


def _label(name: str) -> str:
    """No checksum covers a topic: anything may stand there."""
    shown = name if name.isprintable() else name.encode("unicode_escape").decode()
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _time_axis(axes: "Axes") -> None:
    from matplotlib import dates

    untyped: Any = dates
    locator = untyped.AutoDateLocator(tz=UTC, maxticks=9)
    formatter = untyped.ConciseDateFormatter(
        locator,
        tz=UTC,
        formats=["%Y", "%b %Y", "%d %b", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f"],
        zero_formats=["", "%Y", "%b", "%d %b", "%H:%M", "%H:%M:%S"],
        offset_formats=["", "%Y", "%Y", "%d %b %Y", "%d %b %Y", "%d %b %Y"],
    )
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(formatter)


def _moment(milliseconds: int) -> datetime:
    least, most = 0, 253_000_000_000_000  # what a datetime can be; damaged times are beyond
    return datetime.fromtimestamp(min(max(milliseconds, least), most) / 1000, UTC)


def _width_words(width: int) -> str:
    words = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 day", "10 days", "100 days", "1,000 days")
    return dict(zip(WIDTHS, words, strict=False)).get(width, "all time")


# -- sizes ----------------------------------------------------------------------------------------------------------


def _sizes(statistics: Statistics) -> str:
    figure, axes = _figure(2.1)
    classes = range(max(0, min(statistics.sizes) - SIZE_STEPS), max(statistics.sizes) + SIZE_STEPS + 1)
    edges = [2 ** (one / SIZE_STEPS) for one in [*classes, classes[-1] + 1]]
    counts = [statistics.sizes.get(one, 0) for one in classes]
    axes.stairs(counts, edges, fill=True, color=_COLOURS[0], linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.grid(visible=False, axis="x")
    axes.minorticks_off()
    axes.set_xticks(_powers(edges))
    axes.xaxis.set_major_formatter(lambda value, _: _size_words(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("bytes of a record")
    axes.set_ylabel("records")
    return _svg(figure)


def _powers(edges: Sequence[float]) -> list[int]:
    powers = [1 << power for power in range(40) if edges[0] <= 1 << power <= edges[-1]]
    step = -(-len(powers) // 14)
    return powers[::step]


def _size_words(value: float) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:,.0f} {unit}"
    return f"{value:,.0f}"


def _byte_axis(axes: "Axes", which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    unit, size = next(
        ((unit, size) for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if high >= 2 * size),
        ("bytes", 1.0),
    )
    digits = 0 if (high - low) / size >= 8 else 1 if (high - low) / size >= 0.8 else 2
    axis.set_major_formatter(lambda value, _: f"{value / size:,.{digits}f} {unit}")
