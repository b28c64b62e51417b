"""One alert rule."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Alert:
    """A condition that somebody has to hear of."""

    group: str
    name: str
    severity: str
    """critical, warning or info."""
    expression: str
    lasting: str
    """How long it must hold before it is told; empty: at once."""
    summary: str
    """One line, with the series' labels."""
    description: str
    """What it means, with the value."""
    panel: str = ""
    """Title of the panel that shows it, where that is not the one whose metrics are most like the alert's."""

    @property
    def runbook(self) -> str:
        """Where the runbook says what to do."""
        return f"docs/runbook.md#{self.name.lower()}"
