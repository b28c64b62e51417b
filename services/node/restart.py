"""When a service that died is started again, and when that is given up. Numbers only: the caller has the clock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartRules:
    """How patient a supervisor is. Times are seconds."""

    first_pause: float = 0.1
    """Before the first restart; each further one waits twice as long."""
    longest_pause: float = 5.0
    healthy_after: float = 10.0
    """A service that served so long has come back: its earlier deaths are forgotten."""
    deaths_in_a_row: int = 12
    """After so many without a healthy life in between, it is given up."""


class RestartPolicy:
    """The deaths of one service."""

    def __init__(self, rules: RestartRules) -> None:
        self._rules = rules
        self.deaths = 0
        """In a row, the last one included."""

    def died(self, served_seconds: float) -> float | None:
        """Note a death after so long a service (0: it never served); gives the pause before the next start.

        None: give up.
        """
        rules = self._rules
        if served_seconds >= rules.healthy_after:
            self.deaths = 0
        self.deaths += 1
        if self.deaths > rules.deaths_in_a_row:
            return None
        return min(rules.first_pause * 2.0 ** (self.deaths - 1), rules.longest_pause)
