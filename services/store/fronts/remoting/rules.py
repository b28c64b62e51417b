"""What the front needs to know of the settings."""

from dataclasses import dataclass

from tandemmq.store.format.host import Host


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
