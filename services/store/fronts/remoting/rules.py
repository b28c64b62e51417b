"""What the front needs to know of the settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tandemmq.store.format.host import Host

Announced = Callable[[], Awaitable[None]]
"""Waits until name servers that can be reached know the topics that there are now: clients look for new ones at once,
and then not again for half a minute."""


CameBack = Callable[[str, str], None]
"""Hears of the topic and group of each message that a consumer sends back."""


async def nobody_to_tell() -> None:
    """Where there are no name servers."""


def nobody_counts(topic: str, group: str) -> None:
    """Where nobody asks how much was sent back."""


@dataclass(frozen=True, slots=True)
class RemotingRules:
    """See above."""

    cluster: str
    broker_name: str
    store_host: Host
    """The address in message ids, to which clients go to look a message up."""
    most_messages: int = 32_768
    """An answer to a pull holds so many messages at most."""
    most_bytes: int = 4 << 20
    """... and so many bytes of them, but always one message."""
    create_groups: bool = True

    @property
    def reply_topic(self) -> str:
        """The topic to which answers to requests are sent."""
        return f"{self.cluster}_REPLY_TOPIC"
