"""What a program may see of the work of its client: it gives observers, as those of `metrics` and `tracing`."""

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from tandemmq.client.message import MessageContent
from tandemmq.client.outgoing import Sent

Ended = Callable[[Sent | None, BaseException | None], None]
"""Told of the end of a send: its receipt, or what was raised."""


class ClientObserver:
    """Told of sends, messages that come, and their ends. Subclass it; what is here does nothing.

    Called on the client's event loop, so that nothing in it may wait, and `handling` where the handler runs.
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


@contextmanager
def observed_handling(observers: Observers, group: str, message: MessageContent) -> Iterator[None]:
    """Around a handler, for all observers."""
    with ExitStack() as stack:
        for one in observers:
            stack.enter_context(one.handling(group, message))
        yield
