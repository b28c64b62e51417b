"""How many units of work fit into one turn of the event loop, by how long the turns before took."""

_TURN_SECONDS = 0.001


class TurnSize:
    """Begins with few, and follows what is measured: work that costs more than before is made smaller at once."""

    def __init__(self, first: int, most: int, least: int) -> None:
        """No turn does more than `most`, nor is made for fewer than `least`."""
        self._least = least
        self._most = most
        self.units = first
        """So many in the next turn."""

    def took(self, units: int, seconds: float) -> None:
        """A turn did so many, and took so long. One that had less to do than it might have says nothing of more."""
        if seconds > _TURN_SECONDS:
            self.units = max(int(units * _TURN_SECONDS / seconds), self._least)
        elif units >= self.units and 2 * seconds < _TURN_SECONDS:
            self.units = min(2 * units, self._most)
