"""What the compiled core passes on of a gateway's SendMessage, as both sides of it see that."""

from collections.abc import Callable
from typing import Protocol

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.grpc_transport import DirectCall
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.store.broker.topics import TopicConfig

Held = tuple[DirectCall, bytes, float]
"""A call whose message was passed on, its request, and when it began, by `time.perf_counter`."""


class PassingLink(Protocol):
    """A link, as the compiled core asks it once in a turn of the loop."""

    @property
    def has_room(self) -> bool:
        """Whether it takes more."""
        ...

    @property
    def next_number(self) -> Callable[[], int]:
        """Gives the number of another question."""
        ...

    def flush_soon(self) -> None:
        """Have `HeldSends.take` asked, and all that there is sent, at the end of this turn."""
        ...


class HeldSends(Protocol):
    """The calls whose messages were passed on over one link."""

    def take(self) -> list[bytes]:
        """LinkRequests with the messages of this turn."""
        ...

    def hear(self, response: bytes, /) -> bytes:
        """Answer calls of a LinkResponse, and give what is left of it."""
        ...

    def told(self, answer: broker_pb2.Answer, /) -> bool:
        """Answer the call that an answer left by `hear` is for; False where there is none."""
        ...

    def leave(self) -> None:
        """The link has ended: handlers go on with the calls."""
        ...


class HeldCore(Protocol):
    """Their compiled part: `CompiledHeldSends`."""

    def take(self) -> list[bytes]:
        """See HeldSends."""
        ...

    def hear(self, response: bytes, /) -> bytes:
        """See HeldSends."""
        ...

    def pop(self, asked: int, /) -> Held | None:
        """The call of a question, held no more; None: there is none."""
        ...

    def leave(self) -> list[Held]:
        """All calls; they are held no more."""
        ...


class PassedWay(Protocol):
    """What passes messages on, as the compiled core sees it (`CompiledPassedSends`)."""

    @property
    def most_body(self) -> int:
        """Bytes of the largest body."""
        ...

    @property
    def accepts(self) -> Callable[[DirectCall], bool]:
        """Whether a caller has said who it is, and no more than the core knows of."""
        ...

    def get(self, topic: str, /) -> TopicConfig | None:
        """A topic that all brokers have, and take messages of; None: it is not that plain."""
        ...

    def choose(self, key: bytes, /) -> HeldCore | None:
        """Where a message with that id goes; None where nothing more goes there at present."""
        ...

    def good_times(self) -> Distribution:
        """Where the times of calls that ended well are counted; milliseconds."""
        ...
