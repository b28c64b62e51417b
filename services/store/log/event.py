"""Something that happens again and again, and those who want to hear of it."""

from collections.abc import Callable

Listener = Callable[[], None]


class Event:
    """A list of listeners. Call it to tell all of them, in the order in which they came.

    It carries no values: a listener reads what it wants to know, and finds it as it is now. Listeners do not raise. One
    that comes or goes while the others are told makes no difference to that round.
    """

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` from now on; call what this gives to end that."""
        self._listeners = (*self._listeners, listener)

        def end() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return end

    def __call__(self) -> None:
        """It has happened."""
        for listener in self._listeners:
            listener()
