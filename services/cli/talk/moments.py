"""Times as people write and read them; inside they are milliseconds since 1970."""

import re
import time
from datetime import UTC, datetime

from tandemmq.cli.talk.failures import WrongUsage

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

FORMS_AHEAD = "2026-01-31T12:00 (local time, or with a zone), now, or milliseconds since 1970"
"""What `parse_moment_ahead` takes."""

FORMS = "2026-01-31T12:00 (local time, or with a zone), 10m (10 minutes ago; s, h, d), now, or milliseconds since 1970"
"""What `parse_moment` takes; for help texts."""


class BadMoment(WrongUsage):
    """A text that is no time."""


def parse_moment(text: str, now_ms: int | None = None) -> int:
    """Read a time in one of the `FORMS`. Raises BadMoment."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    if text == "now":
        return now_ms
    if text.isdecimal():
        return int(text)
    ago = _AGO.fullmatch(text)
    if ago:
        return now_ms - int(float(ago[1]) * _UNITS_MS[ago[2]])
    return _parse_date(text, FORMS)


def parse_moment_ahead(text: str) -> int:
    """The same for a time that is to come, which is not so long ago. Raises BadMoment."""
    if _AGO.fullmatch(text):
        raise BadMoment(f"{text!r} is a duration: say --delay {text}")
    return parse_moment(text) if text == "now" or text.isdecimal() else _parse_date(text, FORMS_AHEAD)


def _parse_date(text: str, forms: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadMoment(f"{text!r} is no time; write it as {forms}") from None
    return int(moment.timestamp() * 1000)


def parse_duration(text: str) -> int:
    """Read a duration, `10s`, `1.5h` or `250ms`, as milliseconds. Raises BadMoment."""
    found = _AGO.fullmatch(text)
    if found:
        return int(float(found[1]) * _UNITS_MS[found[2]])
    if text.isdecimal():
        raise BadMoment(f"{text} of what? Write a unit after it: {text}s, {text}m, {text}h, {text}d, or {text}ms")
    raise BadMoment(f"{text!r} is no duration; write it as 250ms, 10s, 5m, 1.5h, 2d")


def show_duration(milliseconds: int) -> str:
    """The same duration as `parse_duration` takes it, in the largest unit that shows all of it."""
    for unit, size in reversed(_UNITS_MS.items()):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def show_moment(milliseconds: int) -> str:
    """Local time to the millisecond, `2026-01-31 12:00:00.123`; `-` for none, a number after the year 9999."""
    if milliseconds <= 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{milliseconds % 1000:03d}"


def show_seconds(seconds: float) -> str:
    """A duration: `850 µs`, `12 ms`, `3.4 s`."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s"


def show_bytes(amount: int) -> str:
    """A size: `812 bytes`, `3.4 MB`; powers of 1,000, as disks are sold and `ls --si` counts."""
    if amount < 1000:
        return f"{amount} bytes"
    value = float(amount)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:,.1f} TB"
