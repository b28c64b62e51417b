"""Writes docs/settings.md and docs/metrics.md from the code; with ``--check`` only says whether they are stale."""

import os
import socket
import sys
from pathlib import Path

from tandemmq.store.metrics import Gauges, StoreMetrics
from tandemmq.store.settings import PROFILES, StoreSettings, load_settings

DOCS = Path(__file__).resolve().parent.parent / "docs"

_SETTINGS_HEAD = """# Settings of the store

Names are RocketMQ's where RocketMQ has the setting. Each can be given as a line `name=value` in a properties file
(`tandem store --config broker.conf`), as the environment variable in the second column, or on the command line
(`tandem store --set name=value`); the later of these wins. A name that nobody knows is an error that names the nearest
known one. `tandem settings` shows what is in force and where each value comes from.

Without a file the profile `embedded` gives the defaults, with one the profile `server`, which is RocketMQ's own.

| name | environment | default | allowed | effect |
|---|---|---|---|---|
"""
_METRICS_HEAD = """# Metrics of the store

Served on port 9101 (`metricsPort`) under `/metrics`, in Prometheus' text format. Names beginning with `rocketmq_` are
those of RocketMQ 5, with its labels; `tandem_` are ours. Every metric has the labels `cluster`, `node_type`, `node_id`.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """The page of all settings."""
    rows = []
    host = socket.gethostname()
    for one in load_settings(profile="server", environment={}).describe():
        value = one.default.replace(str(Path.home()), "~")
        default = "*host name*" if value == host else f"`{value}`" if value else "*none*"
        rows.append(f"| `{one.name}` | `{one.environment}` | {default} | {_cell(one.allowed)} | {_cell(one.doc)} |")
    embedded = [f"| `{_known_name(name)}` | `{value}` |" for name, value in PROFILES["embedded"].items()]
    ignored = [f"| `{name}` | {_cell(why)} |" for name, why in sorted(StoreSettings.without_effect.items())]
    return (
        _SETTINGS_HEAD
        + "\n".join(rows)
        + "\n\n## What the profile `embedded` changes\n\n| name | default |\n|---|---|\n"
        + "\n".join(embedded)
        + "\n\n## Accepted without effect\n\nSettings of RocketMQ that an existing broker.conf may hold.\n\n"
        + "| name | why |\n|---|---|\n"
        + "\n".join(ignored)
        + "\n"
    )


def _known_name(attribute: str) -> str:
    return next(one.name for one in load_settings(environment={}).describe() if one.attribute == attribute)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def metrics_page() -> str:
    """The page of all metrics."""
    metrics = StoreMetrics("cluster", "node")
    metrics.sent("topic", 1, 1)
    metrics.pulled("topic", "group", 1, 1)
    metrics.called("Send", "SUCCESS", 0.0)
    metrics.failed("flush")
    metrics.damaged("rot", 1)
    metrics.watch(lambda: Gauges._make(0 for _ in Gauges._fields))
    rows = []
    for family in sorted(metrics.collect(), key=lambda one: one.name):
        labels = {label for sample in family.samples for label in sample.labels}
        own = ", ".join(f"`{label}`" for label in sorted(labels - {"cluster", "node_type", "node_id", "le"}))
        name = family.name + ("_total" if family.type == "counter" else "")
        rows.append(f"| `{name}` | {family.type} | {own} | {_cell(family.documentation)} |")
    return _METRICS_HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check the pages; gives the exit status."""
    os.chdir(DOCS.parent)
    stale = []
    for name, text in (("settings.md", settings_page()), ("metrics.md", metrics_page())):
        path = DOCS / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text)
    if stale and "--check" in sys.argv:
        print(f"docs/{', docs/'.join(stale)} stale: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
