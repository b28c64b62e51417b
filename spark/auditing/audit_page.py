"""An audit's report as one HTML file: it holds all that it shows, and asks no network for anything."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandemmq.common.errors import Kind
from tandemmq.spark.auditing.audit_plots import plot_all
from tandemmq.spark.auditing.audit_report import AuditReport, QueueAudit, place_words
from tandemmq.spark.errors import SparkJobError

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATES = Path(__file__).with_name("templates")
_MOST_ROWS = 400
"""Rows of a table: a page of a store with 50,000 queues still opens. The JSON document has all of them."""


class PageNotPossible(SparkJobError):
    """What makes the page is not installed."""

    kind = Kind.NOT_POSSIBLE
    remedy = "install the extra `spark`: pip install 'tandemmq[spark]'"


def check_page(path: Path) -> None:
    """Whether a page can be made and written there: asked before hours of work.

    Raises:
        PageNotPossible: a package is missing.
        OSError: the directory does not exist, or the like.
    """
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise PageNotPossible(f"The HTML report cannot be made: {error}") from error
    new = not path.exists()
    with path.open("ab"):
        pass
    if new:
        path.unlink()


def write_page(report: AuditReport, path: Path) -> None:
    """Write the page. Raises OSError."""
    path.write_text(page(report), encoding="utf-8")


def page(report: AuditReport) -> str:
    """The HTML text."""
    from markupsafe import Markup

    totals = sorted(report.statistics.totals().items(), key=lambda one: (-one[1][1], one[0]))
    queues = sorted(report.queues, key=lambda one: (-one.faults, one.topic, one.queue_id))
    return _template().render(
        report=report,
        faults=list(report.found(faults=True)),
        notes=list(report.found(faults=False)),
        plots={name: Markup(svg) for name, svg in plot_all(report).items()},
        topics=totals[:_MOST_ROWS],
        topics_left=max(0, len(totals) - _MOST_ROWS),
        log_bytes=sum(size for _, (_, size) in totals),
        queues=[(one, _counts(one)) for one in queues[:_MOST_ROWS]],
        queues_left=max(0, len(queues) - _MOST_ROWS),
        index=(report.index or [])[-_MOST_ROWS:],
        index_left=max(0, len(report.index or ()) - _MOST_ROWS),
    )


def _counts(queue: QueueAudit) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in sorted(queue.counts.items()) if number)


@cache
def _template() -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "size": _size, "moment": _moment, "words": place_words}
    return environment.get_template("audit.html")


def _number(value: int) -> str:
    return f"{value:,}"


def _size(value: int) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,} bytes"


def _moment(milliseconds: int) -> str:
    """UTC, to the second."""
    try:
        moment: Any = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds:,} ms"
    return str(moment.strftime("%Y-%m-%d %H:%M:%S")) if milliseconds else "none"
