"""What a program may see of the work of its client: it gives observers, as those of `metrics` and `tracing`."""

import logging
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from tandemmq.client.message import MessageContent
from tandemmq.client.outgoing import Sent

log = logging.getLogger("tandemmq.client")

One = TypeVar("One")
Said = TypeVar("Said")

Ended = Callable[[Sent | None, BaseException | None], None]
"""Told of the end of a send: its receipt, what was raised because of it, or both of a batch's message that has both."""


class ClientObserver:
    """Told of sends, messages that come, and their ends. Subclass it; what is here does nothing.

    Called on the client's event loop, so that nothing in it may wait, and `handling` where the handler runs. What one
    raises is logged, and changes nothing of the client's work.
    """

    def sending(self, topic: str, properties: MutableMapping[str, str]) -> Ended:
        """A message is about to be sent, with what is added to its properties. Gives what is called at the end."""
        return lambda sent, error: None

    def received(self, group: str, topic: str, number: int) -> None:
        """So many messages have come."""

    def settled(self, group: str, topic: str, ending: str) -> None:
        """One has ended: `acknowledged`, `retried` or `dead`."""

    def handling(self, group: str, message: MessageContent) -> AbstractContextManager[None]:
        """Around the handler of a worker; it sees what the handler raises."""
        return nullcontext()


Observers = Sequence[ClientObserver]


def tell(listeners: Iterable[One], say: Callable[[One], Said]) -> list[Said]:
    """Tell each; gives what they say, of those that do not raise."""
    said = []
    for one in listeners:
        try:
            said.append(say(one))
        except Exception:
            log.exception("an observer has failed")
    return said


@contextmanager
def observed_handling(observers: Observers, group: str, message: MessageContent) -> Iterator[None]:
    """Around a handler, for all observers; none of them can hide what the handler raises, or add to it."""

    def enter(one: ClientObserver) -> AbstractContextManager[None]:
        around = one.handling(group, message)
        around.__enter__()
        return around

    entered = tell(observers, enter)
    try:
        yield
    except BaseException as error:
        _leave(entered, error)
        raise
    _leave(entered, None)


def _leave(entered: Sequence[AbstractContextManager[None]], error: BaseException | None) -> None:
    for one in reversed(entered):
        try:
            one.__exit__(None if error is None else type(error), error, None if error is None else error.__traceback__)
        except Exception as raised:
            if raised is not error:
                log.exception("an observer has failed")
